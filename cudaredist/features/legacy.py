"""Feature files in the form of cuda-redist-find-features, for nixpkgs."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from cudaredist.formats.features import ExaminedArchive, Features
from cudaredist.formats.names import OutputName
from cudaredist.jsontext import load_json
from cudaredist.primitives import ArchiveId

_NAMES: dict[str, tuple[OutputName, ...]] = {
    "bin": ("bin",),
    "dev": ("dev", "include"),
    "doc": ("doc",),
    "lib": ("lib",),
    "sample": ("samples",),
    "static": ("static",),
}
"""The six outputs of that form, with the outputs of ours that they include."""
_DEV = ("include/", "lib/pkgconfig/", "share/pkgconfig/", "lib/cmake/", "share/aclocal/")
_DOC = ("share/info/", "share/doc/", "share/gtk-doc/", "share/devhelp/", "share/man/")
"""The folders of these outputs in cuda-redist-find-features."""
_OURS: dict[str, tuple[OutputName, ...]] = {**_NAMES, "samples": ("samples",)}


def legacy_json(features: Features, before: bytes | None = None) -> bytes:
    """Return a feature file in the form for nixpkgs.

    It contains six booleans by package, platform and variant (if the manifest nests by variant),
    with sorted keys and an indent of two. The form cannot express that an archive was not examined.
    Such archives are left out, unless the file `before` has them.
    """
    earlier: dict[ArchiveId, Any] = {}
    with suppress(ValueError):
        earlier.update(_stored_outputs(load_json(before or b"{}")))
    packages: dict[str, dict[str, dict[str, object]]] = {}
    for name, package in features.packages.items():
        for position, archive in enumerate(package.archives):
            outputs = earlier.get(ArchiveId(name, archive.platform, archive.variant))
            if isinstance(archive, ExaminedArchive):
                outputs = _outputs(archive, package.files_of(position))
            if outputs is not None:
                of_platform = packages.setdefault(name, {}).setdefault(archive.platform, {})
                if archive.variant is None:
                    of_platform["outputs"] = outputs
                else:
                    of_platform[archive.variant] = {"outputs": outputs}
    return (json.dumps(packages, indent=2, sort_keys=True) + "\n").encode()


def _outputs(archive: ExaminedArchive, files: Iterable[str] | None) -> dict[str, bool]:
    """Return the outputs of an archive as cuda-redist-find-features finds them.

    It looks for names: stubs count as libraries, and only manual pages and the like as `doc`. If
    the names of the archive's files are unknown, its outputs are the nearest ones of ours.
    """
    known = archive.outputs.keys()
    outputs = {theirs: not known.isdisjoint(ours) for theirs, ours in _NAMES.items()}
    if files is not None:
        links = (link for library in archive.libraries for link in library.links)
        paths = [*files, *links]
        in_lib = [path for path in paths if path.startswith("lib/")]
        outputs |= {
            "dev": any(path.startswith(_DEV) for path in paths),
            "doc": any(path.startswith(_DOC) for path in paths),
            "lib": any(path.endswith(".so") for path in in_lib),
            "sample": any(path.startswith("samples/") for path in paths),
            "static": any(path.endswith(".a") for path in in_lib),
        }
    return outputs


def is_legacy(document: object) -> bool:
    """Check if a document has this form.

    That is the case if it has outputs at this form's paths.
    """
    packages = document.items() if isinstance(document, dict) else ()
    return any(
        any(_stored_outputs({name: platforms}))
        for name, platforms in packages
        # In a manifest, a package also has strings, so it does not match.
        if isinstance(platforms, dict)
        and all(isinstance(entry, dict) for entry in platforms.values())
    )


def legacy_outputs(document: object) -> dict[ArchiveId, tuple[OutputName, ...]]:
    """Return the outputs by package, platform and variant.

    Its `sample` is our `samples`. Unknown outputs are ignored.
    """
    by_archive: dict[ArchiveId, tuple[OutputName, ...]] = {}
    for archive, outputs in _stored_outputs(document):
        if isinstance(outputs, dict):
            present = {ours[0] for theirs, ours in _OURS.items() if outputs.get(theirs)}
            by_archive[archive] = tuple(sorted(present | {"out"}))
    return by_archive


def _stored_outputs(document: object) -> Iterator[tuple[ArchiveId, Any]]:
    """Yield the value of `outputs` of each archive, nothing for another form."""
    packages = document if isinstance(document, dict) and "schema_version" not in document else {}
    if not all(isinstance(platforms, dict) for platforms in packages.values()):
        return
    for name, platforms in packages.items():
        for platform, value in platforms.items():
            if not isinstance(value, dict):
                continue
            # Without variants, `outputs` is directly below the platform.
            if "outputs" in value:
                yield ArchiveId(name, platform, None), value["outputs"]
            for variant, entry in value.items():
                if isinstance(entry, dict) and "outputs" in entry:
                    yield ArchiveId(name, platform, variant), entry["outputs"]
