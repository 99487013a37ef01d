"""materialize: a toolkit root from a package set; proved, built beside its place, and renamed."""

import hashlib
import os
import posixpath
import re
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_INTEGRITY,
    EXIT_OK,
    ContentError,
    CudaRedistError,
    IncompleteError,
    IntegrityError,
    StoppedError,
    UsageError,
    WriteError,
)
from cudaredist.jsontext import canonical_json
from cudaredist.pipeline.examine import Examination, Wanted
from cudaredist.pipeline.tasks import Task, run_tasks
from cudaredist.pipeline.unpack import Unpacked, unpack
from cudaredist.primitives import sha256_of
from cudaredist.redists import REDISTS
from cudaredist.reports import ToolkitReport
from cudaredist.schema import (
    FILE_KINDS,
    ComponentPolicy,
    ComponentSet,
    PackageSet,
    SetArchive,
    SetPackage,
    ToolkitFile,
    ToolkitLink,
    ToolkitPackage,
    ToolkitRecord,
    read_own_file,
)
from cudaredist.source import ByteProgress, NoByteProgress, SourceChain
from cudaredist.store import Store, read_file, write_file, writing
from cudaredist.toolkit import Plan, make_plan, make_tree, select_packages
from cudaredist.toolkit.merge import Layout

RECORD_NAME = ".cudaredist.json"
_CUDA_ROOT = re.compile(rb"^(cudaroot|libdir|includedir|prefix)[ \t]*=.*$", re.MULTILINE)


