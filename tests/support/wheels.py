"""Small wheels and folders of wheels."""

import base64
import csv
import hashlib
import io
import sys
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from cudaredist.manifests.read_manifest import read_manifest
from support.running import ask_index


def wheel(
    project: str,
    version: str,
    files: Mapping[str, bytes],
    *,
    requires: Iterable[str] = (),
    record: Mapping[str, str] | None = None,
) -> bytes:
    """Return a wheel. `record` replaces hashes in its RECORD, and an empty hash omits the line."""
    name = project.replace("-", "_")
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\nSummary: {project}\n"
    metadata += "License: NVIDIA Proprietary Software\n"
    metadata += "".join(f"Requires-Dist: {line}\n" for line in requires)
    content = {
        **files,
        f"{info}/License.txt": b"EULA",
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    for path, data in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        stated = (record or {}).get(path, f"sha256={digest}")
        if stated:
            writer.writerow([path, stated, len(data)])
    for path in (record or {}).keys() - content.keys():
        writer.writerow([path, (record or {})[path], 1])
    writer.writerow([f"{info}/RECORD", "", ""])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in {**content, f"{info}/RECORD": rows.getvalue().encode()}.items():
            archive.writestr(zipfile.ZipInfo(path), data)
    return out.getvalue()


def put_wheel(
    folder: Path,
    project: str,
    version: str,
    files: Mapping[str, bytes] | None = None,
    *,
    tag: str = "any",
    requires: Iterable[str] = (),
) -> Path:
    """Put a wheel for a platform's tag into a folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{project.replace('-', '_')}-{version}-py3-none-{tag}.whl"
    path.write_bytes(wheel(project, version, files or {}, requires=requires))
    return path


def metadata_of(path: Path) -> bytes:
    """Return the metadata in a wheel."""
    with zipfile.ZipFile(path) as archive:
        return archive.read(next(name for name in archive.namelist() if "METADATA" in name))


def download_wheel(folder: Path, path: str) -> None:
    """Download a wheel through pip to its path below a folder."""
    file = folder / path
    project, version, *_, tags = file.name.removesuffix(".whl").split("-")
    platforms = [word for tag in tags.split(".") for word in ("--platform", tag)]
    pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:")
    command = [*pip, "-d", str(file.parent), *platforms, f"{project}=={version}"]
    ask_index(*command)
    assert file.is_file()


OTHER_BUILDS = {
    # nvidia_cudss_cu12-0.7.1.6 and nvidia_cudss_cu13-0.7.1.6; NVIDIA's archives are 0.7.1.4.
    ("cudss", "0.7.1", "libcudss", "0.7.1.6"),
}
"""Packages whose wheels are another build than NVIDIA's archives of the release."""


class ComparedVersions(NamedTuple):
    """The versions in manifests of wheels, compared with NVIDIA's manifests."""

    releases: int
    versions: int
    different: set[tuple[str, str, str, str]]
    """Redistributable, release, package and version."""


def compare_versions(wheels: Path, nvidia: Path) -> ComparedVersions:
    """Compare all releases that are in both folders.

    Versions of some wheels are only the beginning of the archive's version, such as 0.8.1 of
    cuSPARSELt 0.8.1.1.
    """
    releases, versions, different = 0, 0, set()
    for path in sorted(wheels.glob("*/redistrib_*.json")):
        redist, label = path.parent.name, path.stem.removeprefix("redistrib_")
        other = nvidia / redist / "redist" / path.name
        if not other.exists():
            continue
        releases += 1
        published = {
            package.name: package.versions for package in read_manifest(other.read_bytes()).packages
        }
        for package in read_manifest(path.read_bytes()).packages:
            for version in package.versions if package.name in published else ():
                versions += 1
                if not any(one.begins_with(version) for one in published[package.name]):
                    different.add((redist, label, package.name, str(version)))
    return ComparedVersions(releases, versions, different)
