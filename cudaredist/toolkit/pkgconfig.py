"""pkg-config's files in a toolkit: found without their version, and true wherever the root is."""

import posixpath
import re
from collections.abc import Collection, Iterable, Sequence

PKG_CONFIG_LIMIT = 1 << 16
"""Bytes beyond which a file is none of pkg-config's, whatever it is called."""

_VALUE_LIMIT = 1 << 10

_assignment = re.compile(
    rb"^(cudaroot|prefix|exec_prefix|libdir|includedir)([ \t]*=[ \t]*)([^\r\n]*)", re.MULTILINE
)
_FOLDERS: dict[bytes, tuple[str, Sequence[str]]] = {
    b"libdir": ("lib", ("lib", "out")),
    b"includedir": ("include", ("include", "dev", "out")),
}
"""Which folder a variable means, and the outputs that may have it."""
_below_folder = re.compile(rb".*/(?:lib(?:64)?|include)((?:/[^/]+)*)/?")


def unversioned(files: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield `name.pc`, and what it leads to, for the newest `name-X.Y.pc` of each folder."""
    newest: dict[str, tuple[list[int], str]] = {}
    for path in sorted(files):
        folder, name = posixpath.split(path)
        stem, dash, version = name.removesuffix(".pc").rpartition("-")
        numbers = version.split(".")
        is_version = all(number.isascii() and number.isdigit() for number in numbers)
        if folder and name.endswith(".pc") and dash and is_version:
            link = f"{folder}/{stem}.pc"
            found = ([int(number) for number in numbers], path)
            newest[link] = max(newest.get(link, found), found)
    return ((link, path) for link, (_, path) in newest.items())


def relocatable(text: bytes, path: str, package: str | None, files: Collection[str]) -> bytes:
    """Return a `.pc` file whose folders are given from where it lies, so that the root can move.

    `package` is where the packages lie apart, and `files` are all of the root's.
    """
    depth = path.count("/")
    root = "/".join(["${pcfiledir}", *[".."] * depth])
    # Merged, the one root is every output of every package.
    own = root if package is None else "/".join(["${pcfiledir}", *[".."] * (depth - 2)])

    def value(name: bytes, stated: bytes) -> bytes:
        if name not in _FOLDERS:
            return own.encode()
        folder, outputs = _FOLDERS[name]
        below = _below_folder.fullmatch(stated.rstrip()[:_VALUE_LIMIT])
        place = f"{root}/{_place(folder, package, outputs, files)}"
        return place.encode() + (below[1] if below else b"")

    return _assignment.sub(lambda match: match[1] + match[2] + value(match[1], match[3]), text)


def _place(folder: str, package: str | None, outputs: Sequence[str], files: Collection[str]) -> str:
    if package is None:
        return folder
    places = [f"{package}/{output}/{folder}" for output in outputs]
    holds = (place for place in places if any(path.startswith(f"{place}/") for path in files))
    return next(holds, places[-1])