@dataclass(kw_only=True)
class Materialization:
    """One toolkit root to be laid out."""

    package_set: PackageSet
    set_sha256: str
    packages: Mapping[str, SetPackage]
    """What it is made of, by name."""
    required: Sequence[ComponentSet]
    """Named sets that were asked for, whose programs must be there."""
    root: Path
    layout: Layout
    with_static: bool
    sources: SourceChain
    stop: threading.Event
    has_archives: bool = False
    """Whether a source is a folder of archives, in which they may lie by their names alone."""
    max_download: int | None = None
    jobs: int = 1
    threads: int = 1
    progress: ByteProgress = field(default_factory=NoByteProgress)
    announce: Callable[[str], None] = lambda _: None
    _fetched: int = 0
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    @property
    def workshop(self) -> Path:
        """The folder beside the root in which everything is made; a later run goes on in it."""
        return self.root.with_name(f".{self.root.name}.cudaredist")

    def run(self) -> ToolkitReport:
        """Lay out the root; nothing is done where it is there as asked for.

        Raises `UsageError` for a root that is not ours, and whatever keeps an archive from being
        laid out; nothing of the root is there then.
        """
        held = self._held()
        if held is not None and self._wanted_by(held):
            return self._report(held, "unchanged")
        self._check_sizes()
        with writing(self.workshop):
            try:
                unpacked = self._unpack()
                record = self._build(unpacked)
            except (ContentError, IntegrityError, WriteError, UsageError):
                # Trying again would find the same; the disk may be full of it.
                shutil.rmtree(self.workshop, ignore_errors=True)
                raise
            self._put()
        return self._report(record, "written")

    # -- what there is

    def _held(self) -> ToolkitRecord | None:
        if not self.root.exists():
            return None
        record = read_record(self.root)
        if record is None and (not self.root.is_dir() or any(self.root.iterdir())):
            raise UsageError(
                f"{self.root} is there and no toolkit root of ours (it has no {RECORD_NAME})",
                hint="name a folder that is not there yet, or an empty one",
            )
        return record

    def _wanted_by(self, record: ToolkitRecord) -> bool:
        packages = {name: package.archive_sha256 for name, package in record.packages.items()}
        return (
            record.set_sha256 == self.set_sha256
            and record.layout == self.layout
            and record.static == self.with_static
            and packages == {name: _archive(p).sha256 for name, p in self.packages.items()}
            and all(
                (self.root / path).is_file() and (self.root / path).stat().st_size == file.size
                for path, file in record.files.items()
            )
            and all(os.path.lexists(self.root / path) for path in record.links)
        )

    def _check_sizes(self) -> None:
        archives = [_archive(package) for package in self.packages.values()]
        known = sum(archive.size or 0 for archive in archives)
        unknown = sum(archive.size is None for archive in archives)
        unpacked = sum(
            part.bytes for package in self.packages.values() for part in package.contents.values()
        )
        sizes = f"{known:,} bytes" + (f" and {unknown} of unknown size" if unknown else "")
        self.announce(
            f"{len(archives)} archives, {sizes}; {unpacked:,} bytes unpacked (as far as known)"
        )
        limit = self.max_download
        if limit is not None and known > limit:
            raise UsageError(
                f"{known:,} bytes are to be fetched, more than --max-download {limit:,}",
                hint="name fewer components, or --exclude some",
            )
        parent = next(
            p for p in (self.root.absolute(), *self.root.absolute().parents) if p.exists()
        )
        free = shutil.disk_usage(parent).free
        if unpacked > free:
            raise WriteError(
                self.root, OSError(f"needs {unpacked:,} bytes, and {free:,} are free there")
            )

    # -- archives

    def _unpack(self) -> dict[str, Unpacked]:
        found: dict[str, Unpacked] = {}
        errors: list[CudaRedistError] = []
        self.progress.expect(sum(_archive(p).size or 0 for p in self.packages.values()))

        def work(attr: str, package: SetPackage) -> list[Task]:
            archive = _archive(package)
            wanted = self._where(package, archive)
            number = self.progress.begin(wanted.name, wanted.size)
            examination = Examination(
                sources=self.sources,
                advance=partial(self.progress.advance, number),
                fetched=self._count,
                threads=self.threads,
            )
            try:
                if self.stop.is_set():
                    raise StoppedError
                folder = self.workshop / "archives" / archive.sha256
                unpacked = unpack(examination, wanted, folder)
                with self._mutex:
                    found[attr] = unpacked
            except CudaRedistError as error:
                with self._mutex:
                    errors.append(error)
                self.stop.set()
            finally:
                self.progress.end(number)
            return []

        run_tasks(
            [partial(work, attr, package) for attr, package in self.packages.items()],
            self.jobs,
            self.stop,
        )
        if errors:
            # The first one stopped the others, which say only that.
            raise next((e for e in errors if not isinstance(e, StoppedError)), errors[0])
        return found

    def _count(self, size: int) -> None:
        with self._mutex:
            self._fetched += size
            limit = self.max_download
        if limit is not None and self._fetched > limit:
            self.stop.set()
            raise IncompleteError(
                f"more than --max-download {limit:,} bytes came",
                hint="name fewer components; what is there already is kept for the next run",
            )

    def _where(self, package: SetPackage, archive: SetArchive) -> Wanted:
        path, name = archive.relative_path, posixpath.basename(archive.relative_path)
        known = REDISTS.get(package.redist or "")
        folders = known.archive_folders if known else (f"compute/{package.redist}/redist",)
        if self.package_set.channel == "wheels":
            folders = ("",)
        paths = [posixpath.normpath(posixpath.join(folder, path)) for folder in folders]
        if self.has_archives:
            paths += [path, name]
        inside = [path for path in paths if not path.startswith("../")]
        return Wanted(name, tuple(dict.fromkeys(inside)), archive.sha256, archive.size)

    # -- the root

    def _build(self, unpacked: Mapping[str, Unpacked]) -> ToolkitRecord:
        is_split = self.layout == "split"
        trees = {
            attr: make_tree(
                posixpath.basename(_archive(package).relative_path),
                unpacked[attr].members,
                package,
                is_split=is_split,
            )
            for attr, package in self.packages.items()
        }
        plan = make_plan(
            trees,
            {attr: found.hashes for attr, found in unpacked.items()},
            layout=self.layout,
            with_static=self.with_static,
            is_linux=self.package_set.platform.redist_system.startswith("linux-"),
        )
        self._check_programs(plan)
        new = self.workshop / "root"
        try:
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
            files = {
                path: self._put_file(new / path, path, planned.package, unpacked, plan)
                for path, planned in sorted(plan.files.items())
            }
            for path, target in sorted(plan.links.items()):
                place = new / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(target)
        except OSError as error:
            raise WriteError(error.filename or new, error) from error
        version = self._version_json()
        write_file(new / "version.json", version)
        files["version.json"] = ToolkitFile(
            sha256=sha256_of(version), size=len(version), executable=False, package="cudaredist"
        )
        record = ToolkitRecord(
            schema_version=1,
            set_sha256=self.set_sha256,
            channel=self.package_set.channel,
            cuda=self.package_set.cuda.release,
            platform=self.package_set.platform.redist_system,
            layout=self.layout,
            static=self.with_static,
            packages={
                attr: ToolkitPackage(
                    version=package.version or "", archive_sha256=_archive(package).sha256
                )
                for attr, package in self.packages.items()
            },
            files=files,
            links={
                path: ToolkitLink(target=target, package=plan.link_owners[path])
                for path, target in plan.links.items()
            },
        )
        write_file(new / RECORD_NAME, canonical_json(record.model_dump(mode="json")))
        return record

    def _check_programs(self, plan: Plan) -> None:
        names = {posixpath.basename(path).removesuffix(".exe") for path in plan.files}
        for component in self.required:
            lacking = [name for name in component.programs if name not in names]
            if lacking:
                raise UsageError(
                    f"the packages of CUDA {self.package_set.cuda.release} in the "
                    f"{self.package_set.channel} channel have no {', '.join(lacking)}",
                    hint="another release or channel may; name single packages to go without",
                )

    def _put_file(
        self, place: Path, path: str, attr: str, unpacked: Mapping[str, Unpacked], plan: Plan
    ) -> ToolkitFile:
        planned, content = plan.files[path], unpacked[attr]
        origin = planned.origin
        source = content.content(origin)
        sha256, size = content.hashes[origin], content.sizes[origin]
        place.parent.mkdir(parents=True, exist_ok=True)
        mode = 0o755 if planned.executable else 0o644
        if path.endswith(".pc"):
            text = relocatable(source.read_bytes(), path, self.layout, attr, plan)
            place.write_bytes(text)
            place.chmod(mode)
            sha256, size = sha256_of(text), len(text)
        else:
            try:
                os.link(source, place)
            except OSError:
                shutil.copyfile(source, place)
            # Two packages, or two names, may have one content; the mode is the last one's then.
            place.chmod(mode)
        return ToolkitFile(sha256=sha256, size=size, executable=planned.executable, package=attr)

    def _version_json(self) -> bytes:
        release = self.package_set.cuda.release
        versions = {
            attr: {"name": package.description or attr, "version": package.version}
            for attr, package in self.packages.items()
        }
        return canonical_json({"cuda": {"name": "CUDA SDK", "version": release}, **versions})

    def _put(self) -> None:
        """Give the root its name; what was there before goes away afterwards."""
        old = self.workshop / "old"
        try:
            if self.root.exists():
                shutil.rmtree(old, ignore_errors=True)
                self.root.rename(old)
            else:
                self.root.parent.mkdir(parents=True, exist_ok=True)
            (self.workshop / "root").rename(self.root)
        except OSError as error:
            raise WriteError(self.root, error) from error
        shutil.rmtree(self.workshop, ignore_errors=True)

    def _report(self, record: ToolkitRecord, status: str) -> ToolkitReport:
        return toolkit_report(self.root, record, status, fetched_bytes=self._fetched)


