"""Write the manifest of a redistributable from its archives."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from cudaredist.archives.open_archive import open_archive
from cudaredist.commands.manifest.report import AddedArchive, ManifestReport
from cudaredist.errors import (
    ContentError,
    IntegrityError,
    InvalidArchiveError,
    UnknownNameError,
    UsageError,
)
from cudaredist.hints import again, command_line, redacted
from cudaredist.jsontext import load_json, manifest_json
from cudaredist.manifests.read_manifest import is_real_date, read_manifest
from cudaredist.primitives import (
    KNOWN_PLATFORMS,
    Version,
    is_safe_relative_path,
    manifest_name,
    natural_order,
    parse_label,
    place_name,
)
from cudaredist.redists import REDISTS, Redist, find_redist
from cudaredist.sources.hashed_file import HashedFile, Recorder
from cudaredist.store.files import read_file, update_output
from cudaredist.words import shown

_is_request = re.compile(
    r"(?P<platform>[a-z0-9_-]+)(?:\+(?P<variant>cuda[0-9]{1,3})(?P<minor>\.[0-9]{1,3})?)?="
    r"(?P<location>.+)"
).fullmatch
_cuda_in_name = re.compile(r"cuda-?([0-9]+(?:\.[0-9]+)?)").search
_is_top_folder = re.compile(r"(?P<name>[A-Za-z][A-Za-z_-]*)-(?P<version>[0-9]+(\.[0-9]+)+)").match


class _Request(NamedTuple):
    platform: str
    variant: str | None
    relative_path: str
    location: str


def add_manifest(
    name: str,
    label_text: str,
    archives: Iterable[str],
    root: Path,
    recorder: Recorder,
    *,
    release_date: str | None = None,
) -> ManifestReport:
    """Read archives once, verify them, and add them to the manifest of a release.

    Raises `UsageError` for an invalid request, `ContentError` for an archive of another product or
    version, `IntegrityError` for an archive that differs from the manifest unless this is accepted,
    and the errors of `Recorder.fetched`.
    """
    redist, label = _release(name, label_text)
    if release_date is not None and not is_real_date(release_date):
        message = f"--release-date {shown(release_date)} is not a date"
        raise UsageError(message, hint="use the form 2026-01-31")
    requests = [_request(text, redist) for text in archives]
    path = root / redist.manifest_folders[0] / manifest_name(label)
    known = _known_package(read_file(path), redist, label)
    accept_changed = recorder.accept_changed
    files: list[HashedFile] = []
    versions: list[str] = []
    for request in requests:
        with recorder.fetched(request.location) as (file, content):
            _compare(known, request, file, accept_changed=accept_changed)
            files.append(file)
            versions.append(_version_inside(file.place, content, redist, label))
    versions = sorted({*versions})
    if len(versions) > 1:
        raise ContentError(f"the archives have several versions: {', '.join(versions)}")
    recorder.begin()
    # Read again: another run may have changed it before this one locked the folder.
    current = read_file(path)
    document = _document(current, redist, label, versions[0], accept_changed=accept_changed)
    added = [
        _add_archive(document[redist.packages[0]], request, file, accept_changed=accept_changed)
        for request, file in zip(requests, files, strict=True)
    ]
    data = manifest_json(_ordered(document, redist.packages[0], release_date))
    read_manifest(data, label=label)
    return ManifestReport(
        redist=redist.name,
        release=str(label),
        version=versions[0],
        path=path.relative_to(root).as_posix(),
        status=update_output(path, data, may_write=True, root=root),
        archives=tuple(added),
        next=command_line("download-manifests", redist=redist.name, version=label, base_url=root),
        exit_code=0,
    )


def _release(name: str, text: str) -> tuple[Redist, Version]:
    redist = find_redist(name)
    if not redist.handwritten:
        download = command_line("download-manifests", redist=name, version=text)
        others = ", ".join(other.name for other in REDISTS.values() if other.handwritten)
        hint = f"run `{download}`; without manifests: {others}"
        raise UsageError(f"NVIDIA publishes manifests of {redist.title}", hint=hint)
    try:
        return redist, parse_label(text)
    except ValueError as error:
        raise UsageError(f"{shown(text)} is not a label: {error}") from None


def _request(text: str, redist: Redist) -> _Request:
    match = _is_request(text)
    if match is None:
        message = f"--archive {shown(redacted(text).partition('?')[0])} is not PLATFORM=URL"
        raise UsageError(message, hint="use --archive linux-x86_64+cuda12.9=URL")
    platform, variant, location = match["platform"], match["variant"], match["location"]
    if platform not in KNOWN_PLATFORMS:
        raise UnknownNameError("platform", platform, KNOWN_PLATFORMS)
    folders = redist.archive_folders
    paths = [location.partition(f"/{folder}/")[2] for folder in folders]
    path = next(filter(is_safe_relative_path, paths), None)
    if path is None:
        public = shown(redacted(location).partition("?")[0])
        hint = f"use an address such as {redist.archive_base}/{folders[0]}/FOLDER/NAME"
        raise UsageError(f"{public} has no path below {folders[0]}/", hint=hint)
    stated = _cuda_in_name(path.rpartition("/")[2])
    if stated and variant:
        cuda = variant.removeprefix("cuda") + (match["minor"] or "")
        # The dots prevent that 12.1 matches 12.10.
        if not f"{stated[1]}.".startswith(f"{cuda}."):
            raise UsageError(f"{path} is for CUDA {stated[1]}, not {cuda}")
    return _Request(platform, variant, path, location)


def _version_inside(place: str, file: BinaryIO, redist: Redist, label: Version) -> str:
    """Return the version in the name of an archive's only top folder."""
    members = open_archive(place.rpartition("/")[2], file)
    tops = {member.name.removeprefix("./").partition("/")[0] for member, _ in members}
    tops -= {"", "."}
    match = _is_top_folder(next(iter(tops), "")) if len(tops) == 1 else None
    if match is None:
        names = ", ".join(map(shown, sorted(tops)[:3])) or "nothing"
        raise InvalidArchiveError(place, f"expected one folder NAME-VERSION, but contains {names}")
    version = match["version"]
    is_product = redist.name in match["name"].lower()
    if not is_product or not Version.parse(version).begins_with(label):
        raise ContentError(f"{place}: contains {match[0]}, not {redist.title} {label}")
    return version


