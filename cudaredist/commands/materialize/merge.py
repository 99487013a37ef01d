"""Plan the files and links of a toolkit root."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from cudaredist.binaries.file_facts import Binary
from cudaredist.commands.materialize.options import TreeName
from cudaredist.errors import ConflictError, UnsafePathError
from cudaredist.formats.names import OutputName
from cudaredist.formats.packageset import PackageSet
from cudaredist.formats.toolkit_record import (
    RECORD_NAME,
    MissingRunPath,
    PackageName,
    ToolkitLink,
)
from cudaredist.hints import again, quoted
from cudaredist.primitives import Platform, is_inner_path
from cudaredist.sets.file_outputs import folders_above
from cudaredist.sets.package_tree import PackageTree, is_executable

VERSION_NAME = "version.json"
OURS = "cudaredist"
"""Owner of the files that are not from a package."""
_NVVM = "libnvvm"
_LIBRARIES = frozenset({"include", "lib", "lib64"})


class Content(NamedTuple):
    """The content of a file."""

    path: Path
    """A file with this content."""
    sha256: str
    size: int


class PlannedFile(NamedTuple):
    """A file of a toolkit."""

    package: str
    content: Content
    executable: bool
    binary: Binary | None = None
    """Its facts. Also None for a file of an existing root."""
    original_sha256: str | None = None
    """The hash in the archive, if run paths were added to the content."""


@dataclass(slots=True)
class Plan:
    """Files and links of a toolkit, by relative path."""

    files: dict[str, PlannedFile] = field(default_factory=dict)
    links: dict[str, ToolkitLink] = field(default_factory=dict)
    missing_run_paths: dict[str, MissingRunPath] | None = None
    """By library. None: unknown."""


class CrossTarget(NamedTuple):
    """A platform to compile for.

    Its packages provide headers and libraries. The packages of the host provide the rest.
    """

    package_set: PackageSet
    set_sha256: str

    @property
    def platform(self) -> str:
        """The platform, such as `linux-sbsa`."""
        return self.package_set.platform.redist_system

    @property
    def folder(self) -> str:
        """The folder of its files, relative to the root, such as `targets/sbsa-linux`."""
        system, _, machine = self.platform.partition("-")
        return f"targets/{machine}-{system}"

    def placed(self, name: str, tree: PackageTree) -> PackageTree:
        """Return the files and links of a package that a cross toolkit has."""
        files = {}
        for path, entry in tree.files.items():
            new_path = self._path_in_root(name, path)
            if new_path:
                files[new_path] = entry
        links = {}
        for link, end in tree.links.items():
            new_link, new_end = self._path_in_root(name, link), self._path_in_root(name, end)
            # A link to the root itself has an empty end.
            if new_link and new_end:
                links[new_link] = new_end
        outputs = {}
        for path, output in tree.outputs.items():
            new_path = self._path_in_root(name, path)
            if new_path:
                outputs[new_path] = output
        return PackageTree(files, links, outputs)

    def _path_in_root(self, name: str, path: str) -> str | None:
        """Return the path of a package's file in a cross toolkit, None if it is left out."""
        folder, _, rest = path.partition("/")
        is_library = folder in _LIBRARIES or path.startswith("share/pkgconfig/")
        if name == _NVVM and folder in {"lib", "lib64"}:
            # `lib` has the target's library. nvlink loads the one in `nvvm/lib64`.
            return _joined("nvvm/lib64", rest)
        is_of_host = not PackageName(name).platform
        if is_of_host:
            return None if is_library else path
        if not is_library and folder != "share":
            return None
        if folder == "lib64":
            folder = "lib"
        return _joined(self.folder, folder, rest)


def _joined(*parts: str) -> str:
    """Join the parts of a path that are not empty."""
    return "/".join(filter(None, parts))


def make_plan(
    trees: Mapping[str, PackageTree],
    contents: Mapping[str, Mapping[int, Content]],
    *,
    layout: TreeName,
    with_static: bool,
    platform: Platform,
    target: CrossTarget | None = None,
) -> Plan:
    """Return the plan for all files of these packages.

    `contents` has the content of each member, by package and position. If two packages have the
    same file, it is installed once. Different files with one path raise `ConflictError`. In the
    merged layout for Linux, all libraries are in `lib`, with a link from `lib64`, the folder in
    nvcc's profile.
    """
    plan = Plan()
    is_merged_linux = layout == "merged" and platform.os == "linux"
    ends: dict[str, str] = {}
    for attr in sorted(trees):
        tree = target.placed(attr, trees[attr]) if target else trees[attr]
        at = partial(_path_in_layout, attr, layout, is_merged_linux=is_merged_linux)
        for path, entry in sorted(tree.files.items()):
            output = tree.outputs[path]
            if entry.origin is not None and (with_static or output != "static"):
                content = contents[attr][entry.origin]
                planned = PlannedFile(attr, content, is_executable(entry), entry.binary)
                _add_file(plan, at(path, output), planned)
        for link, end in sorted(tree.links.items()):
            output = tree.outputs[link]
            if with_static or output != "static":
                # A folder may be in several outputs. Prefer the output of the link.
                path, to = at(link, output), at(end, tree.outputs.get(end, output))
                _add_link(plan, path, to, attr)
                ends[path] = to
    _drop_dangling(plan, ends)
    if is_merged_linux:
        _add_nvvm_links(plan)
        below = f"{target.folder}/" if target else ""
        links = {"nvvm/lib64": "nvvm/lib", "lib64": f"{below}lib", f"{below}lib64": f"{below}lib"}
        if target:
            links |= {name: f"{below}{name}" for name in ("include", "lib")}
        _add_folder_links(plan, links)
    _check(plan)
    return plan


