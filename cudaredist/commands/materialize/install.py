"""Create a toolkit root from verified content."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cudaredist.commands.materialize.merge import (
    OURS,
    VERSION_NAME,
    Content,
    CrossTarget,
    Plan,
    PlannedFile,
)
from cudaredist.commands.materialize.missing_run_paths import added_run_paths
from cudaredist.commands.materialize.options import TreeName
from cudaredist.commands.materialize.patchelf import add_run_paths
from cudaredist.commands.materialize.staging import remove_tree
from cudaredist.errors import UsageError, WriteError
from cudaredist.formats.packageset import PackageSet, SetArchive, SetPackage
from cudaredist.formats.toolkit_record import (
    RECORD_NAME,
    MissingRunPath,
    ToolkitFile,
    ToolkitLink,
    ToolkitPackage,
    ToolkitRecord,
)
from cudaredist.jsontext import canonical_json
from cudaredist.primitives import sha256_of
from cudaredist.sets.pkgconfig import PKG_CONFIG_LIMIT, relocatable
from cudaredist.store.files import hash_of, write_file

_PROGRAM, _FILE = 0o755, 0o644
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A toolkit to create."""

    package_set: PackageSet
    set_sha256: str
    packages: Mapping[str, SetPackage]
    """Selected packages, by name in the record."""
    target: CrossTarget | None
    layout: TreeName
    with_static: bool
    libraries: tuple[str, ...] = ()
    """Names of the libraries of a runtime root."""
    patchelf: str | None = None
    """The program that adds missing run paths. None: they are not added."""

    def is_recorded(self, record: ToolkitRecord) -> bool:
        """Check if a record belongs to this toolkit.

        Ignores files, links and missing run paths.
        """
        return record == self.record(record.files, record.links, record.missing_run_paths)

    def has_same_packages(self, record: ToolkitRecord) -> bool:
        """Check if a record differs from this toolkit at most in added run paths."""
        update = {"run_paths": self.patchelf is not None}
        return self.is_recorded(record.model_copy(update=update))

    def record(
        self,
        files: dict[str, ToolkitFile],
        links: dict[str, ToolkitLink],
        missing_run_paths: dict[str, MissingRunPath] | None,
    ) -> ToolkitRecord:
        """Return a record with these files, links and missing run paths."""
        return ToolkitRecord(
            schema_version=1,
            set_sha256=self.set_sha256,
            channel=self.package_set.channel,
            cuda=self.package_set.cuda.release,
            platform=self.package_set.platform.redist_system,
            targets={self.target.platform: self.target.set_sha256} if self.target else {},
            layout=self.layout,
            static=self.with_static,
            libraries=self.libraries,
            run_paths=self.patchelf is not None,
            missing_run_paths=missing_run_paths,
            packages={
                attr: ToolkitPackage(version=p.version or "", archive_sha256=archive_of(p).sha256)
                for attr, p in self.packages.items()
            },
            files=files,
            links=links,
        )


def create_root(new: Path, toolkit: Toolkit, plan: Plan) -> ToolkitRecord:
    """Create a root and its record.

    Raises `WriteError`, and `ContentError` if a run path cannot be added.
    """
    remove_tree(new)
    try:
        files = _Files(new, plan, toolkit).create()
    except OSError as error:
        raise WriteError(error.filename or new, error) from error
    version = _version_json(toolkit.package_set, toolkit.packages)
    write_file(new / VERSION_NAME, version)
    sha256, size = sha256_of(version), len(version)
    files[VERSION_NAME] = ToolkitFile(sha256=sha256, size=size, executable=False, package=OURS)
    record = toolkit.record(files, plan.links, plan.missing_run_paths)
    write_file(new / RECORD_NAME, record.canonical())
    return record


