"""What changed in a manifest, in a few lines, in the order a reviewer reads them."""

from collections.abc import Iterator

from cudaredist.manifests.manifest_values import Archive, Manifest, Package

_RELEASE_FIELDS = {
    "release_label": "label",
    "release_date": "release_date",
    "release_product": "release_product",
}


def manifest_changes(old: Manifest, new: Manifest) -> tuple[str, ...]:
    """Return what changed between two manifests, a line each, package by package.

    An empty tuple means that both say the same, however their bytes differ.
    """
    lines: list[str] = []
    for key, field in _RELEASE_FIELDS.items():
        was, is_now = getattr(old, field), getattr(new, field)
        if was != is_now:
            lines.append(f"{key}: {was} -> {is_now}")
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
        lines.append("keys that are not understood changed")
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
                was, is_now = getattr(before[place], field), getattr(after[place], field)
                if was != is_now:
                    yield f"{place}: {field} {was} -> {is_now}"


def _by_place(package: Package) -> dict[str, Archive]:
    def place(archive: Archive) -> str:
        parts = [archive.platform, archive.variant or ""]
        if len(package.versions) > 1:
            parts.insert(0, str(archive.version))
        return ".".join(filter(None, parts))

    return {place(archive): archive for archive in package.archives}


def _joined(versions: tuple[object, ...]) -> str:
    return ", ".join(map(str, versions))
