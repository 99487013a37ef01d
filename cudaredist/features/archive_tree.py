"""The tree that an archive's members make: safe names only, links followed inside it only."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cudaredist.errors import shown
from cudaredist.features.facts import Entry
from cudaredist.features.links import MEMBER_NAME_LIMIT, Links

_DEPTH_LIMIT = 64
_SET_ID = 0o6000
_IS_ABSOLUTE = re.compile(r"/|[A-Za-z]:")

USUAL_FOLDERS = frozenset(
    {
        *("bin", "compat", "doc", "docs", "include", "lib", "lib64", "nvvm", "pkg-config"),
        *("python", "samples", "share", "src", "stubs", "targets"),
    }
)
"""Folders of a package itself; an archive's top directory is called otherwise."""


@dataclass(slots=True)
class Tree:
    """What an archive holds, by path below its top directory."""

    files: dict[str, Entry] = field(default_factory=dict)
    """Regular files; a hard link is one more name of a file, with all that is known of it."""
    links: dict[str, str] = field(default_factory=dict)
    """Symbolic links, with the path of the file or folder each leads to in the end."""
    notes: list[str] = field(default_factory=list)
    """What is odd, one line each."""
    unsafe: list[str] = field(default_factory=list)
    """Those of the notes that no honest archive has, and for which none is laid out."""

    def refuse(self, note: str) -> None:
        """Note something unsafe."""
        self.notes.append(note)
        self.unsafe.append(note)


def build_tree(members: Sequence[Entry]) -> Tree:
    """Return the tree that members make.

    Names that are absolute, leave the archive or cannot be printed are left out with a note; of
    members with the same name the last counts; a member below one that is no folder is left out.
    Where a usual folder is a link to another one (`lib -> targets/x86_64-linux/lib`), and where all
    of them lie in one `targets/<triple>`, the folder comes to the top.
    """
    tree = Tree()
    named = _named(members, tree)
    top = _top(named, tree)
    folders: dict[str, bool] = {"": True}
    placed = {
        name.removeprefix(top): entry
        for name, entry in named.items()
        if _is_inside(name, named, folders, tree) and name != top.rstrip("/")
    }
    known = {name.removeprefix(top) for name, is_one in folders.items() if is_one}
    known |= {path for path, entry in placed.items() if entry.kind == "directory"}
    links = Links(placed, top)
    for path, entry in placed.items():
        match entry.kind:
            case "file":
                tree.files[path] = entry
                if entry.mode & _SET_ID:
                    tree.refuse(f"set-id bit: {path}")
            case "symlink" | "hardlink":
                _follow(path, entry, placed, known, links, tree)
            case "other":
                tree.refuse(f"neither file, folder nor link: {path}")
            case "directory":
                pass
    _bring_up(tree)
    return tree


def _named(members: Sequence[Entry], tree: Tree) -> dict[str, Entry]:
    named: dict[str, Entry] = {}
    for entry in members:
        path = _normal(entry.name)
        if path is None:
            tree.refuse(f"unsafe name: {shown(entry.name)}")
        elif path:
            earlier = named.pop(path, None)
            if earlier is not None and not (earlier.kind == entry.kind == "directory"):
                tree.notes.append(f"name stands twice: {path}")
            named[path] = entry
    return named


def _normal(name: str) -> str | None:
    """Return a member's name without `./` and `//`; None where it is not safe."""
    if len(name) > MEMBER_NAME_LIMIT or not name.isprintable() or "\\" in name:
        return None
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if _IS_ABSOLUTE.match(name) or ".." in parts or len(parts) > _DEPTH_LIMIT:
        return None
    path = "/".join(parts)
    # The same string, not an equal one: there may be a million of them.
    return name if path == name else path


def _top(named: Mapping[str, Entry], tree: Tree) -> str:
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


def _is_inside(name: str, named: Mapping[str, Entry], folders: dict[str, bool], tree: Tree) -> bool:
    """Say whether everything above a member is a folder; `folders` remembers what was found."""
    above: list[str] = []
    folder = name.rpartition("/")[0]
    while folder not in folders:
        above.append(folder)
        folder = folder.rpartition("/")[0]
    is_folder = folders[folder]
    for folder in reversed(above):
        entry = named.get(folder)
        is_folder = is_folder and (entry is None or entry.kind == "directory")
        folders[folder] = is_folder
    if not is_folder:
        tree.refuse(f"lies below something that is no folder: {name}")
    return is_folder


def _follow(
    path: str, entry: Entry, placed: Mapping[str, Entry], known: set[str], links: Links, tree: Tree
) -> None:
    """Resolve a link and add it to the tree."""
    end = links.end_of(path)
    if end is None:
        tree.refuse(f"leads outside the archive or in a circle: {path}")
    elif end in known and entry.kind == "symlink":
        tree.links[path] = end
    elif end not in placed or placed[end].kind != "file":
        tree.notes.append(f"leads to nothing: {path}")
    elif entry.kind == "hardlink":
        tree.files[path] = replace(placed[end], name=entry.name)
    else:
        tree.links[path] = end


def _bring_up(tree: Tree) -> None:
    """Bring folders to the top that a link there leads to, and those of the one target."""
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
            tree.notes.append(f"left where it is, as {new} is there already: {old}")
            continue
        tree.links.pop(new.rstrip("/"), None)
        for path in moved:
            tree.files[new + path.removeprefix(old)] = tree.files.pop(path)
        tree.links = {
            _moved(link, old, new): _moved(end, old, new) for link, end in tree.links.items()
        }


def _moved(path: str, old: str, new: str) -> str:
    return new + path.removeprefix(old) if path.startswith(old) else path