def plan_repair(
    root: Path, record: ToolkitRecord, altered: frozenset[str], plan: Plan
) -> Plan | None:
    """Return the plan of the whole root.

    `plan` covers the altered packages. Returns None if these packages lack an altered file.
    """
    whole = Plan(links=dict(record.links), missing_run_paths=record.missing_run_paths)
    for path, file in record.files.items():
        content = Content(root / path, file.sha256, file.size)
        whole.files[path] = PlannedFile(
            file.package, content, file.executable, original_sha256=file.original_sha256
        )
    whole.files.pop(VERSION_NAME, None)
    for path in altered & whole.files.keys():
        if path not in plan.files:
            return None
        content = plan.files[path].content
        whole.files[path] = whole.files[path]._replace(content=content, original_sha256=None)
    return whole


def archive_of(package: SetPackage) -> SetArchive:
    """Return a package's archive. Raises `UsageError` if it has none."""
    if package.archive is None:
        raise UsageError(f"{package.attr} has no archive")
    return package.archive


@dataclass(slots=True)
class _Files:
    """Creates the files and links of a plan."""

    new: Path
    plan: Plan
    toolkit: Toolkit
    _parents: set[Path] = field(default_factory=set)
    _modes: dict[Path, bool] = field(default_factory=dict)

    def create(self) -> dict[str, ToolkitFile]:
        """Create everything and return the record's files."""
        self.new.mkdir(parents=True)
        files = {path: self._file(path) for path in sorted(self.plan.files)}
        for path in sorted(self.plan.links):
            self._destination(path).symlink_to(self.plan.links[path].target)
        return files

    def _file(self, path: str) -> ToolkitFile:
        planned = self.plan.files[path]
        executable = planned.executable
        source, sha256, size = planned.content
        original_sha256 = planned.original_sha256
        destination = self._destination(path)
        missing = (self.plan.missing_run_paths or {}).get(path)
        if path.endswith(".pc") and size <= PKG_CONFIG_LIMIT:
            package = planned.package if self.toolkit.layout == "split" else None
            target = self.toolkit.target
            below = path.removeprefix(f"{target.folder}/") if target else path
            text = relocatable(source.read_bytes(), below, package, self.plan.files)
            with destination.open("xb") as file:
                size = file.write(text)
            sha256 = sha256_of(text)
        elif self.toolkit.patchelf and missing is not None and original_sha256 is None:
            _copy(source, destination)
            add_run_paths(self.toolkit.patchelf, destination, added_run_paths(path, missing), path)
            original_sha256 = sha256
            sha256, size = hash_of(destination), destination.stat().st_size
        elif self._modes.setdefault(source, executable) is executable:
            _link_or_copy(source, destination)
        else:
            # A hard link cannot have a mode of its own.
            _copy(source, destination)
        destination.chmod(_PROGRAM if executable else _FILE)
        return ToolkitFile(
            sha256=sha256,
            size=size,
            executable=executable,
            package=planned.package,
            original_sha256=original_sha256,
        )

    def _destination(self, path: str) -> Path:
        destination = self.new / path
        if destination.parent not in self._parents:
            destination.parent.mkdir(parents=True, exist_ok=True)
            self._parents.add(destination.parent)
        return destination


def _link_or_copy(source: Path, destination: Path) -> None:
    """Hard-link or copy a file.

    The source stays for a repeated run.
    """
    try:
        os.link(source, destination)
    except OSError:
        _copy(source, destination)


def _copy(source: Path, destination: Path) -> None:
    """Copy a file to a new path.

    Fails if the path exists: some disks take `A` and `a` for one name.
    """
    with source.open("rb") as content, destination.open("xb") as file:
        shutil.copyfileobj(content, file, _PIECE)


def _version_json(package_set: PackageSet, packages: Mapping[str, SetPackage]) -> bytes:
    versions = {
        package.attr: {"name": package.description or package.attr, "version": package.version}
        for package in packages.values()
    }
    cuda = {"name": "CUDA SDK", "version": package_set.cuda.release}
    return canonical_json({"cuda": cuda, **versions})
