"""materialize: install a package set into a toolkit root.

The root is created in a staging directory from verified archives, then renamed.
"""

import contextlib
import logging
import os
import posixpath
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from cudaredist.cli.options import ArchiveJobs, parse_size
from cudaredist.cli.session import Session
from cudaredist.commands.materialize.components import without_programs
from cudaredist.commands.materialize.install import archive_of, create_root, plan_repair
from cudaredist.commands.materialize.merge import VERSION_NAME, Plan, make_plan
from cudaredist.commands.materialize.missing_run_paths import missing_run_paths
from cudaredist.commands.materialize.oci import read_layout, write_layout
from cudaredist.commands.materialize.options import MaterializeOptions
from cudaredist.commands.materialize.report import OciImage, ToolkitReport
from cudaredist.commands.materialize.root import (
    altered_paths,
    is_empty,
    is_intact,
    list_root,
    toolkit_report,
)
from cudaredist.commands.materialize.select_toolkit import select_toolkit
from cudaredist.commands.materialize.staging import StagingDirectory, remove_tree
from cudaredist.commands.materialize.unpack import Unpacked, earlier_content, is_unpacked, unpack
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
    listed,
    plural,
)
from cudaredist.formats.packageset import SetPackage
from cudaredist.formats.toolkit_record import RECORD_NAME, PackageName, ToolkitRecord
from cudaredist.hints import again
from cudaredist.primitives import Platform, path_problem
from cudaredist.progress import total_size
from cudaredist.redists import NVIDIA_PREVIEWS, REDISTS
from cudaredist.sets.package_tree import make_tree
from cudaredist.sources.chain import most_severe
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.fetch_archive import ArchiveRequest
from cudaredist.store.kept_archive import kept_bytes
from cudaredist.store.read_data import read_record
from cudaredist.tasks import each, raise_if_stopped
from cudaredist.wheels import SIMPLE

_log = logging.getLogger(__name__)

_SHOWN = 3


