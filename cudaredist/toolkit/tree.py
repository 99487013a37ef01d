"""What one package brings to a toolkit: its files, by the path they get, and its links."""

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from cudaredist.errors import InvalidArchiveError
from cudaredist.features import Entry, as_redistributable, build_tree, place_all
from cudaredist.schema import OutputName, SetPackage, TreeChange

_PKG_CONFIG = ("pkg-config/", "pkgconfig/")
_LICENCES = ("license", "licence", "eula", "copying", "notice", "third")
_ANY_EXECUTE = 0o111


@dataclass(frozen=True, slots=True)
class PackageTree:
    """The files of one package after its tree was put in order."""

    files: dict[str, Entry]
    links: dict[str, str]
    """With the path that each leads to in the end."""
    outputs: dict[str, OutputName]
    """Of files and links."""


def with_origins(members: Sequence[Entry]) -> list[Entry]:
    """Return an archive's members, each knowing its position, under which its content is kept."""
    return [replace(entry, origin=position) for position, entry in enumerate(members)]


def make_tree(
    where: str, members: Sequence[Entry], package: SetPackage, *, is_split: bool
) -> PackageTree:
    """Return what a package brings, in the order the set's document asks for.

    Changes that only make sense where packages lie apart are left out where they are merged: nvcc
    finds its parts beside itself then. Raises `InvalidArchiveError` about `where` for names and
    links that leave the archive, devices and set-id bits.
    """
    redistributable, _ = as_redistributable(members)
    tree = build_tree(redistributable)
    if tree.unsafe:
        raise InvalidArchiveError(where, f"is not laid out: {tree.unsafe[0]}")
    files, links = tree.files, tree.links
    for change in package.normalise:
        if is_split or change.source.startswith("lib/"):
            files, links = _changed(files, links, change)
    for folder in _PKG_CONFIG:
        files, links = _moved(files, links, folder, "share/pkgconfig/")
    placed = place_all(files)
    outputs = {path: _declared(entry.output, package) for path, entry in placed.items()}
    files = {_final(path, package): entry for path, entry in files.items()}
    outputs = {_final(path, package): output for path, output in outputs.items()}
    links = {link: _final(end, package) for link, end in links.items()}
    for link, end in _unversioned(files):
        links.setdefault(link, end)
    kept = {link: end for link, end in links.items() if link not in files}
    for link, end in kept.items():
        outputs[link] = outputs.get(end) or _output_below(end, outputs)
    return PackageTree(files, kept, outputs)


def is_executable(entry: Entry) -> bool:
    """Say whether a file is laid out as a program: by its mode, or by being one."""
    if entry.mode & _ANY_EXECUTE:
        return True
    binary = entry.binary
    return binary is not None and binary.kind == "elf" and not binary.is_shared


def _declared(output: OutputName, package: SetPackage) -> OutputName:
    return output if output in package.outputs else "out"


def _final(path: str, package: SetPackage) -> str:
    """Return where a file lies; those at the top go where no other package's are."""
    if "/" in path:
        return path
    is_licence = path.lower().startswith(_LICENCES)
    return f"share/{'licenses' if is_licence else 'doc'}/{package.pname}/{path}"


def _changed(
    files: dict[str, Entry], links: dict[str, str], change: TreeChange
) -> tuple[dict[str, Entry], dict[str, str]]:
    source, to = change.source.rstrip("/"), (change.to or "").rstrip("/")
    match change.op:
        case "lift" | "rename":
            below = "" if to in {"", "."} else f"{to}/"
            if source.startswith(f"{to}/") and to == "lib":
                # What is for another CUDA release goes.
                files = {
                    path: entry
                    for path, entry in files.items()
                    if not path.startswith("lib/") or path.startswith(f"{source}/")
                }
            return _moved(files, links, f"{source}/", below)
        case "drop":
            return (
                {path: entry for path, entry in files.items() if not _is_below(path, source)},
                {link: end for link, end in links.items() if not _is_below(link, source)},
            )
        case "symlink":
            return files, links | {to: source}


def _moved(
    files: dict[str, Entry], links: dict[str, str], old: str, new: str
) -> tuple[dict[str, Entry], dict[str, str]]:
    def at(path: str) -> str:
        if "*" in old:
            parts = path.split("/")
            count = old.count("/")
            beginning = "/".join(parts[:count]) + "/"
            return new + "/".join(parts[count:]) if fnmatchcase(beginning, old) else path
        return new + path.removeprefix(old) if path.startswith(old) else path

    moved = {at(path): entry for path, entry in files.items() if at(path) == path}
    # What is moved takes the place of what is there: the same headers may lie in both.
    moved |= {at(path): entry for path, entry in files.items() if at(path) != path}
    ends = {at(link): at(end) for link, end in links.items()}
    alive = {posixpath.dirname(path) for path in moved}
    folders = {folder for path in alive for folder in _above(path)}
    return moved, {link: end for link, end in ends.items() if end in moved or end in folders}


def _above(path: str) -> Iterable[str]:
    while path:
        yield path
        path = posixpath.dirname(path)


def _is_below(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern) or any(
        fnmatchcase(folder, pattern) for folder in _above(posixpath.dirname(path))
    )


def _unversioned(files: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield `name.pc` beside each `name-X.Y.pc`."""
    for path in sorted(files):
        folder, name = posixpath.split(path)
        stem, dash, version = name.removesuffix(".pc").rpartition("-")
        if name.endswith(".pc") and dash and version.replace(".", "").isdigit():
            yield f"{folder}/{stem}.pc", path


def _output_below(folder: str, outputs: dict[str, OutputName]) -> OutputName:
    below = sorted(path for path in outputs if path.startswith(f"{folder}/"))
    return outputs[below[0]] if below else "out"