@dataclass(frozen=True, slots=True)
class ReadSet:
    """A package set and the hash of its document."""

    value: PackageSet
    sha256: str


def read_package_set(path: Path) -> ReadSet:
    """Return the package set in a file; `InvalidFileError` where it is none."""
    data = read_file(path)
    if data is None:
        raise UsageError(f"{path}: no such file", hint="cudaredist build makes package sets")
    value = read_own_file(data, FILE_KINDS["package-set"])
    if not isinstance(value, PackageSet):
        raise TypeError
    return ReadSet(value, sha256_of(data))


def read_component_policy(store: Store) -> ComponentPolicy:
    """Return what the words for components mean. Raises `InvalidFileError`."""
    policy = read_own_file(store.read_policy("components"), FILE_KINDS["policy-components"])
    if not isinstance(policy, ComponentPolicy):
        raise TypeError
    return policy


def selected(
    package_set: PackageSet,
    components: Sequence[str],
    exclude: Sequence[str],
    policy: ComponentPolicy,
) -> tuple[dict[str, SetPackage], list[ComponentSet]]:
    """Return the packages meant, and the named sets that were asked for. Raises `UsageError`."""
    packages = select_packages(package_set, components, exclude, policy.components)
    return packages, [policy.components[name] for name in components if name in policy.components]


