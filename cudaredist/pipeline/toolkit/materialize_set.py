"""materialize: a toolkit root from a package set; proved, built beside its place, and renamed."""

import contextlib
import logging
import os
import posixpath
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from cudaredist.errors import (
    ContentError,
    CudaRedistError,
    IntegrityError,
    InvalidFileError,
    NotAtSourceError,
    Problem,
    SourceError,
    StoppedError,
    UsageError,
    WriteError,
    shortened,
)
from cudaredist.pipeline.archives import ArchiveRequest, ArchiveService
from cudaredist.pipeline.kept_archive import kept_bytes
from cudaredist.pipeline.read_data import read_file_given
from cudaredist.pipeline.tasks import Task, raise_if_stopped, run_tasks
from cudaredist.pipeline.toolkit.install import Toolkit, archive_of, lay_out
from cudaredist.pipeline.toolkit.repair import altered_packages, plan_repair
from cudaredist.pipeline.toolkit.root import (
    altered_paths,
    is_empty,
    is_intact,
    look_at,
    read_record,
    real_place,
    toolkit_report,
)
from cudaredist.pipeline.toolkit.staging import Workshop
from cudaredist.pipeline.toolkit.unpack import Unpacked, held_content, is_held, unpack
from cudaredist.primitives import Platform, path_problem, sha256_of
from cudaredist.progress import total_size
from cudaredist.redists import REDISTS
from cudaredist.reports.archive_reports import ToolkitReport
from cudaredist.schema.packageset import PackageSet, SetPackage
from cudaredist.schema.registry import read_own_file
from cudaredist.schema.toolkit_record import ComponentPolicy, ComponentSet, ToolkitRecord
from cudaredist.store.data_folder import Store
from cudaredist.store.files import read_file
from cudaredist.toolkit.components import Chosen, choose
from cudaredist.toolkit.merge import RECORD_NAME, Plan, make_plan
from cudaredist.toolkit.root_tree import make_tree

_log = logging.getLogger(__name__)

_SHOWN = 3


