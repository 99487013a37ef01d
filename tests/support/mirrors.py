"""Small CUDA releases to mirror, and the contents of mirrors."""

import random
import re
from collections.abc import Mapping
from pathlib import Path

from typer.testing import Result

from support.factory import archive_path, manifest
from support.releases import packed
from support.running import report
from support.server import FaultServer

FOLDER = "compute/cuda/redist/"
OLD, NEW = "12.9.0", "12.9.1"
PACKAGES = {
    "cuda_cudart": ("linux-x86_64", "windows-x86_64"),
    "cuda_nvcc": ("linux-x86_64",),
    "cuda_same": ("linux-x86_64",),
}
SAME = packed("same.tar.xz", {"include/same.h": b"// the same in each release\n"})


def mirror_release(label: str, size: int = 0) -> dict[str, bytes]:
    """Return the files of a release; cuda_same has the same archive in each release."""
    files = {}
    for package, platforms in PACKAGES.items():
        for platform in platforms:
            path = archive_path(package, platform, label)
            noise = random.Random(path).randbytes(size)
            header = {"include/a.h": path.encode() + noise}
            files[path] = SAME if package == "cuda_same" else packed(path.split("/")[-1], header)
    document = manifest(label, packages=PACKAGES, contents=files)
    return {**files, f"redistrib_{label}.json": document}


def serve_releases(server: FaultServer, *labels: str, size: int = 0) -> dict[str, bytes]:
    """Serve releases of CUDA, and return their files by path below the server's root."""
    releases = [mirror_release(label, size) for label in labels or (OLD, NEW)]
    server.add_releases("cuda", *releases)
    return {f"{FOLDER}{path}": data for files in releases for path, data in files.items()}


def mirrored(mirror: Path) -> dict[str, bytes]:
    """Return the served files of a mirror."""
    return {
        path.relative_to(mirror).as_posix(): path.read_bytes()
        for path in sorted(mirror.rglob("*"))
        if path.is_file() and ".mirror" not in path.parts
    }


def without_times(lock: bytes) -> bytes:
    """Return a mirror's lock without times of modification, which differ by run."""
    return re.sub(rb'"mtime_ns": \d+,\s*', b"", lock)


def published(mirror: Path) -> dict[str, bytes]:
    """Return the manifests, archives and wheels of a mirror."""
    generated = {"mirror.json", "SHA256SUMS"}
    return {
        path: data
        for path, data in mirrored(mirror).items()
        if path not in generated and not path.endswith(("index.html", "index.json"))
    }


def path_of(files: Mapping[str, bytes], *parts: str) -> str:
    """Return the only path with these parts."""
    (path,) = (path for path in files if all(part in path for part in parts))
    return path


State = dict[str, tuple[bytes, int, int]]


def state_of(mirror: Path) -> State:
    """Return the bytes, inode and mode of each file of a mirror, without partial downloads.

    Folders are included if not all users can open them.
    """
    state: State = {}
    for path in filter(Path.exists, sorted(mirror.rglob("*"))):
        about = path.lstat()
        is_private = path.is_dir() and about.st_mode & 0o555 != 0o555
        if (path.is_file() or is_private) and "partial" not in path.parts:
            data = path.read_bytes() if path.is_file() else b""
            state[path.relative_to(mirror).as_posix()] = (data, about.st_ino, about.st_mode)
    return state


def changed_paths(before: State, after: State) -> set[str]:
    """Return the paths that differ."""
    return {path for path in {*before, *after} if before.get(path) != after.get(path)}


def planned_paths(result: Result) -> set[str]:
    """Return the paths that `mirror sync --check` reports."""
    document = report(result)
    is_of_wheels = any(one["path"].endswith(".whl") for one in document["archives"])
    folder = ".mirror/manifests/wheels" if is_of_wheels else ".mirror/manifests"
    archives = {a["path"] for a in document["archives"] if a["status"].startswith("would-")}
    manifests = {
        f"{folder}/{one['redist']}/redistrib_{one['release']}.json"
        for one in document["manifests"]
        if one["status"] == "would-write"
    }
    return {*archives, *manifests, *document["other_files"]}
