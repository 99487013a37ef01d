"""Functions that damage a mirror of the releases in `support.mirrors`."""

import json
import os
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cudaredist.primitives import sha256_of
from support.mirrors import FOLDER, NEW

MIRROR = Path("mirror")
NOTHING = "nothing"
"""The missing target of a link."""
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
    "private archive": lambda: (MIRROR / NVCC).chmod(0o600),
    "private page": lambda: (MIRROR / "SHA256SUMS").chmod(0o640),
    "private folder": lambda: (MIRROR / FOLDER / "cuda_nvcc").chmod(0o700),
    "changed sums": lambda: flip("SHA256SUMS"),
    "missing page": (MIRROR / FOLDER / "index.html").unlink,
}


# -- damages of any file or folder


def move_and_link(path: Path, folder: Path = Path("elsewhere")) -> None:
    """Move a file or folder out of the mirror to another folder, and link to it."""
    folder.mkdir(exist_ok=True)
    target = folder.absolute() / str(len(list(folder.iterdir())))
    shutil.move(path, target)
    path.symlink_to(target)


def replace_by_copy(path: Path) -> None:
    """Replace a file by one that is not linked to others, with the same bytes and time."""
    copy = path.with_name("copy")
    shutil.copy2(path, copy)
    copy.replace(path)


def replace_by_link_to_nothing(path: Path) -> None:
    path.unlink()
    path.symlink_to(NOTHING)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def damage_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def make_loop(path: Path) -> None:
    if not os.path.lexists(path / "loop"):
        (path / "loop").symlink_to(".")


FILE_DAMAGES: tuple[Callable[[Path], object], ...] = (
    Path.unlink,
    damage_bit,
    lambda path: os.truncate(path, path.stat().st_size // 2),
    lambda path: path.write_bytes(b"{"),
    lambda path: os.utime(path, ns=(0, 0)),
    lambda path: path.chmod(0o600),
    lambda path: path.with_name(f".{path.name}.0123456789ab.tmp").write_bytes(b"half"),
    lambda path: path.with_name(f"{path.name}.tmp").write_bytes(b"mine"),
    move_and_link,
    replace_by_copy,
    replace_by_link_to_nothing,
    replace_by_folder,
)
FOLDER_DAMAGES: tuple[Callable[[Path], object], ...] = (
    move_and_link,
    shutil.rmtree,
    lambda path: path.chmod(0o700),
    lambda path: (path / "mine.txt").write_bytes(b"mine"),
    make_loop,
)


def damage(choice: random.Random) -> str:
    """Damage one file or folder of the mirror, and return a text about it."""
    paths = sorted(path for path in MIRROR.rglob("*") if not path.is_symlink())
    path = choice.choice(paths)
    change = choice.choice(FOLDER_DAMAGES if path.is_dir() else FILE_DAMAGES)
    change(path)
    return f"{change} of {path}"


def store_partial(choice: random.Random, archives: Mapping[str, bytes]) -> str:
    """Store bytes of an archive, as a run does that is killed, or wrong ones."""
    data = archives[choice.choice(sorted(archives))]
    name = f"{sha256_of(data)}.tar.xz"
    whole = (data, data[:-1] + b"!", data + b"more", b"")
    names = {name: whole, f"{name}.part": (data[: len(data) // 2], *whole)}
    path = MIRROR / ".mirror/partial" / choice.choice(sorted(names))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(choice.choice(names[path.name]))
    path.chmod(0o600)
    if choice.random() < 0.2:
        path.with_name("second").hardlink_to(path)
    return f"{path}: {path.stat().st_size} of {len(data)} bytes"
