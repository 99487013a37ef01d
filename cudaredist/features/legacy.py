"""The feature file that nixpkgs consumed from cuda-redist-find-features, made from ours."""

import json
from typing import Any

from cudaredist.schema.base import OutputName
from cudaredist.schema.features import ExaminedArchive, Features, UnexaminedArchive

_NAMES: dict[str, tuple[OutputName, ...]] = {
    "bin": ("bin",),
    "dev": ("dev", "include"),
    "doc": ("doc",),
    "lib": ("lib",),
    "sample": ("samples",),
    "static": ("static",),
}
"""Each of its six outputs, and which of ours make it true: it counted headers as `dev`."""
_OURS: dict[str, tuple[OutputName, ...]] = {**_NAMES, "samples": ("samples",)}


def legacy_json(features: Features, before: bytes | None = None) -> bytes:
    """Return package, platform (and variant, where the manifest nests) and six booleans.

    Keys are sorted, indented by two. Archives that were not examined are left out, as the file has
    no word for them, unless the file that was there `before` has them.
    """
    earlier = _read(before)
    packages: dict[str, dict[str, dict[str, object]]] = {}
    for name, package in features.packages.items():
        for archive in package.archives:
            entry = {"outputs": _outputs(archive)}
            if not isinstance(archive, ExaminedArchive):
                kept = earlier.get(name, {}).get(archive.platform, {})
                entry = kept.get(archive.variant, {}) if archive.variant is not None else kept
                if "outputs" not in entry:
                    continue
            place = packages.setdefault(name, {}).setdefault(archive.platform, {})
            if archive.variant is None:
                place["outputs"] = entry["outputs"]
            else:
                place[archive.variant] = {"outputs": entry["outputs"]}
    return (json.dumps(packages, indent=2, sort_keys=True) + "\n").encode()


def _outputs(archive: ExaminedArchive | UnexaminedArchive) -> dict[str, bool]:
    found = archive.outputs if isinstance(archive, ExaminedArchive) else {}
    return {theirs: any(output in found for output in ours) for theirs, ours in _NAMES.items()}


def _read(before: bytes | None) -> dict[str, Any]:
    """Return an earlier file of this form; nothing where it is none."""
    try:
        document = json.loads(before or b"{}")
    except ValueError:
        return {}
    is_legacy = isinstance(document, dict) and "schema_version" not in document
    nested = [document, *document.values()] if is_legacy else []
    return document if all(isinstance(value, dict) for value in nested) and is_legacy else {}


def is_legacy(document: object) -> bool:
    """Check if a document has outputs where such a file has them."""
    return isinstance(document, dict) and any(
        isinstance(entry, dict) and "outputs" in entry
        for platforms in document.values()
        # A package of a manifest has texts, too.
        if isinstance(platforms, dict) and all(isinstance(v, dict) for v in platforms.values())
        for value in platforms.values()
        for entry in (value, *value.values())
    )


def legacy_outputs(document: object) -> dict[tuple[str, str, str | None], tuple[OutputName, ...]]:
    """Return the outputs that such a file names, by package, platform and variant.

    Its `sample` is our `samples`; of what else it may have nothing is known.
    """
    found: dict[tuple[str, str, str | None], tuple[OutputName, ...]] = {}
    packages = _read(json.dumps(document).encode())
    for name, platforms in packages.items():
        for platform, value in platforms.items():
            nested = value.items() if isinstance(value, dict) else ()
            flat = [(None, value)] if isinstance(value, dict) and "outputs" in value else []
            for variant, entry in [*flat, *((k, v) for k, v in nested if k != "outputs")]:
                outputs = entry.get("outputs") if isinstance(entry, dict) else None
                if isinstance(outputs, dict):
                    present = {ours[0] for theirs, ours in _OURS.items() if outputs.get(theirs)}
                    found[name, platform, variant] = tuple(sorted(present | {"out"}))
    return found
