"""What one package brings to a toolkit: its files, by the path they get, and its links."""

import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from cudaredist.errors import InvalidArchiveError
from cudaredist.features.archive_tree import Tree, build_tree
from cudaredist.features.facts import Entry
from cudaredist.features.placement import place_all
from cudaredist.features.wheel import as_redistributable
from cudaredist.schema.base import OutputName
from cudaredist.schema.packageset import SetPackage, TreeChange
from cudaredist.toolkit.pkgconfig import unversioned

_PKG_CONFIG = ("pkg-config/", "pkgconfig/")
_LICENSES = ("license", "licence", "eula", "copying", "notice", "third")
_ANY_EXECUTE = 0o111


@dataclass(frozen=True, slots=True)
class PackageTree:
    """The files of one package after its tree was put in order."""

    files: dict[str, Entry]
    links: dict[str, str]
    """With the path, of a file or of a folder, that each leads to in the end."""
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
    raw = build_tree(redistributable)
    unsafe = raw.unsafe
    if redistributable is not members:
        # Taking a wheel's prefix away may make a harmless name of one that is not.
        unsafe = build_tree(members).unsafe or unsafe
    if unsafe:
        raise InvalidArchiveError(where, f"is not laid out: {unsafe[0]}")
    tree = raw
    for change in package.normalise:
        if is_split or not change.split_only:
            tree = _changed(tree, change)
    for folder in _PKG_CONFIG:
        tree = _moved(tree, folder, "share/pkgconfig/")
    outputs = {
        _final(path, package): placed.output if placed.output in package.outputs else "out"
        for path, placed in place_all(tree.files).items()
    }
    tree = _finished(tree, package)
    folders = _folders(tree)
    links = {
        link: end
        for link, end in tree.links.items()
        # What is there itself goes before a link to it.
        if link not in tree.files and link not in folders and (end in tree.files or end in folders)
    }
    first_below: dict[str, str] = {}
    for path in sorted(outputs):
        _enter(first_below, path)
    for link, end in links.items():
        outputs[link] = outputs.get(end) or outputs.get(first_below.get(end, ""), "out")
        _enter(first_below, link)
    return PackageTree(tree.files, links, outputs)


def is_executable(entry: Entry) -> bool:
    """Say whether a file is laid out as a program: by its mode, or by being one."""
    if entry.mode & _ANY_EXECUTE:
        return True
    binary = entry.binary
    if binary is None or binary.kind != "elf" or binary.is_shared or binary.machine is None:
        return False
    return not entry.name.endswith(".o")


def _final(path: str, package: SetPackage) -> str:
    """Return where a file lies; those at the top, and hidden ones, go where no others' are."""
    if "/" in path and not path.startswith("."):
        return path
    is_license = path.lower().startswith(_LICENSES)
    return f"share/{'licenses' if is_license else 'doc'}/{package.attr}/{path}"


def _finished(tree: Tree, package: SetPackage) -> Tree:
    """Bring away what lies at the top, and add links to pkg-config's files."""
    files = {_final(path, package): entry for path, entry in tree.files.items()}
    links = {}
    for link, end in tree.links.items():
        if end in tree.files:
            links[_final(link, package)] = _final(end, package)
        else:
            links[link] = end
    for link, end in unversioned(files):
        links.setdefault(link, end)
    return Tree(files, links)


def _changed(tree: Tree, change: TreeChange) -> Tree:
    source, to = change.source.rstrip("/"), (change.to or "").rstrip("/")
    match change.op:
        case "lift" | "rename":
            below = "" if to in {"", "."} else f"{to}/"
            if source.startswith("lib/") and to == "lib":
                # What is for another CUDA release goes.
                tree = _without(tree, lambda path: _is_beside(path, source))
            return _moved(tree, f"{source}/", below)
        case "drop":
            return _without(tree, lambda path: _is_below(path, source))
        case "symlink":
            return Tree(tree.files, tree.links | {to: source})


def _is_beside(path: str, nested: str) -> bool:
    return path.startswith("lib/") and path != nested and not path.startswith(f"{nested}/")


def _without(tree: Tree, goes: Callable[[str], bool]) -> Tree:
    """Return a tree without some of its files, and without links that lay there or led there."""
    files = {path: entry for path, entry in tree.files.items() if not goes(path)}
    links = {link: end for link, end in tree.links.items() if not goes(link)}
    return Tree(files, links)


def _moved(tree: Tree, old: str, new: str) -> Tree:
    """Return a tree in which what lies below one folder, or those of a pattern, lies in another."""
    count = old.count("/")
    pattern = old.rstrip("/")

    def at(path: str, least: int = 1) -> str:
        parts = path.split("/")
        if len(parts) < count + least or not fnmatchcase("/".join(parts[:count]), pattern):
            return path
        return (new + "/".join(parts[count:])).rstrip("/") or "."

    files = {at(path): entry for path, entry in tree.files.items() if at(path) == path}
    # What is moved takes the place of what is there: the same headers may lie in both.
    files |= {at(path): entry for path, entry in tree.files.items() if at(path) != path}
    # A link may lead to the folder itself.
    links = {at(link): at(end, 1 if end in tree.files else 0) for link, end in tree.links.items()}
    return Tree(files, links)


def _folders(tree: Tree) -> set[str]:
    """Return every folder that something lies in."""
    found: set[str] = set()
    for path in (*tree.files, *tree.links):
        for folder in folders_above(path):
            if folder in found:
                break
            found.add(folder)
    return found


def folders_above(path: str) -> Iterator[str]:
    """Yield the folders above a path, nearest first."""
    while (folder := posixpath.dirname(path)) not in {"", path}:
        yield folder
        path = folder


def _is_below(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern) or any(
        fnmatchcase(folder, pattern) for folder in folders_above(path)
    )


def _enter(first_below: dict[str, str], path: str) -> None:
    """Enter a path for the folders above it of which it is the first path in order."""
    for folder in folders_above(path):
        if first_below.setdefault(folder, path) < path:
            # So it is for all folders above this one.
            return
        first_below[folder] = path
