"""Summarize the changes of a manifest in a few lines."""

from collections.abc import Iterator

from cudaredist.manifests.manifest_values import Archive, Manifest, Package

_RELEASE_FIELDS = {
    "release_label": "label",
    "release_date": "release_date",
    "release_product": "release_product",
}


def manifest_changes(old: Manifest, new: Manifest) -> tuple[str, ...]:
    """Return the changes between two manifests, one line each.

    The tuple is empty if the manifests differ only in their formatting.
    """
    lines: list[str] = []
    for key, field in _RELEASE_FIELDS.items():
        old_value, new_value = getattr(old, field), getattr(new, field)
        if old_value != new_value:
            lines.append(f"{key}: {old_value} -> {new_value}")
    before = {package.name: package for package in old.packages}
    after = {package.name: package for package in new.packages}
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            lines.append(f"{name}: removed")
        elif name not in before:
            lines.append(f"{name}: added")
        else:
            lines += (f"{name}: {line}" for line in _package_changes(before[name], after[name]))
    if old.unknown != new.unknown:
        lines.append("unknown keys changed")
    return tuple(lines)


def _package_changes(old: Package, new: Package) -> Iterator[str]:
    if old.versions != new.versions:
        yield f"version {_joined(old.versions)} -> {_joined(new.versions)}"
    for field in ("title", "license", "license_path", "variants"):
        if getattr(old, field) != getattr(new, field):
            yield f"{field} {getattr(old, field)!r} -> {getattr(new, field)!r}"
    before, after = _by_place(old), _by_place(new)
    for place in sorted(before.keys() | after.keys()):
        if place not in after:
            yield f"{place}: removed"
        elif place not in before:
            yield f"{place}: added"
        else:
            for field in ("relative_path", "sha256", "md5", "size"):
                old_value, new_value = getattr(before[place], field), getattr(after[place], field)
                if old_value != new_value:
                    yield f"{place}: {field} {old_value} -> {new_value}"


def _by_place(package: Package) -> dict[str, Archive]:
    def place(archive: Archive) -> str:
        parts = [archive.platform, archive.variant or ""]
        if len(package.versions) > 1:
            parts.insert(0, str(archive.version))
        return ".".join(filter(None, parts))

    return {place(archive): archive for archive in package.archives}


def _joined(versions: tuple[object, ...]) -> str:
    return ", ".join(map(str, versions))
