"""Tree of an archive's members, with safe names and resolved links."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from cudaredist.features.facts import Entry
from cudaredist.features.links import MEMBER_NAME_LIMIT, Links
from cudaredist.words import shown

_DEPTH_LIMIT = 64
_SET_ID = 0o6000
_IS_ABSOLUTE = re.compile(r"/|[A-Za-z]:")

USUAL_FOLDERS = frozenset(
    {
        *("bin", "compat", "doc", "docs", "include", "lib", "lib64", "nvvm", "pkg-config"),
        *("python", "samples", "share", "src", "stubs", "targets"),
    }
)
"""Folders of a package itself. An archive's top directory has another name."""


@dataclass(slots=True)
class Tree:
    """The contents of an archive, by path below its top directory."""

    files: dict[str, Entry] = field(default_factory=dict)
    """Regular files. A hard link is one more name of a file, with the same facts."""
    links: dict[str, str] = field(default_factory=dict)
    """Symbolic links, each with the path of its final file or folder."""
    notes: list[str] = field(default_factory=list)
    """Oddities, one line each."""
    unsafe: list[str] = field(default_factory=list)
    """The notes about unsafe members. Archives with any of them are not installed."""
    skipped: list[str] = field(default_factory=list)
    """The unsafe notes about files that are not in the tree."""

    def add_unsafe(self, note: str) -> None:
        """Add a note about something unsafe, for which the archive is not installed."""
        self.notes.append(note)
        self.unsafe.append(note)

    def skip(self, note: str) -> None:
        """Add a note about an unsafe file that is not in the tree."""
        self.add_unsafe(note)
        self.skipped.append(note)


def build_tree(members: Sequence[Entry]) -> Tree:
    """Return the tree of an archive's members.

    Names that are absolute, leave the archive or cannot be printed are skipped with a note, and so
    are members below a file. If several members have one name, the last one counts. If a usual
    folder is a link to another folder (`lib -> targets/x86_64-linux/lib`), or if all usual folders
    are in one `targets/<triple>`, the folders move to the top.
    """
    tree = Tree()
    named = _named(members, tree)
    top = _top(named, tree)
    is_folder_at: dict[str, bool] = {"": True}
    placed: dict[str, Entry] = {}
    for name, entry in named.items():
        path = name.removeprefix(top)
        if not _is_folder(name.rpartition("/")[0], named, is_folder_at):
            tree.skip(f"is below a path that is not a folder: {name}")
        elif _IS_ABSOLUTE.match(path):  # a drive of Windows below the top directory
            tree.skip(f"unsafe name: {name!r}")
        elif name != top.rstrip("/"):
            placed[path] = entry
    # It has all parents of members now, also those without an entry.
    folders = {path.removeprefix(top) for path, is_folder in is_folder_at.items() if is_folder}
    folders |= {path for path, entry in placed.items() if entry.kind == "directory"}
    links = Links(placed, top)
    for path, entry in placed.items():
        if entry.kind == "file":
            tree.files[path] = entry
            if entry.mode & _SET_ID:
                tree.add_unsafe(f"set-id bit: {path}")
        elif entry.kind in {"symlink", "hardlink"}:
            _follow(path, entry, placed, folders, links, tree)
        elif entry.kind == "other":
            tree.skip(f"neither file, folder nor link: {path}")
    _move_up(tree)
    return tree


def _named(members: Sequence[Entry], tree: Tree) -> dict[str, Entry]:
    named: dict[str, Entry] = {}
    for entry in members:
        path = _normal(entry.name)
        if path is None:
            tree.skip(f"unsafe name: {shown(entry.name)}")
        elif path:
            earlier = named.pop(path, None)  # the last one counts, also for the order
            if earlier is not None and not (earlier.kind == entry.kind == "directory"):
                tree.notes.append(f"duplicate name: {path}")
            named[path] = entry
    return named


def _normal(name: str) -> str | None:
    """Return a member's normalized name, or None if unsafe.

    Normalized names contain neither `./` nor `//`.
    """
    if len(name) > MEMBER_NAME_LIMIT or not name.isprintable() or "\\" in name:
        return None
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if _IS_ABSOLUTE.match(name) or ".." in parts or len(parts) > _DEPTH_LIMIT:
        return None
    path = "/".join(parts)
    # Return the same string object if possible: there may be a million names.
    return name if path == name else path


def _top(named: Mapping[str, Entry], tree: Tree) -> str:
    """Return the single top directory with slash, else ""."""
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


def _is_folder(path: str, named: Mapping[str, Entry], is_folder_at: dict[str, bool]) -> bool:
    """Check if a path and all its parents are folders.

    Adds the results for the path and its parents to `is_folder_at`.
    """
    if path not in is_folder_at:
        # The recursion ends soon, because `_normal` limits the depth of names.
        is_inside = _is_folder(path.rpartition("/")[0], named, is_folder_at)
        is_folder_at[path] = is_inside and (path not in named or named[path].kind == "directory")
    return is_folder_at[path]


def _follow(
    path: str,
    entry: Entry,
    placed: Mapping[str, Entry],
    folders: AbstractSet[str],
    links: Links,
    tree: Tree,
) -> None:
    """Resolve a link and add it to the tree."""
    end = links.end_of(path)
    if end is None:
        add_note = tree.add_unsafe if entry.kind == "symlink" else tree.skip
        add_note(f"link leaves the archive or is circular: {path}")
    elif end in folders and entry.kind == "symlink":
        tree.links[path] = end
    elif end not in placed or placed[end].kind != "file":
        tree.notes.append(f"dangling link: {path}")
    elif entry.kind == "hardlink":
        tree.files[path] = replace(placed[end], name=entry.name)
    else:
        tree.links[path] = end


def _move_up(tree: Tree) -> None:
    """Move usual folders to the top.

    That concerns folders linked from the top, and those of a single target.
    """
    moves = {
        f"{end}/": f"{link}/"
        for link, end in tree.links.items()
        if link in USUAL_FOLDERS and end.partition("/")[0] not in USUAL_FOLDERS - {"targets"}
    }
    triples = {path.split("/")[1] for path in tree.files if path.startswith("targets/")}
    if len(triples) == 1:
        (triple,) = triples
        for folder in sorted(USUAL_FOLDERS - {"targets"}):
            moves.setdefault(f"targets/{triple}/{folder}/", f"{folder}/")
    taken = {path.partition("/")[0] for path in tree.files}
    for old, new in moves.items():
        moved = [path for path in tree.files if path.startswith(old)]
        if not moved:
            continue
        if new.rstrip("/") in taken:
            tree.notes.append(f"not moved up, because {new} already exists: {old}")
            continue
        tree.links.pop(new.rstrip("/"), None)
        for path in moved:
            tree.files[new + path.removeprefix(old)] = tree.files.pop(path)
        tree.links = {
            _moved(link, old, new): _moved(end, old, new) for link, end in tree.links.items()
        }


def _moved(path: str, old: str, new: str) -> str:
    return new + path.removeprefix(old) if path.startswith(old) else path
