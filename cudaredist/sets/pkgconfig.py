"""Adapt pkg-config files: names without a version, and relative paths."""

import posixpath
import re
from collections.abc import Collection, Iterable, Sequence

PKG_CONFIG_LIMIT = 1 << 16
"""Largest size of a pkg-config file, in bytes. Larger files are not changed."""

_VALUE_LIMIT = 1 << 10

_assignment = re.compile(
    rb"^(cudaroot|prefix|exec_prefix|libdir|includedir)([ \t]*=[ \t]*)([^\r\n]*)", re.MULTILINE
)
_FOLDERS: dict[bytes, tuple[str, Sequence[str]]] = {
    b"libdir": ("lib", ("lib", "out")),
    b"includedir": ("include", ("include", "dev", "out")),
}
"""For each variable: its folder, and the outputs that may contain it."""
_below_folder = re.compile(rb".*/(?:lib(?:64)?|include)((?:/[^/]+)*)/?").fullmatch


def unversioned(files: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield links `name.pc` to each folder's newest `name-X.Y.pc`.

    A link is a pair of paths: the link and its target.
    """
    newest: dict[str, tuple[list[int], str]] = {}
    for path in sorted(files):
        folder, name = posixpath.split(path)
        stem, dash, version = name.removesuffix(".pc").rpartition("-")
        numbers = version.split(".")
        is_version = all(number.isascii() and number.isdigit() for number in numbers)
        if folder and name.endswith(".pc") and dash and is_version:
            link = f"{folder}/{stem}.pc"
            candidate = ([int(number) for number in numbers], path)
            newest[link] = max(newest.get(link, candidate), candidate)
    return ((link, path) for link, (_, path) in newest.items())


def relocatable(text: bytes, path: str, package: str | None, files: Collection[str]) -> bytes:
    """Rewrite a `.pc` file with relative paths.

    A root can then be moved. `package` is None in the merged layout. `files` are all files of
    the root.
    """
    depth = path.count("/")
    root = "/".join(["${pcfiledir}", *[".."] * depth])
    # In the merged layout, all packages and outputs share one root.
    own = root if package is None else "/".join(["${pcfiledir}", *[".."] * (depth - 2)])

    def value(name: bytes, original: bytes) -> bytes:
        if name not in _FOLDERS:
            return own.encode()
        folder, outputs = _FOLDERS[name]
        below = _below_folder(original.rstrip()[:_VALUE_LIMIT])
        path = f"{root}/{_folder_path(folder, package, outputs, files)}"
        return path.encode() + (below[1] if below else b"")

    return _assignment.sub(lambda match: match[1] + match[2] + value(match[1], match[3]), text)


def _folder_path(
    folder: str, package: str | None, outputs: Sequence[str], files: Collection[str]
) -> str:
    if package is None:
        return folder
    paths = [f"{package}/{output}/{folder}" for output in outputs]
    nonempty = (path for path in paths if any(file.startswith(f"{path}/") for file in files))
    return next(nonempty, paths[-1])
