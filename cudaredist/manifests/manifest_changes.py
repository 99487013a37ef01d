"""Summarize the changes of a manifest in a few lines."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from cudaredist.manifests.manifest_values import Archive, Manifest, Package

_Value = TypeVar("_Value")

_RELEASE_FIELDS = {
    "release_label": "label",
    "release_date": "release_date",
    "release_product": "release_product",
}


def manifest_changes(old: Manifest, new: Manifest) -> tuple[str, ...]:
    """Return the changes between two manifests, one line each.

    The tuple is empty if the manifests differ only in their formatting.
    """
    lines = [
        f"{key}: {getattr(old, field)} -> {getattr(new, field)}"
        for key, field in _RELEASE_FIELDS.items()
        if getattr(old, field) != getattr(new, field)
    ]
    before = {package.name: package for package in old.packages}
    after = {package.name: package for package in new.packages}
    lines += _changes_by_name(before, after, _package_changes)
    if old.unknown != new.unknown:
        lines.append("unknown keys changed")
    return tuple(lines)


def _changes_by_name(
    before: Mapping[str, _Value],
    after: Mapping[str, _Value],
    changes: Callable[[_Value, _Value], Iterable[str]],
) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"{name}: removed"
        elif name not in before:
            yield f"{name}: added"
        else:
            yield from (f"{name}: {line}" for line in changes(before[name], after[name]))


def _package_changes(old: Package, new: Package) -> Iterator[str]:
    if old.versions != new.versions:
        yield f"version {_joined(old.versions)} -> {_joined(new.versions)}"
    for field in ("title", "license", "license_path", "variants"):
        if getattr(old, field) != getattr(new, field):
            yield f"{field} {getattr(old, field)!r} -> {getattr(new, field)!r}"
    yield from _changes_by_name(_by_place(old), _by_place(new), _archive_changes)


def _archive_changes(old: Archive, new: Archive) -> Iterator[str]:
    for field in ("relative_path", "sha256", "md5", "size"):
        if getattr(old, field) != getattr(new, field):
            yield f"{field} {getattr(old, field)} -> {getattr(new, field)}"


def _by_place(package: Package) -> dict[str, Archive]:
    def place(archive: Archive) -> str:
        parts = [archive.platform, archive.variant or ""]
        if len(package.versions) > 1:
            parts.insert(0, str(archive.version))
        return ".".join(filter(None, parts))

    return {place(archive): archive for archive in package.archives}


def _joined(versions: tuple[object, ...]) -> str:
    return ", ".join(map(str, versions))
