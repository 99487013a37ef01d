"""Functions that damage a mirror of the releases in `support.mirrors`."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.mirrors import FOLDER, NEW

MIRROR = Path("mirror")
NVCC = f"{FOLDER}cuda_nvcc/linux-x86_64/cuda_nvcc-linux-x86_64-{NEW}-archive.tar.xz"
CUDART = f"{FOLDER}cuda_cudart/linux-x86_64/cuda_cudart-linux-x86_64-{NEW}-archive.tar.xz"
SAME = f"{FOLDER}cuda_same/linux-x86_64/cuda_same-linux-x86_64-{NEW}-archive.tar.xz"
MANIFEST = f"{FOLDER}redistrib_{NEW}.json"
FETCHED = f".mirror/manifests/cuda/redistrib_{NEW}.json"


def write(name: str, data: bytes) -> None:
    """Write a file that is not linked to others."""
    (MIRROR / name).unlink(missing_ok=True)
    (MIRROR / name).write_bytes(data)


def flip(name: str) -> None:
    data = bytearray((MIRROR / name).read_bytes())
    data[len(data) // 2] ^= 1
    (MIRROR / name).write_bytes(data)


def edit(name: str, change: Callable[[Any], object]) -> None:
    document = json.loads((MIRROR / name).read_bytes())
    change(document)
    write(name, json.dumps(document).encode())


def link_wrongly() -> None:
    (MIRROR / NVCC).unlink()
    (MIRROR / NVCC).hardlink_to(MIRROR / CUDART)


def replace_by_symlink() -> None:
    (MIRROR / NVCC).rename(MIRROR / "target")
    (MIRROR / NVCC).symlink_to(MIRROR / "target")


DAMAGES: dict[str, Callable[[], object]] = {
    "flipped bit": lambda: flip(NVCC),
    "cut file": lambda: os.truncate(MIRROR / NVCC, 10),
    "missing file": (MIRROR / NVCC).unlink,
    "extra file": lambda: write(f"{FOLDER}extra.tar.xz", b"extra"),
    "wrong hard link": link_wrongly,
    "symbolic link": replace_by_symlink,
    "copy instead of a hard link": lambda: write(SAME, (MIRROR / SAME).read_bytes()),
    "changed manifest": lambda: flip(MANIFEST),
    "replaced manifest": lambda: edit(
        MANIFEST, lambda document: document.update(release_date="2020-01-01")
    ),
    "lock with another hash": lambda: edit(
        "mirror.json", lambda lock: lock["mirrored"][NVCC].update(sha256="0" * 64)
    ),
    "lock without a file": lambda: edit("mirror.json", lambda lock: lock["mirrored"].pop(NVCC)),
    "changed sums": lambda: flip("SHA256SUMS"),
    "missing page": (MIRROR / FOLDER / "index.html").unlink,
}
