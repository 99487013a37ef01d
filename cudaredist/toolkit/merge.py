"""One tree of all packages: who owns each path, and what is in conflict."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from cudaredist.errors import ContentError
from cudaredist.toolkit.tree import PackageTree, is_executable

Layout: TypeAlias = Literal["merged", "split"]


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file of a toolkit."""

    package: str
    origin: int
    """Position of the archive's member that holds its content."""
    executable: bool


@dataclass(slots=True)
class Plan:
    """Where everything goes, by path below the root."""

    files: dict[str, PlannedFile] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    """With their targets, relative to the folder they lie in."""
    link_owners: dict[str, str] = field(default_factory=dict)


class ConflictError(ContentError):
    """Two packages have different files, or links, under one path."""

    kind = "conflict"

    def __init__(self, path: str, first: str, second: str) -> None:
        super().__init__(
            f"{path} is in {first} and in {second}, and not the same",
            hint=f"leave one out with --exclude, or take --layout split: --exclude {second}",
        )


def make_plan(
    trees: Mapping[str, PackageTree],
    hashes: Mapping[str, Mapping[int, str]],
    *,
    layout: Layout,
    with_static: bool,
    is_linux: bool,
) -> Plan:
    """Return where every file of these packages goes.

    `hashes` has the SHA-256 of each member's content, by package and position. The same file in two
    packages is one; different ones raise `ConflictError`. Merged, `lib64` leads to `lib`, where
    nvcc's profile looks.
    """
    plan = Plan()
    for attr in sorted(trees):
        tree = trees[attr]
        left_out = set() if with_static else {"static"}

        def at(path: str, attr: str = attr, tree: PackageTree = tree) -> str:
            if layout == "merged":
                return path
            return f"{attr}/{tree.outputs.get(path, 'out')}/{path}"

        for path, entry in sorted(tree.files.items()):
            if tree.outputs[path] not in left_out and entry.origin is not None:
                planned = PlannedFile(attr, entry.origin, is_executable(entry))
                _add_file(plan, at(path), planned, hashes)
        for link, end in sorted(tree.links.items()):
            if tree.outputs[link] in left_out or (end in tree.files and at(end) not in plan.files):
                continue
            place = at(link)
            target = posixpath.relpath(at(end), posixpath.dirname(place) or ".")
            _add_link(plan, place, target, attr)
    if layout == "merged" and is_linux:
        for folder in ("", "nvvm/"):
            _add_lib64(plan, folder)
    _check_folders(plan)
    return plan


def _add_file(
    plan: Plan, path: str, planned: PlannedFile, hashes: Mapping[str, Mapping[int, str]]
) -> None:
    other = plan.files.get(path)
    if path in plan.links:
        raise ConflictError(path, plan.link_owners[path], planned.package)
    if other is None:
        plan.files[path] = planned
    elif hashes[other.package][other.origin] != hashes[planned.package][planned.origin]:
        raise ConflictError(path, other.package, planned.package)


def _add_link(plan: Plan, path: str, target: str, attr: str) -> None:
    if path in plan.files:
        raise ConflictError(path, plan.files[path].package, attr)
    if plan.links.setdefault(path, target) != target:
        raise ConflictError(path, plan.link_owners[path], attr)
    plan.link_owners.setdefault(path, attr)


def _add_lib64(plan: Plan, folder: str) -> None:
    has = {
        name: any(p.startswith(f"{folder}{name}/") for p in plan.files) for name in ("lib", "lib64")
    }
    link = f"{folder}lib64"
    if has["lib"] and not has["lib64"] and link not in plan.links:
        plan.links[link] = "lib"
        plan.link_owners[link] = next(
            file.package for path, file in plan.files.items() if path.startswith(f"{folder}lib/")
        )


def _check_folders(plan: Plan) -> None:
    """Raise `ConflictError` where something would have to lie below what is no folder."""
    owners = {path: file.package for path, file in plan.files.items()} | plan.link_owners
    for path, owner in owners.items():
        folder = posixpath.dirname(path)
        while folder:
            if folder in owners:
                raise ConflictError(folder, owners[folder], owner)
            folder = posixpath.dirname(folder)
