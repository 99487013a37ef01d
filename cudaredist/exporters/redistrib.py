"""NVIDIA's manifest format: one manifest for each release in the set.

Archives for every platform, or for a CUDA variant, are listed under the set's platform, because
most readers do not support another structure.
"""

from collections import defaultdict
from collections.abc import Mapping

from cudaredist.errors import InvalidFileError
from cudaredist.exporters.bazel import RULES_CUDA_PACKAGES
from cudaredist.exporters.export_format import (
    ExportedPackage,
    ExportedSet,
    Files,
    exporter,
    without_nulls,
)
from cudaredist.formats.mirror_lock import ListedRelease
from cudaredist.jsontext import manifest_json
from cudaredist.primitives import is_safe_relative_path, sha256_of
from cudaredist.sources.releases import ListedManifest, release_documents
from cudaredist.words import shown

_COMMON_NAMES = frozenset(RULES_CUDA_PACKAGES.values())
"""Package names that build tools require, even if a release uses others."""


@exporter("redistrib", None, takes_addresses=True)
def redistrib(exported: ExportedSet) -> Files:
    """NVIDIA's manifests, one per release, for the set's platform."""
    platform = exported.package_set.platform.redist_system
    other_names = _other_names(exported)
    releases: dict[tuple[str, str], dict[str, object]] = defaultdict(dict)
    for package in exported.packages:
        entry = package.entry
        if entry.redist is None or entry.release is None:
            path = f"packages.{package.attr}.release"
            raise InvalidFileError.of("package-set file", "is null, but it is available", path)
        for name in (entry.pname, *other_names.get(package.attr, ())):
            releases[entry.redist, entry.release][name] = _package(package, platform)
    manifests = {
        (redist, label): _manifest(redist, label, packages)
        for (redist, label), packages in sorted(releases.items())
    }
    usual = {_path(*release): data for release, data in manifests.items()}
    if exported.nvidia_channel is None:
        return usual
    return _nvidia_channel_tree(manifests, exported.nvidia_channel)


def _nvidia_channel_tree(manifests: Mapping[tuple[str, str], bytes], nvidia_channel: str) -> Files:
    """Return manifests named after their hashes, with the documents that list them."""
    files, listed = {}, []
    for (redist, label), data in manifests.items():
        sha256 = sha256_of(data)
        path = f"release/{redist}/redist/{sha256}.json"
        release = ListedRelease(redist=redist, release=label, nvidia_channel=nvidia_channel)
        listed.append(ListedManifest(release, path, sha256, len(data)))
        files[path] = data
    return {**files, **release_documents(listed)}


def _path(redist: str, label: str) -> str:
    path = f"{redist}/redistrib_{label}.json"
    if not is_safe_relative_path(path):
        message = f"{shown(redist)} is not the name of a redistributable"
        raise InvalidFileError.of("package-set file", message, "packages")
    return path


def _manifest(redist: str, label: str, packages: Mapping[str, object]) -> bytes:
    document = {"release_label": label, "release_product": redist, **dict(sorted(packages.items()))}
    return manifest_json(document)


def _package(package: ExportedPackage, platform: str) -> dict[str, object]:
    entry, archive = package.entry, package.archive
    fields = {
        "relative_path": archive.relative_path,
        "sha256": archive.sha256,
        "md5": archive.md5,
        "size": None if archive.size is None else str(archive.size),
    }
    return {
        "name": entry.description or entry.pname,
        "license": entry.license.manifest or entry.license.short_name,
        **without_nulls({"license_path": _license_path(package)}),
        "version": entry.version,
        platform: without_nulls(fields),
    }


def _license_path(package: ExportedPackage) -> str | None:
    """Return the license's relative path, if known.

    The URLs of the license and the archive must have the same base.
    """
    url, archive = package.entry.license.url, package.archive
    if url is None or archive.url is None or not archive.url.endswith(archive.relative_path):
        return None
    address = archive.url.removesuffix(archive.relative_path)
    return url.removeprefix(address) if url.startswith(address) and url != address else None


def _other_names(exported: ExportedSet) -> dict[str, list[str]]:
    names = defaultdict(list)
    for name, entry in exported.package_set.packages.items():
        if entry.alias_of is not None and name in _COMMON_NAMES:
            names[entry.alias_of].append(name)
    return names