def read_record(root: Path) -> ToolkitRecord | None:
    """Return the record of a root; None where it has none. Raises `InvalidFileError`."""
    data = read_file(root / RECORD_NAME)
    if data is None:
        return None
    record = read_own_file(data, FILE_KINDS["toolkit-record"])
    if not isinstance(record, ToolkitRecord):
        raise TypeError
    return record


def verify_root(root: Path) -> ToolkitReport:
    """Say whether a root still is what was laid out: every file by its hash, every link.

    What lies there besides is named, and is no failure. Raises `UsageError` for a root not ours.
    """
    record = _record_of(root)
    problems = []
    for path, file in sorted(record.files.items()):
        place = root / path
        if place.is_symlink() or not place.is_file():
            problems.append(f"{path}: is missing")
        elif _hash_of(place) != file.sha256:
            problems.append(f"{path}: was changed")
        elif bool(place.stat().st_mode & 0o100) is not file.executable:
            problems.append(f"{path}: its mode was changed")
    for path, link in sorted(record.links.items()):
        place = root / path
        if not place.is_symlink() or place.readlink().as_posix() != link.target:
            problems.append(f"{path}: is not the link that was laid out")
    status = "altered" if problems else "verified"
    foreign = sorted(_foreign(root, record))
    return toolkit_report(root, record, status, problems=problems, foreign=foreign)


def remove_root(root: Path) -> ToolkitReport:
    """Take away what was laid out, and folders that are empty then; what is not ours stays."""
    record = _record_of(root)
    foreign = sorted(_foreign(root, record))
    folders = set()
    try:
        for path in (*record.links, *record.files, RECORD_NAME):
            (root / path).unlink(missing_ok=True)
            folders |= set(Path(path).parents)
        for folder in sorted(folders, key=lambda f: len(f.parts), reverse=True):
            place = root / folder
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()
    except OSError as error:
        raise WriteError(root, error) from error
    return toolkit_report(root, record, "removed", foreign=foreign)


def toolkit_report(
    root: Path,
    record: ToolkitRecord,
    status: str,
    *,
    fetched_bytes: int = 0,
    problems: Sequence[str] = (),
    foreign: Sequence[str] = (),
) -> ToolkitReport:
    """Make the report on a root."""
    left_behind = status == "removed" and bool(foreign)
    return ToolkitReport.model_validate(
        {
            "root": str(root),
            "status": status,
            "cuda": record.cuda,
            "platform": record.platform,
            "layout": record.layout,
            "packages": tuple(record.packages),
            "files": len(record.files),
            "bytes": sum(file.size for file in record.files.values()),
            "fetched_bytes": fetched_bytes,
            "problems": tuple(problems),
            "foreign": tuple(foreign),
            "exit_code": EXIT_INTEGRITY if problems else EXIT_FINDINGS if left_behind else EXIT_OK,
        }
    )


def relocatable(text: bytes, path: str, layout: Layout, attr: str, plan: Plan) -> bytes:
    """Return a `.pc` file whose folders are given from where it lies, so that the root can move."""
    up = "/".join([".."] * path.count("/"))
    root = f"${{pcfiledir}}/{up}" if up else "${pcfiledir}"

    def folder(name: str, output: str) -> str:
        if layout == "merged":
            return f"{root}/{name}"
        for candidate in (output, "out"):
            if any(p.startswith(f"{attr}/{candidate}/{name}/") for p in plan.files):
                return f"{root}/{attr}/{candidate}/{name}"
        return f"{root}/{attr}/out/{name}"

    values = {
        b"cudaroot": root,
        b"prefix": root,
        b"libdir": folder("lib", "lib"),
        b"includedir": folder("include", "include"),
    }
    return _CUDA_ROOT.sub(lambda m: m[1] + b"=" + values[m[1]].encode(), text)


def _archive(package: SetPackage) -> SetArchive:
    if package.archive is None:
        raise UsageError(f"{package.attr} has no archive")
    return package.archive


def _record_of(root: Path) -> ToolkitRecord:
    record = read_record(root)
    if record is None:
        raise UsageError(f"{root} is no toolkit root of ours: it has no {RECORD_NAME}")
    return record


def _foreign(root: Path, record: ToolkitRecord) -> list[str]:
    ours = {RECORD_NAME, *record.files, *record.links}
    found = []
    for folder, folders, files in os.walk(root):
        below = Path(folder).relative_to(root)
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        found += [(below / name).as_posix() for name in (*files, *links)]
    return [path for path in found if path not in ours]


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
