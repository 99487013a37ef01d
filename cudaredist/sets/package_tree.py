"""Arrange one package's files for a toolkit root, for `materialize` and for the invariants.

Unsafe archives are refused here. `features/archive_tree.py` finds what is unsafe.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from cudaredist.errors import InvalidArchiveError
from cudaredist.features.archive_tree import Tree, build_tree
from cudaredist.features.facts import Entry
from cudaredist.features.placement import place_all
from cudaredist.features.wheel import as_redistributable
from cudaredist.formats.names import OutputName
from cudaredist.formats.packageset import SetPackage, TreeChange
from cudaredist.sets.file_outputs import folders_above, is_below
from cudaredist.sets.pkgconfig import unversioned

_PKG_CONFIG = ("pkg-config/", "pkgconfig/")
_LICENSES = ("license", "licence", "eula", "copying", "notice", "third")
_ANY_EXECUTE = 0o111


@dataclass(frozen=True, slots=True)
class PackageTree:
    """Files and links of one package, by path."""

    files: dict[str, Entry]
    links: dict[str, str]
    """Final targets: files or folders."""
    outputs: dict[str, OutputName]
    """Output of each file and link."""


def with_origins(members: Sequence[Entry]) -> list[Entry]:
    """Set each member's origin to its position."""
    return [replace(entry, origin=position) for position, entry in enumerate(members)]


def make_tree(
    archive: str, members: Sequence[Entry], package: SetPackage, *, is_split: bool
) -> PackageTree:
    """Return a package's files and links.

    Applies the tree changes of the package set. Changes for the split layout are skipped in the
    merged layout, because nvcc then finds its parts in its own folder. Raises
    `InvalidArchiveError` for names and links that leave the archive, devices and set-id bits.
    """
    redistributable, _ = as_redistributable(members)
    tree = build_tree(redistributable)
    unsafe = tree.unsafe
    if redistributable is not members:
        # Without the wheel's prefix, names are different: check the original names too.
        unsafe = build_tree(members).unsafe or unsafe
    if unsafe:
        raise InvalidArchiveError(archive, f"cannot be installed: {unsafe[0]}")
    for change in package.normalise:
        if is_split or not change.split_only:
            tree = _changed(tree, change)
    for folder in _PKG_CONFIG:
        tree = _moved(tree, folder, "share/pkgconfig/")
    outputs = {
        _final_path(path, package): (
            placement.output if placement.output in package.outputs else "out"
        )
        for path, placement in place_all(tree.files).items()
    }
    tree = _finished(tree, package)
    folders = {folder for path in (*tree.files, *tree.links) for folder in folders_above(path)}
    links = {
        link: end
        for link, end in tree.links.items()
        # A file or folder takes precedence over a link with the same path.
        if link not in tree.files and link not in folders and (end in tree.files or end in folders)
    }
    first_paths: dict[str, str] = {}
    for path in sorted(outputs):
        _add_first_path(first_paths, path)
    for link, end in links.items():
        outputs[link] = outputs.get(end) or outputs.get(first_paths.get(end, ""), "out")
        _add_first_path(first_paths, link)
    return PackageTree(tree.files, links, outputs)


def is_executable(entry: Entry) -> bool:
    """Check if a file is a program.

    Its mode has an execute bit, or its content is an ELF program.
    """
    if entry.mode & _ANY_EXECUTE:
        return True
    binary = entry.binary
    if binary is None or binary.kind != "elf" or binary.is_shared or binary.machine is None:
        return False
    return not entry.name.endswith(".o")


def _final_path(path: str, package: SetPackage) -> str:
    """Return a file's path in a toolkit.

    Top-level and hidden files move to the package's own folder.
    """
    if "/" in path and not path.startswith("."):
        return path
    is_license = path.lower().startswith(_LICENSES)
    return f"share/{'licenses' if is_license else 'doc'}/{package.attr}/{path}"


def _finished(tree: Tree, package: SetPackage) -> Tree:
    """Move top-level files, and add links to pkg-config files."""
    files = {_final_path(path, package): entry for path, entry in tree.files.items()}
    links = dict(
        (_final_path(link, package), _final_path(end, package))
        if end in tree.files
        else (link, end)
        for link, end in tree.links.items()
    )
    for link, end in unversioned(files):
        links.setdefault(link, end)
    return Tree(files, links)


def _changed(tree: Tree, change: TreeChange) -> Tree:
    source, to = change.source.rstrip("/"), (change.to or "").rstrip("/")
    match change.op:
        case "lift" | "rename":
            below = "" if to in {"", "."} else f"{to}/"
            if source.startswith("lib/") and to == "lib":
                # Remove libraries for other CUDA releases.
                tree = _without(tree, lambda path: _is_other_lib(path, source))
            return _moved(tree, f"{source}/", below)
        case "drop":
            return _without(tree, lambda path: is_below(path, source))
        case "symlink":
            return Tree(tree.files, tree.links | {to: source})


def _is_other_lib(path: str, nested: str) -> bool:
    return path.startswith("lib/") and path != nested and not path.startswith(f"{nested}/")


def _without(tree: Tree, is_removed: Callable[[str], bool]) -> Tree:
    """Return a tree without some of its files and links."""
    files = {path: entry for path, entry in tree.files.items() if not is_removed(path)}
    links = {link: end for link, end in tree.links.items() if not is_removed(link)}
    return Tree(files, links)


def _moved(tree: Tree, old: str, new: str) -> Tree:
    """Move the contents of all folders of a pattern.

    Both `old` and `new` end with a slash, but `new` is empty for the top of the tree.
    """
    depth = old.count("/")
    pattern = old.rstrip("/")

    def new_path(path: str) -> str:
        parts = path.split("/")
        if len(parts) <= depth or not fnmatchcase("/".join(parts[:depth]), pattern):
            return path
        return new + "/".join(parts[depth:])

    def new_target(target: str) -> str:
        # A link's target may be the folder itself.
        is_at_depth = len(target.split("/")) == depth
        if target not in tree.files and is_at_depth and fnmatchcase(target, pattern):
            return new.rstrip("/") or "."
        return new_path(target)

    files = {path: entry for path, entry in tree.files.items() if new_path(path) == path}
    # Moved files replace existing ones: both folders may have the same headers.
    for path, entry in tree.files.items():
        if new_path(path) != path:
            files[new_path(path)] = entry
    links = {new_path(link): new_target(end) for link, end in tree.links.items()}
    return Tree(files, links)


def _add_first_path(first_paths: dict[str, str], path: str) -> None:
    """Update the first path of each folder above a path."""
    for folder in folders_above(path):
        if first_paths.setdefault(folder, path) < path:
            # All folders above this one have a smaller path too.
            return
        first_paths[folder] = path