@dataclass(kw_only=True)
class Materialization:
    """One toolkit root to be laid out."""

    toolkit: Toolkit
    required: Sequence[ComponentSet]
    """Named sets that were asked for, whose programs must be there."""
    root: Path
    sources: ArchiveService | None
    """Fetches archives; None if they are all at hand."""
    replace: bool = False
    """Whether packages may be removed, and every file of what is there is read."""
    archives: Path | None = None
    """A folder in which they are looked for first, laid out as at a source or by their names."""
    at_hand: ArchiveService | None = None
    """Reads the archives in that folder."""
    announce: Callable[[str], None] = lambda _: None
    _sizes: dict[str | None, int | None] = field(default_factory=dict)
    """Sizes that the source lists, by hash."""

    def __post_init__(self) -> None:
        self._services = [service for service in (self.at_hand, self.sources) if service]
        if not self._services:
            raise UsageError("no source given", hint="name a folder with --archives")
        self._place = real_place(self.root)
        self._workshop = Workshop(self._place)

    def run(self) -> ToolkitReport:
        """Lay out the root; nothing is done where it is there as asked for.

        Raises `UsageError` for a root that is not ours, or from which packages would be removed
        without `replace`, and whatever keeps an archive from being laid out. The root is unchanged
        then.
        """
        held = self._held()
        if held is not None and self._is_wanted(held):
            self._workshop.clear_if_idle()
            return self._report(held, "unchanged")
        self._refuse_foreign(held)
        with self._workshop.locked():
            # An interrupted run's root may be back, and the run that was waited for done.
            held = self._held()
            if held is not None and self._is_wanted(held):
                self._workshop.clear()
                return self._report(held, "unchanged")
            self._refuse_foreign(held)
            try:
                record = (None if held is None else self._repaired(held)) or self._built()
            except (ContentError, IntegrityError, WriteError, UsageError):
                # Trying again would find the same; the disk may be full of it.
                self._workshop.clear()
                raise
            self._refuse_foreign(held)
            try:
                self._workshop.put()
            except WriteError:
                self._workshop.clear()
                raise
        return self._report(record, "written")

    # -- what there is

    def _held(self) -> ToolkitRecord | None:
        if not os.path.lexists(self._place):
            return None
        record = read_record(self._place)
        if record is None and not is_empty(self._place):
            raise UsageError(
                f"{self.root} is there and no toolkit root of ours (it has no {RECORD_NAME})",
                hint="name a folder that is not there yet, or an empty one",
            )
        return record

    def _is_wanted(self, record: ToolkitRecord) -> bool:
        if not self.toolkit.is_recorded(record):
            return False
        is_as_created = (
            not altered_paths(self._place, record)
            if self.replace
            else is_intact(self._place, record)
        )
        if not is_as_created:
            _log.warning("%s is not what was laid out any more: it is made anew", self.root)
        return is_as_created

    def _refuse_foreign(self, record: ToolkitRecord | None) -> None:
        """Raise `UsageError` if making a root anew would remove packages or what is not ours."""
        if record is None:
            return
        removed = sorted(record.packages.keys() - self.toolkit.packages.keys())
        if removed and not self.replace:
            named = " ".join(f"--component {name}" for name in removed[:_SHOWN])
            raise UsageError(
                f"{self.root} has packages that are not selected and would be removed: "
                f"{', '.join(removed)}",
                hint=f"add what to keep, such as {named}, or remove them with --replace",
            )
        foreign = look_at(self._place).foreign_to(record)
        if foreign:
            raise UsageError(
                f"{self.root} would be made anew, and holds what was not laid out there: "
                f"{', '.join(shortened(foreign, _SHOWN))}",
                hint="move that away first, or name another folder",
            )

    def _check_sizes(self, packages: Mapping[str, SetPackage]) -> None:
        """Say what is to be fetched and unpacked; raise where it is too much."""
        archives = {archive_of(p).sha256: p for p in packages.values()}
        waiting = {s: p for s, p in archives.items() if not is_held(self._workshop.archives / s)}
        requests = [self._request(package) for package in waiting.values()]
        fetched = [item for item in requests if not self._is_at_hand(item)]
        if self.sources is not None:
            fetched = self.sources.sized(fetched)
        self._sizes = {item.sha256: item.size for item in fetched}
        # What an interrupted run brought of an archive is gone on from.
        lacking = [max(0, (f.size or 0) - kept_bytes(self._kept_at(f))) for f in fetched]
        known = sum(lacking)
        unknown = sum(item.size is None for item in fetched)
        unexamined = sum(not package.contents for package in archives.values())
        unpacked = sum(_unpacked_size(package) for package in archives.values())
        here = len(archives) - len(fetched)
        sizes = [f"{known:,} bytes"] if known or not unknown else []
        sizes += [f"{unknown} of unknown size"] if unknown else []
        self.announce(
            f"{len(archives)} archives"
            + (f", {here} of them here" if here else "")
            + f"; {' and '.join(sizes)} to fetch; {unpacked:,} bytes unpacked"
            + (f", not counting {unexamined} that were never examined" if unexamined else "")
        )
        limit = None if self.sources is None else self.sources.max_fetched
        if limit is not None and known > limit:
            raise UsageError(
                f"{known:,} bytes are to be fetched, more than --max-download {limit:,}",
                hint="name fewer components, or --exclude some",
            )
        needed = sum(_unpacked_size(package) for package in waiting.values())
        if self.sources is not None and self.sources.chains[()].has_server:
            # While they come, archives lie beside their content.
            needed += sum(sorted(lacking)[-self.sources.jobs :])
        free = shutil.disk_usage(self._workshop.folder).free
        if needed > free:
            raise WriteError(
                self.root, OSError(f"needs {needed:,} bytes more, and {free:,} are free there")
            )
        self._services[-1].pending = len(fetched)
        self._services[0].pending = len(waiting)
        size = total_size(request.size for request in requests)
        self._services[0].progress.expect(len(requests), size)

    # -- archives

    def _unpack(self, packages: Mapping[str, SetPackage]) -> dict[str, Unpacked]:
        """Bring the content of packages' archives here, and return it by package."""
        self._check_sizes(packages)
        found: dict[str, Unpacked] = {}
        errors: list[CudaRedistError] = []

        def work(sha256: str, package: SetPackage) -> list[Task]:
            try:
                folder = self._workshop.archives / sha256
                found[sha256] = self._content(self._request(package), folder)
            except CudaRedistError as error:
                errors.append(error)
                self._stop.set()
            return []

        # Several packages may be one archive.
        archives = {archive_of(package).sha256: package for package in packages.values()}
        tasks = [partial(work, sha256, package) for sha256, package in archives.items()]
        run_tasks(tasks, self._services[0].jobs, self._stop)
        if errors:
            # The first one stopped the others, which say only that.
            raise next((e for e in errors if not isinstance(e, StoppedError)), errors[0])
        return {attr: found[archive_of(p).sha256] for attr, p in packages.items()}

    def _content(self, request: ArchiveRequest, folder: Path) -> Unpacked:
        raise_if_stopped(self._stop)
        held = held_content(folder)
        if held is not None:
            return held
        errors: list[SourceError | IntegrityError] = []
        for service in self._services:
            keep_at = self._kept_at(request) if service.chains[()].has_server else None
            try:
                unpacked = unpack(service, request, folder, keep_at=keep_at)
            except (SourceError, IntegrityError) as error:
                errors.append(error)
                continue
            if keep_at is not None:
                with contextlib.suppress(OSError):
                    keep_at.unlink()
            return unpacked
        raise _most_telling(errors)

    @property
    def _stop(self) -> threading.Event:
        return self._services[0].stop

    def _kept_at(self, request: ArchiveRequest) -> Path:
        """Return where an archive is kept while it comes, for a run that goes on with it."""
        return self._workshop.fetched / f"{request.sha256}{request.suffix}"

    def _request(self, package: SetPackage) -> ArchiveRequest:
        """Return an archive with where it may lie, at a source or in a folder of archives."""
        archive = archive_of(package)
        problem = path_problem(archive.relative_path)
        if problem is not None:
            where = f"packages.{package.attr}.archive.relative_path"
            raise InvalidFileError("package-set file", [Problem(where, problem)])
        path, name = archive.relative_path, posixpath.basename(archive.relative_path)
        folders: Sequence[str] = ("",)
        if self.toolkit.package_set.channel == "redist":
            known = REDISTS.get(package.redist or "")
            folders = known.archive_folders if known else (f"compute/{package.redist}/redist",)
        paths = [posixpath.normpath(posixpath.join(folder, path)) for folder in folders]
        if self.archives is not None:
            paths += [posixpath.normpath(path), name]
        inside = [path for path in paths if not path.startswith(("../", "/"))]
        size = archive.size or self._sizes.get(archive.sha256)
        return ArchiveRequest(name, tuple(dict.fromkeys(inside)), archive.sha256, size)

    def _is_at_hand(self, request: ArchiveRequest) -> bool:
        """Say whether a folder of archives has one, as far as its name and its size tell."""
        if self.archives is None:
            return False
        places = (self.archives / path for path in request.paths)
        sizes = [os.path.getsize(place) for place in places if os.path.isfile(place)]  # noqa: PTH113, PTH202 - they raise nothing
        return any(request.size in {None, size} for size in sizes)

    # -- the root

    def _built(self) -> ToolkitRecord:
        """Make the root from the archives of all packages."""
        unpacked = self._unpack(self.toolkit.packages)
        plan = self._plan(unpacked)
        self._check_programs(plan)
        return lay_out(self._workshop.new, self.toolkit, plan, unpacked)

    def _repaired(self, record: ToolkitRecord) -> ToolkitRecord | None:
        """Make the root from its intact files and the archives of the others.

        Returns None if that cannot be done: the selection is another one, or the record is.
        """
        if not self.toolkit.is_recorded(record):
            return None
        altered = altered_paths(self._place, record)
        names = altered_packages(record, altered)
        if not names <= self.toolkit.packages.keys():
            return None
        unpacked = self._unpack({name: self.toolkit.packages[name] for name in sorted(names)})
        plan = plan_repair(self._place, record, altered, self._plan(unpacked), unpacked)
        if plan is None:
            return None
        contents = dict.fromkeys(self.toolkit.packages, plan[1])
        return lay_out(self._workshop.new, self.toolkit, plan[0], contents)

    def _plan(self, unpacked: Mapping[str, Unpacked]) -> Plan:
        trees = {
            attr: make_tree(
                posixpath.basename(archive_of(self.toolkit.packages[attr]).relative_path),
                found.members,
                self.toolkit.packages[attr],
                is_split=self.toolkit.layout == "split",
            )
            for attr, found in unpacked.items()
        }
        return make_plan(
            trees,
            {attr: found.hashes for attr, found in unpacked.items()},
            layout=self.toolkit.layout,
            with_static=self.toolkit.with_static,
            platform=Platform(self.toolkit.package_set.platform.redist_system),
        )

    def _check_programs(self, plan: Plan) -> None:
        names = {
            posixpath.basename(path).removesuffix(".exe")
            for path in plan.files
            if "bin" in path.split("/")[:-1]
        }
        for component in self.required:
            lacking = [name for name in component.programs if name not in names]
            if lacking:
                raise UsageError(
                    f"the packages of CUDA {self.toolkit.package_set.cuda.release} in the "
                    f"{self.toolkit.package_set.channel} channel have no {', '.join(lacking)}",
                    hint="another release or channel may; name single packages to go without",
                )

    def _report(self, record: ToolkitRecord, status: str) -> ToolkitReport:
        fetched = 0 if self.sources is None else self.sources.fetched
        return toolkit_report(self.root, record, status, fetched_bytes=fetched)


