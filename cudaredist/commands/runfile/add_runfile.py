"""Add records of runfile installers, from a file or an address."""

import contextlib
import hashlib
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from cudaredist.archives.makeself import check_makeself
from cudaredist.commands.runfile.report import RunfileReport
from cudaredist.errors import InsecureAddressError, IntegrityError, ReadError, UsageError, shown
from cudaredist.formats.runfile_records import URL_PATTERN, Runfile, RunfileName, Runfiles
from cudaredist.hints import again, redacted
from cudaredist.jsontext import canonical_json
from cudaredist.primitives import sri_of
from cudaredist.progress import Progress
from cudaredist.sources.chain import SourceChain, open_sources
from cudaredist.sources.protocol import Settings, without_credentials
from cudaredist.store.data_folder import Store
from cudaredist.store.read_data import RUNFILES, read_runfiles


def add_runfile(
    location: str,
    url: str | None,
    store: Store,
    *,
    accept_changed: bool,
    begin: Callable[[], None],
    settings: Settings,
    progress: Progress,
) -> RunfileReport:
    """Read a runfile once, verify it, and write its record.

    A file's address is `url` if it is given, else that of a record with the same bytes. `begin` is
    called before the first write. Raises `UsageError` for a name that is not NVIDIA's or an address
    that cannot be recorded, `IntegrityError` for other bytes than those of the record unless
    `accept_changed`, and the errors of sources and `check_makeself`.
    """
    name = location.rpartition("/")[2]
    parsed = _parsed(location, name)
    if url is not None:
        url = _recordable(url)
    with contextlib.closing(_opened(location, settings)) as sources:
        place, size, sha256, md5 = _read(sources, name, progress)
        if sources.has_server:
            url = place
    begin()
    store.sweep_table(RUNFILES)
    table = read_runfiles(store.read_table(RUNFILES)).runfiles
    of_release = table.get(parsed.release, {})
    recorded = of_release.get(parsed.platform)
    if recorded is not None and recorded.sha256 == sha256:
        url = url or recorded.url
    elif recorded is not None and not accept_changed:
        raise IntegrityError(
            f"{name}: the SHA-256 is {sha256}, and the record of {recorded.name} has "
            f"{recorded.sha256}; the record was kept",
            hint=f"to replace it, run `{again('--accept-changed')}`",
        )
    record = Runfile(
        name=name,
        url=url,
        size=size,
        sha256=sha256,
        sri=sri_of(sha256),
        md5=md5,
        driver=parsed.driver,
    )
    table = table | {parsed.release: of_release | {parsed.platform: record}}
    document = Runfiles(schema_version=1, runfiles=table).model_dump(mode="json")
    is_written = store.write_table(RUNFILES, canonical_json(document))
    return RunfileReport(
        release=parsed.release,
        platform=parsed.platform,
        record=record,
        path=store.relative(store.table_path(RUNFILES)),
        status="written" if is_written else "unchanged",
        exit_code=0,
    )


def _parsed(location: str, name: str) -> RunfileName:
    parsed = RunfileName.parse(name)
    if parsed is None:
        public = redacted(location).partition("?")[0].rpartition("/")[2]
        raise UsageError(
            f"{shown(public)} is not the name of a CUDA runfile",
            hint="use a name such as cuda_12.9.1_575.57.08_linux.run, without a query",
        )
    return parsed


def _recordable(url: str) -> str:
    """Return an address without credentials.

    Raises `UsageError` for one that cannot be recorded.
    """
    public = without_credentials(url)
    if re.fullmatch(URL_PATTERN, public) is None:
        raise UsageError(
            f"{shown(redacted(url).partition('?')[0])} is not an address without a query",
            hint="use --url https://host/folder/NAME",
        )
    return public


def _opened(location: str, settings: Settings) -> SourceChain:
    """Return the folder or server of a runfile.

    Raises `ReadError` if a local file is missing or cannot be reached.
    """
    base, slash, _ = location.rpartition("/")
    if ":" not in base:
        try:
            Path(location).stat()
        except OSError as error:
            raise ReadError(redacted(location), error) from error
    try:
        return open_sources([base + slash or "."], settings)
    except InsecureAddressError as error:
        name = shlex.quote(location.partition("?")[0].rpartition("/")[2])
        hint = f"use https, or download the file and run `cudaredist runfile add ./{name}`"
        raise UsageError(error.message, hint=hint) from None


def _read(sources: SourceChain, name: str, progress: Progress) -> tuple[str, int, str, str]:
    """Return the place, size, SHA-256 and MD5 of a runfile, verified."""

    def use(place: str, stream: Callable[[int], Iterator[bytes]]) -> tuple[str, int, str, str]:
        size, sha256, md5 = 0, hashlib.sha256(), hashlib.md5(usedforsecurity=False)

        def chunks() -> Iterator[bytes]:
            nonlocal size
            for chunk in stream(0):
                sha256.update(chunk)
                md5.update(chunk)
                size += len(chunk)
                progress.advance(number, len(chunk))
                yield chunk

        check_makeself(place, chunks())
        return place, size, sha256.hexdigest(), md5.hexdigest()

    progress.expect(1, None)
    number = progress.begin(name, None)
    answer = sources.consume([name], use)
    progress.end(number)
    return answer
