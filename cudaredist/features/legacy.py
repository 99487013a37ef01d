"""The feature file that nixpkgs consumed from cuda-redist-find-features, made from ours."""

import json

from cudaredist.schema import ExaminedArchive, Features

_NAMES = {
    "bin": ("bin",),
    "dev": ("dev", "include"),
    "doc": ("doc",),
    "lib": ("lib",),
    "sample": ("samples",),
    "static": ("static",),
}
"""Each of its six outputs, and which of ours make it true: it counted headers as `dev`."""


def legacy_json(features: Features) -> bytes:
    """Return package, platform (and variant, where the manifest nests) and six booleans.

    Keys are sorted, indented by two. Archives that were not examined are left out: the file has no
    word for them.
    """
    packages: dict[str, dict[str, dict[str, object]]] = {}
    for name, package in features.packages.items():
        for archive in package.archives:
            if not isinstance(archive, ExaminedArchive):
                continue
            outputs = {
                theirs: any(output in archive.outputs for output in ours)
                for theirs, ours in _NAMES.items()
            }
            place = packages.setdefault(name, {}).setdefault(archive.platform, {})
            if archive.variant is not None:
                place[archive.variant] = {"outputs": outputs}
            else:
                place["outputs"] = outputs
    return (json.dumps(packages, indent=2, sort_keys=True) + "\n").encode()