class Materialization:
    """One toolkit root to create."""

    def __init__(self, options: MaterializeOptions, package_set: Path, session: Session) -> None:
        """Select the packages, and open the sources of archives."""
        self.options, self.announce = options, session.console.note
        network, archives = options.network, options.archives
        self.root, self.archives = options.root, archives
        if archives is not None and not os.path.isdir(archives):  # noqa: PTH112 - raises nothing
            hint = f"to download them, run `{again(without=['--archives'])}`"
            raise UsageError(f"--archives {archives}: no such folder", hint=hint)
        limit = parse_size(options.max_download)
        self.toolkit, self.runtime, self.required = select_toolkit(options, package_set, session)
        channel = self.toolkit.package_set.channel
        bases = session.connect(network, channel, takes_wheel_mirror=True)
        if network.offline and not network.base_url:
            bases = ()
        self._is_wheel_mirror = channel == "wheels" and bool(network.base_url)
        self._folders = [folder for folder in (archives, *map(Path, bases)) if folder is not None]
        if not bases and archives is None:
            call = again(without=["--offline"])
            hint = f"set the folder with the archives with --archives FOLDER, or run `{call}`"
            raise UsageError("--offline requires --archives", hint=hint)
        jobs = ArchiveJobs(jobs=options.jobs, max_archive=options.max_archive)
        service = partial(
            ArchiveService,
            stop=session.settings.stop,
            jobs=jobs.count,
            max_archive=jobs.max_size,
            progress=session.progress("archives"),
        )
        self._services: list[ArchiveService] = []
        self.sources: ArchiveService | None = None
        """Downloads archives; None if all are in the local folder."""
        if archives is not None:
            self._services.append(service(chains={(): session.sources([str(archives)])}))
        if bases:
            self.sources = service(chains={(): session.sources(bases)}, max_fetched=limit)
            self._services.append(self.sources)
        self._staging = StagingDirectory(self.root)
        self._path = self._staging.root
        self._image: OciImage | None = None
        self._sizes: dict[str | None, int | None] = {}
        """Sizes from the source's listing, by hash."""

    def run(self) -> ToolkitReport:
        """Create or update the root, unless it matches already.

        Raises `UsageError` if the root has other files, or if packages would be removed without
        `replace`. Raises the errors of the archives. The root is unchanged then.
        """
        record, is_current = self._existing()
        if record is not None and is_current:
            self._staging.clear_if_idle()
            return self._report(record, "unchanged")
        with self._staging.locked():
            # Read again: `locked` may have restored a root, or waited for a run that created it.
            record, is_current = self._existing()
            if record is not None and is_current:
                self._staging.clear()
                return self._report(record, "unchanged")
            try:
                created = (None if record is None else self._repair(record)) or self._create()
            except (ContentError, IntegrityError, WriteError, UsageError):
                # A later run would fail in the same way. Free the disk space.
                self._staging.clear()
                raise
            self._check_replaceable(record)
            if self.options.format == "oci":
                self._to_oci(created)
            try:
                self._staging.swap_in()
            except WriteError:
                self._staging.clear()
                raise
        return self._report(created, "written")

    # -- existing root

    def _existing(self) -> tuple[ToolkitRecord | None, bool]:
        """Return the record of the root, if any, and whether the root is current.

        Raises `UsageError` if another root cannot be replaced.
        """
        if not os.path.lexists(self._path):
            return None, False
        record = read_record(self._path)
        if self.options.format == "oci":
            if record is not None:
                message = f"{self.root} is a toolkit root, and cannot become an image"
                raise UsageError(message, hint="name a new folder with --root")
            return self._existing_image()
        if record is None and not is_empty(self._path):
            problem = f"exists and is not a cudaredist toolkit root (no {RECORD_NAME})"
            hint = f"run `{again(root='cuda-toolkit')}` for a new folder"
            raise UsageError(f"{self.root} {problem}", hint=hint)
        if record is not None and self.toolkit.is_recorded(record):
            if is_intact(self._path, record, is_quick=not self.options.replace):
                return record, True
            _log.warning("files of %s were changed or removed; creating it again", self.root)
        self._check_replaceable(record)
        return record, False

    def _existing_image(self) -> tuple[ToolkitRecord | None, bool]:
        """Return the record of the image in the folder if it is current.

        Raises `UsageError` if the folder has anything else, or another image without --replace.
        """
        stored = read_layout(self._path)
        if stored is None and not is_empty(self._path):
            hint = f"run `{again(root='cuda-image')}` for a new folder"
            raise UsageError(f"{self.root} exists and is not an image of cudaredist", hint=hint)
        if stored is None:
            return None, False
        record, self._image = stored
        if not self.toolkit.is_recorded(record) and not self.options.replace:
            message = f"{self.root} has another image, which would be replaced"
            raise UsageError(message, hint=f"run `{again('--replace')}`")
        if self.toolkit.is_recorded(record) and self._image is not None:
            return record, True
        if self._image is None:
            _log.warning("files of %s were changed or removed; creating it again", self.root)
        return None, False

    def _check_replaceable(self, record: ToolkitRecord | None) -> None:
        """Raise `UsageError` if packages or other files would be removed."""
        if record is None:
            return
        removed = sorted(record.packages.keys() - self.toolkit.packages.keys())
        if removed and not self.options.replace:
            problem = "has packages that are not selected and would be removed"
            hint = f"to remove them, run `{again('--replace')}`"
            names = {PackageName(name).attr for name in removed}
            # Packages for another target cannot be kept.
            if names.isdisjoint(PackageName(name).attr for name in self.toolkit.packages):
                options = " ".join(f"--component {name}" for name in sorted(names))
                hint = f"to keep them, run `{again(options)}`; to remove them, use --replace"
            raise UsageError(f"{self.root} {problem}: {', '.join(removed)}", hint=hint)
        if record.libraries != self.toolkit.libraries and not self.options.replace:
            message = f"{self.root} has other files of these packages, which would be replaced"
            raise UsageError(message, hint=f"run `{again('--replace')}`")
        foreign = list_root(self._path).foreign_to(record)
        if foreign:
            problem = "would be replaced, but has files that cudaredist did not install"
            call = again(root="cuda-toolkit")
            hint = f"move them to another folder, or run `{call}` for a new folder"
            raise UsageError(f"{self.root} {problem}: {listed(foreign, _SHOWN)}", hint=hint)

    def _check_sizes(self, archives: Mapping[str, SetPackage]) -> None:
        """Announce and check the size of downloads and contents.

        Raises `UsageError` if the downloads exceed the limit, and `WriteError` if the disk
        is too small.
        """
        folder = self._staging.archives
        pending = [p for sha256, p in archives.items() if not is_unpacked(folder / sha256)]
        requests = [self._request(package) for package in pending]
        self._check_missing(requests)
        downloads = [item for item in requests if self._local_size(item) is None]
        if self.sources is not None:
            downloads = self.sources.sized(downloads)
        self._sizes = {item.sha256: item.size for item in downloads}
        # Downloads of an interrupted run are resumed.
        remaining = [max(0, (d.size or 0) - kept_bytes(self._kept_at(d))) for d in downloads]
        known = sum(remaining)
        unknown = sum(item.size is None for item in downloads)
        unexamined = sum(not package.contents for package in archives.values())
        unpacked = sum(package.unpacked_size for package in archives.values())
        local = len(archives) - len(downloads)
        text = plural(len(archives), "archive") + (f", {local} of them local" if local else "")
        sizes = [f"{known:,} bytes"] if known or not unknown else []
        sizes += [f"{unknown} of unknown size"] if unknown else []
        text += f"; {' and '.join(sizes)} to download; {unpacked:,} bytes unpacked"
        self.announce(text + (f", without {unexamined} of unknown size" if unexamined else ""))
        limit = None if self.sources is None else self.sources.max_fetched
        if limit is not None and known > limit:
            message = f"downloads of {known:,} bytes exceed --max-download {limit:,}"
            call = again(max_download=known)
            hint = f"select fewer packages with --component or --exclude, or run `{call}`"
            raise UsageError(message, hint=hint)
        needed = sum(package.unpacked_size for package in pending)
        if self.sources is not None and self.sources.chains[()].has_server:
            # During a download, both the archive and its content use space.
            needed += sum(sorted(remaining)[-self.sources.jobs :])
        free = shutil.disk_usage(self._staging.folder).free
        if needed > free:
            problem = f"needs {needed:,} more bytes, but only {free:,} are free"
            raise WriteError(self.root, OSError(problem))
        known_sizes = (
            self._sizes.get(item.sha256) or item.size or self._local_size(item) for item in requests
        )
        self._services[0].progress.expect(len(requests), total_size(known_sizes))

    def _to_oci(self, record: ToolkitRecord) -> None:
        """Replace the new root by an image layout with its files."""
        new, layout = self._staging.new, self._staging.folder / "oci"
        remove_tree(layout)
        self._image = write_layout(layout, new, record)
        remove_tree(new)
        layout.rename(new)

    # -- archives

    def _unpack(self, packages: Mapping[str, SetPackage]) -> dict[str, Unpacked]:
        """Download and unpack archives. Return the contents by package."""
        # Several packages may share one archive.
        archives = {archive_of(package).sha256: package for package in packages.values()}
        self._check_sizes(archives)
        jobs, stop = self._services[0].jobs, self._services[0].stop
        results = each(archives.values(), self._content, jobs, stop, fail_fast=True)
        errors = [result for result in results if isinstance(result, CudaRedistError)]
        if errors:
            # Other tasks stopped because of this error.
            raise next((e for e in errors if not isinstance(e, StoppedError)), errors[0])
        contents = dict(zip(archives, (r for r in results if isinstance(r, Unpacked)), strict=True))
        return {attr: contents[archive_of(p).sha256] for attr, p in packages.items()}

    def _content(self, package: SetPackage) -> Unpacked:
        raise_if_stopped(self._services[0].stop)
        request = self._request(package)
        folder = self._staging.archives / archive_of(package).sha256
        if (earlier := earlier_content(folder)) is not None:
            return earlier
        errors: list[CudaRedistError] = []
        for service in self._services:
            keep_at = self._kept_at(request) if service.chains[()].has_server else None
            try:
                unpacked = unpack(service, request, folder, keep_at=keep_at)
            except (SourceError, IntegrityError) as error:
                errors.append(error)
                continue
            with contextlib.suppress(OSError):
                self._kept_at(request).unlink()
            return unpacked
        raise most_severe(errors)

    def _kept_at(self, request: ArchiveRequest) -> Path:
        """Return the path of an archive's partial download."""
        return self._staging.downloads / f"{request.sha256}{request.suffix}"

    def _request(self, package: SetPackage) -> ArchiveRequest:
        """Return the request for a package's archive.

        It has all possible paths at the source and in the local folder.
        """
        archive = archive_of(package)
        if problem := path_problem(archive.relative_path):
            field_path = f"packages.{package.attr}.archive.relative_path"
            raise InvalidFileError("package-set file", [Problem(field_path, problem)])
        path, name = archive.relative_path, posixpath.basename(archive.relative_path)
        folders: Sequence[str] = (SIMPLE, "") if self._is_wheel_mirror else ("",)
        if self.toolkit.package_set.channel == "redist":
            redist = REDISTS.get(package.redist or "")
            folders = redist.archive_folders if redist else (f"compute/{package.redist}/redist",)
        paths = [posixpath.normpath(posixpath.join(folder, path)) for folder in folders]
        url = archive.url or ""
        if url.startswith(f"{NVIDIA_PREVIEWS}/"):
            paths = [posixpath.normpath(unquote(url.removeprefix(f"{NVIDIA_PREVIEWS}/")))]
        if self.archives is not None:
            paths += [posixpath.normpath(path), name]
        inside = [path for path in paths if not path.startswith(("../", "/"))]
        size = archive.size or self._sizes.get(archive.sha256)
        return ArchiveRequest(name, tuple(dict.fromkeys(inside)), archive.sha256, size)

    def _check_missing(self, requests: Sequence[ArchiveRequest]) -> None:
        """Raise `NotAtSourceError` with all archives that are missing in local folders.

        If there is a server, it may have them.
        """
        if any(service.chains[()].has_server for service in self._services):
            return
        missing = [
            item.name
            for item in requests
            if not any((folder / path).exists() for folder in self._folders for path in item.paths)
        ]
        if missing:
            folders = " or ".join(map(str, self._folders))
            number = plural(len(missing), "archive")
            raise NotAtSourceError(folders, f"lacks {number}: {', '.join(sorted(missing))}")

    def _local_size(self, request: ArchiveRequest) -> int | None:
        """Return the size of a local file with the archive's path and size, None without one."""
        if self.archives is None:
            return None
        paths = (self.archives / path for path in request.paths)
        sizes = [os.path.getsize(path) for path in paths if os.path.isfile(path)]  # noqa: PTH113, PTH202 - they raise nothing
        return next((size for size in sizes if request.size in {None, size}), None)

    # -- new root

    def _create(self) -> ToolkitRecord:
        """Create the root from the archives of all packages."""
        unpacked = self._unpack(self.toolkit.packages)
        plan = self._plan(unpacked)
        self._check_programs(plan)
        return create_root(self._staging.new, self.toolkit, plan)

    def _repair(self, record: ToolkitRecord) -> ToolkitRecord | None:
        """Create the root from its intact files and some archives.

        Reads only the archives of altered files, and of files whose run paths are to be removed.
        Returns None if the selection differs from the record, or if the archives lack a file.
        """
        is_unknown = record.missing_run_paths is None and not record.run_paths
        if not self.toolkit.has_same_packages(record) or (is_unknown and self.toolkit.patchelf):
            return None
        altered = altered_paths(self._path, record)
        if self.toolkit.patchelf is None:
            altered |= record.changed_files.keys()
        files = altered & record.files.keys() - {VERSION_NAME}
        names = {record.files[path].package for path in files}
        if not names <= self.toolkit.packages.keys():
            return None
        unpacked = self._unpack({name: self.toolkit.packages[name] for name in sorted(names)})
        plan = plan_repair(self._path, record, altered, self._plan(unpacked))
        return None if plan is None else create_root(self._staging.new, self.toolkit, plan)

    def _plan(self, unpacked: Mapping[str, Unpacked]) -> Plan:
        trees = {}
        for attr, content in unpacked.items():
            package, is_split = self.toolkit.packages[attr], self.toolkit.layout == "split"
            name = posixpath.basename(archive_of(package).relative_path)
            tree = make_tree(name, content.members, package, is_split=is_split)
            trees[attr] = tree if self.runtime is None else self.runtime.tree(attr, tree)
        plan = make_plan(
            trees,
            {attr: content.contents for attr, content in unpacked.items()},
            layout=self.toolkit.layout,
            with_static=self.toolkit.with_static,
            platform=Platform(self.toolkit.package_set.platform.redist_system),
            target=self.toolkit.target,
        )
        if self.runtime is not None:
            plan.links.pop("lib64", None)
        plan.missing_run_paths = missing_run_paths(plan)
        return plan

    def _check_programs(self, plan: Plan) -> None:
        names = {
            posixpath.basename(path).removesuffix(".exe")
            for path in plan.files
            if "bin" in path.split("/")[:-1]
        }
        for component in self.required:
            missing = [name for name in component.programs if name not in names]
            if missing:
                raise without_programs(missing, self.toolkit.package_set)

    def _report(self, record: ToolkitRecord, status: str) -> ToolkitReport:
        is_fetched = self.sources is not None and self.sources.chains[()].has_server
        fetched = self.sources.fetched if self.sources is not None and is_fetched else 0
        about: dict[str, object] = {"fetched_bytes": fetched}
        if self.runtime is not None:
            about |= {
                "libraries": record.libraries,
                "optional_libraries": self.runtime.optional,
                "full_size": sum(x.unpacked_size for x in self.toolkit.packages.values()),
                "device_code": self.runtime.code,
                "image": self._image,
            }
        return toolkit_report(self.root, record, status, **about)
