"""Fetch, verify and unpack the archives of a toolkit."""

import contextlib
import os
import posixpath
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from cudaredist.cli.options import ArchiveJobs, parse_size
from cudaredist.cli.session import Session
from cudaredist.commands.materialize.install import archive_of
from cudaredist.commands.materialize.options import MaterializeOptions
from cudaredist.commands.materialize.staging import StagingDirectory
from cudaredist.commands.materialize.unpack import Unpacked, earlier_content, is_unpacked, unpack
from cudaredist.errors import (
    CudaRedistError,
    IntegrityError,
    InvalidFileError,
    NotAtSourceError,
    Problem,
    SourceError,
    StoppedError,
    UsageError,
    WriteError,
)
from cudaredist.formats.packageset import PackageSet, SetPackage
from cudaredist.hints import again
from cudaredist.primitives import path_problem
from cudaredist.progress import total_size
from cudaredist.redists import NVIDIA_PREVIEWS, REDISTS
from cudaredist.sources.chain import most_severe
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.fetch_archive import ArchiveRequest
from cudaredist.store.kept_archive import kept_bytes
from cudaredist.tasks import each, raise_if_stopped
from cudaredist.wheels import SIMPLE
from cudaredist.words import plural


class ToolkitArchives:
    """The archives of a toolkit's packages, from a local folder and from sources."""

    def __init__(
        self,
        options: MaterializeOptions,
        package_set: PackageSet,
        staging: StagingDirectory,
        session: Session,
    ) -> None:
        """Open the sources. Raises `UsageError`."""
        network, folder = options.network, options.archives
        if folder is not None and not os.path.isdir(folder):  # noqa: PTH112 - raises nothing
            hint = f"to download them, run `{again(without=['--archives'])}`"
            raise UsageError(f"--archives {folder}: no such folder", hint=hint)
        limit = parse_size(options.max_download)
        self._root, self._folder, self._staging = options.root, folder, staging
        self._announce: Callable[[str], None] = session.console.note
        self._channel = package_set.channel
        bases = session.connect(network, self._channel, takes_wheel_mirror=True)
        if network.offline and not network.base_url:
            bases = ()
        self._is_wheel_mirror = self._channel == "wheels" and bool(network.base_url)
        self._folders = [path for path in (folder, *map(Path, bases)) if path is not None]
        jobs = ArchiveJobs(jobs=options.jobs, max_archive=options.max_archive)
        self._jobs, self._stop = jobs.count, session.settings.stop
        service = partial(
            ArchiveService,
            stop=self._stop,
            jobs=self._jobs,
            max_archive=jobs.max_size,
            progress=session.progress("archives"),
        )
        self._services: list[ArchiveService] = []
        self._sources: ArchiveService | None = None
        """Downloads archives. None: all are in the local folder."""
        if folder is not None:
            self._services.append(service(chains={(): session.sources([str(folder)])}))
        if bases:
            self._sources = service(chains={(): session.sources(bases)}, max_fetched=limit)
            self._services.append(self._sources)
        self._sizes: dict[str | None, int | None] = {}
        """Sizes from the source's listing, by hash."""

    def require_source(self) -> None:
        """Raise `UsageError` if --offline leaves no source of archives."""
        if not self._services:
            call = again(without=["--offline"])
            hint = f"set the folder with the archives with --archives FOLDER, or run `{call}`"
            raise UsageError("--offline requires --archives or --base-url FOLDER", hint=hint)

    @property
    def has_server(self) -> bool:
        """Whether archives may be downloaded."""
        return self._sources is not None and self._sources.chains[()].has_server

    @property
    def fetched(self) -> int:
        """The number of downloaded bytes."""
        return self._sources.fetched if self._sources is not None and self.has_server else 0

    @property
    def _threads(self) -> int:
        """The number of archives in progress. One more is downloaded while others are unpacked."""
        return self._jobs + 1 if self.has_server else self._jobs

    def unpack(self, packages: Mapping[str, SetPackage]) -> dict[str, Unpacked]:
        """Fetch, verify and unpack archives. Return the contents by package."""
        # Several packages may share one archive.
        archives = {archive_of(package).sha256: package for package in packages.values()}
        self._check_sizes(archives)
        results = each(archives.values(), self._content, self._threads, self._stop, fail_fast=True)
        errors = [result for result in results if isinstance(result, CudaRedistError)]
        if errors:
            # Other tasks stopped because of this error.
            raise next((e for e in errors if not isinstance(e, StoppedError)), errors[0])
        contents = dict(zip(archives, (r for r in results if isinstance(r, Unpacked)), strict=True))
        return {attr: contents[archive_of(p).sha256] for attr, p in packages.items()}

    def _content(self, package: SetPackage) -> Unpacked:
        raise_if_stopped(self._stop)
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
        if self._sources is not None:
            downloads = self._sources.sized(downloads)
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
        self._announce(text + (f", without {unexamined} of unknown size" if unexamined else ""))
        limit = None if self._sources is None else self._sources.max_fetched
        refuse_large_download(known, limit)
        needed = sum(package.unpacked_size for package in pending)
        if self.has_server:
            # Until an archive is unpacked, both its file and its content use space.
            needed += sum(sorted(remaining)[-self._threads :])
        free = shutil.disk_usage(self._staging.folder).free
        if needed > free:
            problem = f"needs {needed:,} more bytes, but only {free:,} are free"
            raise WriteError(self._root, OSError(problem))
        known_sizes = (
            self._sizes.get(item.sha256) or item.size or self._local_size(item) for item in requests
        )
        self._services[0].progress.expect(len(requests), total_size(known_sizes))

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
        if self._channel == "redist":
            redist = REDISTS.get(package.redist or "")
            folders = redist.archive_folders if redist else (f"compute/{package.redist}/redist",)
        paths = [posixpath.normpath(posixpath.join(folder, path)) for folder in folders]
        url = archive.url or ""
        if url.startswith(f"{NVIDIA_PREVIEWS}/"):
            paths = [posixpath.normpath(unquote(url.removeprefix(f"{NVIDIA_PREVIEWS}/")))]
        if self._folder is not None:
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
        if self._folder is None:
            return None
        paths = (self._folder / path for path in request.paths)
        sizes = [os.path.getsize(path) for path in paths if os.path.isfile(path)]  # noqa: PTH113, PTH202 - they raise nothing
        return next((size for size in sizes if request.size in {None, size}), None)


def refuse_large_download(size: int, limit: int | None) -> None:
    """Raise `UsageError` if a download exceeds the limit of `--max-download`."""
    if limit is not None and size > limit:
        message = f"downloads of {size:,} bytes exceed --max-download {limit:,}"
        call = again(max_download=size)
        hint = f"select fewer packages with --component or --exclude, or run `{call}`"
        raise UsageError(message, hint=hint)
