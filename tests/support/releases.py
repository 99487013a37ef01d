"""Small releases: a manifest and its archives with correct hashes."""

import io
import lzma
import tarfile
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from support.factory import archive_path, manifest
from support.server import FaultServer

Files: TypeAlias = Mapping[str, bytes | str]
"""Content by path below the archive's top directory. Text is a symbolic link's target."""
Packages: TypeAlias = Mapping[str, Mapping[str, Files]]
"""Files by package and by platform or `platform/variant`."""
EARLY: Packages = {"libx": {"linux-x86_64": {"LICENSE": b"x", "lib/x": b"x"}}}


def packed(name: str, files: Files) -> bytes:
    """Return a `.zip` or `.tar.xz` archive with one top directory."""
    return _packed(name, tuple(files.items()))


@lru_cache(maxsize=500)
def _packed(name: str, entries: tuple[tuple[str, bytes | str], ...]) -> bytes:
    """Pack files once, since many tests need the same archives."""
    files = dict(entries)
    top = name.removesuffix(".zip").removesuffix(".tar.xz")
    out = io.BytesIO()
    if name.endswith(".zip"):
        method = zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(out, "w", method) as archive:
            for path, content in files.items():
                assert isinstance(content, bytes)
                archive.writestr(zipfile.ZipInfo(f"{top}/{path}"), content, method)
        return out.getvalue()
    programs = [path for path in files if path.startswith("bin/")]
    return lzma.compress(tarred(top, files, dict.fromkeys(programs, 0o755)), preset=1)


def tarred(top: str, files: Files, modes: Mapping[str, int]) -> bytes:
    """Return a tar with one top directory."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(f"{top}/{path}")
            member.mode = modes.get(path, 0o644)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                tar.addfile(member)
            else:
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def release(label: str, packages: Packages, *, product: str = "cuda") -> dict[str, bytes]:
    """Return a release's files by their path below the folder of its manifest."""
    version = f"{label.partition('-')[0]}.5"
    files: dict[str, bytes] = {}
    for package, places in packages.items():
        for place, content in places.items():
            platform, _, variant = place.partition("/")
            path = archive_path(package, platform, version, variant)
            files[path] = packed(path.rpartition("/")[2], content)
    versions = dict.fromkeys(packages, version)
    document = manifest(label, product, packages=packages, versions=versions, contents=files)
    return {**files, f"redistrib_{label}.json": document}


def early_release(label: str, packages: Packages = EARLY) -> dict[str, bytes]:
    """Return an early-access release's files by their path below the root of the source."""
    files = release(label, packages)
    name = f"redistrib_{label}.json"
    document = files.pop(name)
    pool = {path: f"pool/linux-x86_64/5B515474-7E78/{path.rpartition('/')[2]}" for path in files}
    for path, new in pool.items():
        document = document.replace(path.encode(), f"../../../{new}".encode())
    moved = {pool[path]: data for path, data in files.items()}
    return {**moved, f"release/cuda/redist/{name}": document}


def put(root: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder."""
    for path, data in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def publish(
    server: FaultServer, files: Mapping[str, bytes], redist: str = "cuda", folder: Path = Path()
) -> None:
    """Serve a release's files and write its manifest to a folder's `data/`."""
    for path, data in files.items():
        server.files[f"/compute/{redist}/redist/{path}"] = data
        if path.startswith("redistrib_"):
            put(folder / "data/manifests" / redist, {path: data})
