"""The tree that an archive's members make: safe names only, links followed inside it only."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from cudaredist.errors import shown
from cudaredist.features.facts import Entry

_NAME_LIMIT = 1024
_LINK_LIMIT = 40
"""Links that may stand in one way; Linux gives up at the same number."""
_SET_ID = 0o6000
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\:]|^/")

USUAL_FOLDERS = frozenset(
    {
        *("bin", "compat", "doc", "docs", "include", "lib", "lib64", "nvvm", "pkg-config"),
        *("python", "samples", "share", "src", "stubs", "targets"),
    }
)
"""Folders of a package itself; an archive's top directory is called otherwise."""

_LIFTED = re.compile(r"targets/[^/]+/(?=(?:bin|include|lib|lib64|stubs)/)")


@dataclass(slots=True)
class Tree:
    """What an archive holds, by path below its top directory."""

    files: dict[str, Entry] = field(default_factory=dict)
    """Regular files."""
    links: dict[str, str] = field(default_factory=dict)
    """Links, symbolic and hard, with the path of the file or folder each leads to."""
    notes: list[str] = field(default_factory=list)
    """What is odd, one line each."""


def build_tree(members: Sequence[Entry]) -> Tree:
    """Return the tree that members make.

    Names that are absolute, leave the archive or hold characters no honest name has are left out
    with a note; of members with the same name the last counts; a member below one that is no
    folder is left out. `targets/<triple>/` is taken away where a usual folder follows it, and a
    link at the top to such a folder gives way to it.
    """
    tree = Tree()
    named: dict[str, Entry] = {}
    for entry in members:
        path = _normal(entry.name)
        if path is None:
            tree.notes.append(f"unsafe name: {shown(entry.name)}")
            continue
        if not path:
            continue
        earlier = named.pop(path, None)
        if earlier is not None and not (earlier.kind == entry.kind == "directory"):
            tree.notes.append(f"name stands twice: {path}")
        named[path] = entry
    top = _top(named, tree)
    for path, entry in _placed(named, top, tree):
        if entry.kind == "file":
            tree.files[path] = entry
            if entry.mode & _SET_ID:
                tree.notes.append(f"set-id bit: {path}")
        elif entry.kind == "other":
            tree.notes.append(f"neither file, folder nor link: {path}")
    _follow_links(named, top, tree)
    return tree


def _normal(name: str) -> str | None:
    """Return a member's name without `./` and `//`; None where it is not safe."""
    if len(name) > _NAME_LIMIT or _UNSAFE.search(name):
        return None
    parts = [part for part in name.split("/") if part not in {"", "."}]
    return None if ".." in parts else "/".join(parts)


def _top(named: dict[str, Entry], tree: Tree) -> str:
    """Return the one top directory with its slash, or nothing where there is none to take away."""
    tops = Counter(path.partition("/")[0] for path in named)
    if len(tops) == 1:
        top = next(iter(tops))
        is_folder = top not in named or named[top].kind == "directory"
        if is_folder and top not in USUAL_FOLDERS:
            return f"{top}/"
    elif tops and not USUAL_FOLDERS & tops.keys():
        names = ", ".join(sorted(tops)[:5])
        tree.notes.append(f"no single top directory: {names}")
    return ""


def _placed(named: dict[str, Entry], top: str, tree: Tree) -> Iterable[tuple[str, Entry]]:
    """Yield the members with their paths in the tree, but those below something no folder."""
    for name, entry in named.items():
        parent = next(
            (str(p) for p in PurePosixPath(name).parents if _is_no_folder(named.get(str(p)))), None
        )
        if parent is not None:
            tree.notes.append(f"lies below something that is no folder: {name}")
        elif name.startswith(top):
            yield _lifted(name.removeprefix(top)), entry


def _is_no_folder(entry: Entry | None) -> bool:
    return entry is not None and entry.kind != "directory"


def _lifted(path: str) -> str:
    return _LIFTED.sub("", path, count=1) if path.startswith("targets/") else path


def _follow_links(named: dict[str, Entry], top: str, tree: Tree) -> None:
    folders = {str(parent) for name in named for parent in PurePosixPath(name).parents}
    folders |= {name for name, entry in named.items() if entry.kind == "directory"}
    for name, entry in named.items():
        if entry.kind not in {"symlink", "hardlink"} or not name.startswith(top):
            continue
        path = _lifted(name.removeprefix(top))
        end = _end_of(name, named)
        if end is None or not end.startswith(top):
            tree.notes.append(f"leads outside the archive or in a circle: {path}")
        elif end in named or end in folders:
            tree.links[path] = _lifted(end.removeprefix(top))
        else:
            tree.notes.append(f"leads to nothing: {path}")


def _end_of(name: str, named: dict[str, Entry]) -> str | None:
    """Return the path that a link leads to in the end; None where it leaves the archive."""
    waiting = name.split("/")[::-1]
    here: list[str] = []
    budget = _LINK_LIMIT
    while waiting:
        part = waiting.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            if not here:
                return None
            here.pop()
            continue
        here.append(part)
        entry = named.get("/".join(here))
        if entry is None or entry.target is None:
            continue
        budget -= 1
        if not budget or entry.target.startswith("/") or len(entry.target) > _NAME_LIMIT:
            return None
        here = [] if entry.kind == "hardlink" else here[:-1]
        waiting.extend(entry.target.split("/")[::-1])
    return "/".join(here)