def read_package_set(path: Path) -> tuple[PackageSet, str]:
    """Return the package set in a file, and the hash of its document.

    Raises `UsageError` if there is no such file, and `InvalidFileError` if it is not a package set.
    """
    data = read_file(path)
    if data is None:
        raise UsageError(f"{path}: no such file", hint="cudaredist build makes package sets")
    return read_file_given(path, data, PackageSet), sha256_of(data)


def selected(
    package_set: PackageSet, components: Sequence[str], exclude: Sequence[str], store: Store
) -> Chosen:
    """Return the packages that components mean by the data folder's policy.

    Raises `UsageError`, and `InvalidFileError` for a broken policy.
    """
    policy = read_own_file(store.read_policy("components"), ComponentPolicy)
    chosen = choose(package_set, components, exclude, policy.components)
    for warning in chosen.warnings:
        _log.warning("%s", warning)
    return chosen


def _unpacked_size(package: SetPackage) -> int:
    return sum(part.bytes for part in package.contents.values())


def _most_telling(errors: Sequence[SourceError | IntegrityError]) -> CudaRedistError:
    """Return wrong bytes before silence, and absence last."""
    wrong = next((e for e in errors if isinstance(e, IntegrityError)), None)
    return wrong or next((e for e in errors if not isinstance(e, NotAtSourceError)), errors[-1])