def _path_in_layout(
    attr: str, layout: TreeName, path: str, output: OutputName, *, is_merged_linux: bool
) -> str:
    """Return the path of a package's file in a root."""
    if layout == "split":
        return f"{attr}/{output}/{path}"
    if is_merged_linux and path.startswith("lib64/"):
        return f"lib/{path.removeprefix('lib64/')}"
    return path


def _conflict(path: str, first: str, second: str) -> ConflictError:
    hint = f"to leave one out, run `{again('--exclude', quoted(PackageName(second).attr))}`"
    return ConflictError(f"{path} differs between {first} and {second}", hint=hint)


def _add_file(plan: Plan, path: str, planned: PlannedFile) -> None:
    other = plan.files.get(path)
    if path in plan.links:
        raise _conflict(path, plan.links[path].package, planned.package)
    if other is None:
        plan.files[path] = planned
    elif other.content.sha256 != planned.content.sha256:
        raise _conflict(path, other.package, planned.package)
    elif planned.executable:
        plan.files[path] = other._replace(executable=True)


def _add_link(plan: Plan, path: str, end: str, attr: str) -> None:
    if path == end:
        # In the merged layout, `lib64/x -> ../lib/x` is `lib/x` itself.
        return
    target = posixpath.relpath(end, posixpath.dirname(path) or ".")
    if path in plan.files:
        raise _conflict(path, plan.files[path].package, attr)
    other = plan.links.setdefault(path, ToolkitLink(target=target, package=attr))
    if other.target != target:
        raise _conflict(path, other.package, attr)


def _drop_dangling(plan: Plan, ends: Mapping[str, str]) -> None:
    """Remove links without a target."""
    folders = {folder for path in plan.files for folder in folders_above(path)}
    for link, end in ends.items():
        if end not in plan.files and end not in folders:
            plan.links.pop(link, None)


def _add_nvvm_links(plan: Plan) -> None:
    """Add links to libnvvm in `nvvm/lib64`, if it is in `lib`, as in wheels.

    nvlink loads it from there for link-time optimization.
    """
    if not any(path.startswith("nvvm/") for path in plan.files):
        return
    names = [path for path in (*plan.files, *plan.links) if path.startswith("lib/libnvvm.so")]
    for path in names:
        name = posixpath.basename(path)
        end = plan.links[path].target if path in plan.links else name
        if f"nvvm/lib64/{name}" not in plan.files:
            _add_link(plan, f"nvvm/lib64/{name}", f"lib/{end}", _NVVM)


def _add_folder_links(plan: Plan, links: Mapping[str, str]) -> None:
    """Add links to folders with files, unless a folder with files has the link's path."""

    def owner_below(path: str) -> str | None:
        for file_path, file in plan.files.items():
            if file_path.startswith(f"{path}/"):
                return file.package
        return None

    for link, folder in links.items():
        owner = owner_below(folder)
        if owner is not None and owner_below(link) is None and link not in plan.links:
            _add_link(plan, link, folder, owner)


def _check(plan: Plan) -> None:
    """Raise `UnsafePathError` or `ConflictError` if a path cannot be created.

    An unsafe path is outside the root. A conflict is a path below a file.
    """
    owners = {path: file.package for path, file in plan.files.items()}
    owners |= {path: link.package for path, link in plan.links.items()}
    for path, owner in owners.items():
        if not is_inner_path(path):
            raise UnsafePathError(path, owner)
        if path in {RECORD_NAME, VERSION_NAME}:
            raise _conflict(path, OURS, owner)
    owners |= dict.fromkeys((RECORD_NAME, VERSION_NAME), OURS)
    folders: set[str] = set()
    for path, owner in owners.items():
        for folder in folders_above(path):
            if folder in folders:
                break
            if folder in owners:
                raise _conflict(folder, owners[folder], owner)
            folders.add(folder)