def _document(
    current: bytes | None, redist: Redist, label: Version, version: str, *, accept_changed: bool
) -> dict[str, Any]:
    """Return the current manifest, or a new one without archives."""
    name = redist.packages[0]
    if current is not None:
        packages = {each.name: each for each in read_manifest(current, label=label).packages}
        if name not in packages:
            message = f"the manifest has no package {name}, but {', '.join(map(shown, packages))}"
            raise ContentError(message, hint="rename its package, or remove the manifest")
        known = str(packages[name].versions[0])
        if known == version:
            document: dict[str, Any] = load_json(current)
            return document
        if not accept_changed:
            versions = f"the archives have version {version}, and the manifest has {known}"
            hint = f"to replace it, run `{again('--replace')}`"
            raise IntegrityError(f"{versions}; it was kept", hint=hint)
    package = {"name": f"NVIDIA {redist.title}", "license": redist.title, "version": version}
    return {"release_label": str(label), "release_product": redist.name, name: package}


def _ordered(document: dict[str, Any], name: str, release_date: str | None) -> dict[str, Any]:
    """Return the document in the order of NVIDIA's manifests: the date first, archives last."""
    date = release_date or document.get("release_date")
    package: dict[str, Any] = document[name]
    archives = {
        platform: package[platform] for platform in sorted(package.keys() & KNOWN_PLATFORMS)
    }
    for platform, variants in archives.items():
        archives[platform] = {key: variants[key] for key in sorted(variants, key=natural_order)}
    rest = {key: value for key, value in document.items() if key not in {"release_date", name}}
    first = {} if date is None else {"release_date": date}
    facts = {key: value for key, value in package.items() if key not in archives}
    return {**first, **rest, name: {**facts, **archives}}


def _known_package(current: bytes | None, redist: Redist, label: Version) -> dict[str, Any]:
    """Return the package of a valid manifest, empty if there is none."""
    if current is None:
        return {}
    read_manifest(current, label=label)
    package: dict[str, Any] = load_json(current).get(redist.packages[0], {})
    return package


def _compare(
    package: dict[str, Any], request: _Request, file: HashedFile, *, accept_changed: bool
) -> None:
    """Raise `IntegrityError` for other bytes than the manifest's, unless `accept_changed`."""
    platform, variant = request.platform, request.variant
    below = package.get(platform, {})
    known = below if variant is None else below.get(variant, {})
    place = place_name(platform, variant)
    file.compare(known.get("sha256"), f"the manifest's {place}", accept_changed=accept_changed)


def _add_archive(
    package: dict[str, Any], request: _Request, file: HashedFile, *, accept_changed: bool
) -> AddedArchive:
    platform, variant = request.platform, request.variant
    _compare(package, request, file, accept_changed=accept_changed)
    below = package.setdefault(platform, {})
    if below and ("sha256" in below) != (variant is None):
        message = f"the archives of {platform} must all have a CUDA release, or none of them"
        raise UsageError(message)
    fields = {"relative_path": request.relative_path, "sha256": file.sha256}
    archive = {"md5": file.md5, **fields, "size": str(file.size)}
    package[platform] = archive if variant is None else {**below, variant: archive}
    if variant is not None:
        variants = {variant.removeprefix("cuda"), *package.get("cuda_variant", ())}
        package["cuda_variant"] = sorted(variants, key=natural_order)
    return AddedArchive(platform=platform, variant=variant, size=file.size, **fields)
