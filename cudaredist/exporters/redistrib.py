"""NVIDIA's own format: one manifest for each release in the set, flattened for its platform.

Archives that the release has for every platform, or by variant of CUDA, stand under the set's
platform, because most readers know no other shape.
"""

import json
from collections import defaultdict
from collections.abc import Mapping

from cudaredist.errors import InvalidFileError, Problem, shown
from cudaredist.exporters.bazel import COMPONENTS
from cudaredist.exporters.export_format import Exporter, Files, Item, Subject
from cudaredist.primitives import is_safe_relative_path

_LOOKED_FOR = frozenset(COMPONENTS.values())
"""Names under which build tools look for a package, whatever a release calls it."""


def _files(subject: Subject) -> Files:
    platform = subject.package_set.platform.redist_system
    other_names = _other_names(subject)
    releases: dict[tuple[str, str], dict[str, object]] = defaultdict(dict)
    for item in subject.items:
        package = item.package
        if package.redist is None or package.release is None:
            problem = Problem(f"packages.{item.attr}.release", "is null, though it is available")
            raise InvalidFileError("package-set file", [problem])
        for name in (package.pname, *other_names.get(item.attr, ())):
            releases[package.redist, package.release][name] = _package(item, platform)
    return {
        _place(redist, label): _manifest(redist, label, packages)
        for (redist, label), packages in sorted(releases.items())
    }


def _place(redist: str, label: str) -> str:
    path = f"{redist}/redistrib_{label}.json"
    if not is_safe_relative_path(path):
        problem = Problem("packages", f"{shown(redist)} is no name of a redistributable")
        raise InvalidFileError("package-set file", [problem])
    return path


def _manifest(redist: str, label: str, packages: Mapping[str, object]) -> bytes:
    document = {
        "release_label": label,
        "release_product": redist,
        **dict(sorted(packages.items())),
    }
    return (json.dumps(document, indent=4, ensure_ascii=False) + "\n").encode()


def _package(item: Item, platform: str) -> dict[str, object]:
    package, archive = item.package, item.archive
    path = _license_path(item)
    about: dict[str, object] = {
        "name": package.description or package.pname,
        "license": package.license.manifest or package.license.short_name,
    }
    if path is not None:
        about["license_path"] = path
    about["version"] = package.version
    fields = {
        "relative_path": archive.relative_path,
        "sha256": archive.sha256,
        "md5": archive.md5,
        "size": None if archive.size is None else str(archive.size),
    }
    about[platform] = {key: value for key, value in fields.items() if value is not None}
    return about


def _license_path(item: Item) -> str | None:
    """Return the path of the licence's text, where it lies below the archive's address."""
    url, archive = item.package.license.url, item.archive
    if url is None or archive.url is None or not archive.url.endswith(archive.relative_path):
        return None
    address = archive.url.removesuffix(archive.relative_path)
    return url.removeprefix(address) if url.startswith(address) and url != address else None


def _other_names(subject: Subject) -> dict[str, list[str]]:
    names = defaultdict(list)
    for name, package in subject.package_set.packages.items():
        if package.alias_of is not None and name in _LOOKED_FOR:
            names[package.alias_of].append(name)
    return names


REDISTRIB = Exporter(
    name="redistrib",
    title="NVIDIA's own manifests, one per release, for the set's platform only.",
    files=_files,
    file=None,
)
