"""Records of runfile installers: added from a file or an address, compared with NVIDIA's sums."""

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from cudaredist.archives.makeself import MakeselfCheck
from cudaredist.errors import (
    CudaRedistError,
    InsecureAddressError,
    IntegrityError,
    NotAtSourceError,
    ReadError,
    UsageError,
    shown,
)
from cudaredist.jsontext import canonical_json
from cudaredist.pipeline.findings import finding, own_file_findings
from cudaredist.pipeline.read_data import RUNFILES, read_runfiles
from cudaredist.pipeline.tasks import raise_if_stopped, run_tasks
from cudaredist.primitives import parse_label, sri_of
from cudaredist.progress import Progress
from cudaredist.reports.manifest_reports import Finding, RunfileReport
from cudaredist.schema.registry import FILE_KINDS
from cudaredist.schema.runfile_records import URL_PATTERN, Runfile, RunfileName, Runfiles
from cudaredist.source.chain import SourceChain, open_sources
from cudaredist.source.protocol import Settings, redacted, without_credentials
from cudaredist.store.data_folder import Store

_INSTALLERS, _SUMS = "local_installers/", "docs/sidebar/md5sum.txt"
_PAGE_LIMIT = 1 << 20
_sums_in = re.compile(r"^[ \t]*([0-9A-Fa-f]{32})[ \t]+\*?(\S+)[ \t\r]*$", re.MULTILINE).findall
"""The hashes and names on a page in the format of md5sum."""


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
    `accept_changed`, and the errors of sources and `MakeselfCheck`.
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
            hint="to replace it, run `cudaredist runfile add --accept-changed "
            f"{without_credentials(location)}`",
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

    Raises `ReadError` if a local file is missing.
    """
    base, slash, _ = location.rpartition("/")
    if ":" not in base and not Path(location).exists():
        raise ReadError(location, FileNotFoundError("no such file"))
    try:
        return open_sources([base + slash or "."], settings)
    except InsecureAddressError as error:
        hint = "use https, or download the file and run `cudaredist runfile add FILE`"
        raise UsageError(error.message, hint=hint) from None


def _read(sources: SourceChain, name: str, progress: Progress) -> tuple[str, int, str, str]:
    """Return the place, size, SHA-256 and MD5 of a runfile, verified."""

    def use(place: str, stream: Callable[[int], Iterator[bytes]]) -> tuple[str, int, str, str]:
        check, size = MakeselfCheck(place), 0
        sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
        number = progress.begin(name, None)
        for chunk in stream(0):
            check.feed(chunk)
            sha256.update(chunk)
            md5.update(chunk)
            size += len(chunk)
            progress.advance(number, len(chunk))
        check.finish()
        progress.end(number)
        return place, size, sha256.hexdigest(), md5.hexdigest()

    progress.expect(1, None)
    return sources.consume([name], use)


def runfile_findings(store: Store, settings: Settings, jobs: int) -> Iterator[Finding]:
    """Yield the defects of the records, and differences from NVIDIA's pages of MD5 sums.

    A page's address follows from that of the runfile. A record without it is not compared, and in
    an offline run none is.
    """
    path = store.table_path(RUNFILES)
    if not path.exists():
        return
    model = yield from own_file_findings(store, path, FILE_KINDS[RUNFILES])
    if not isinstance(model, Runfiles) or settings.offline:
        return
    records = [
        (parse_label(release), record, record.url.removesuffix(_INSTALLERS + record.name))
        for release, by_platform in model.runfiles.items()
        for record in by_platform.values()
        if record.url is not None and record.url.endswith(f"/{_INSTALLERS}{record.name}")
    ]
    pages: dict[str, Mapping[str, str] | CudaRedistError] = {}

    def read_page(folder: str) -> None:
        raise_if_stopped(settings.stop)
        try:
            pages[folder] = _published_sums(folder, settings)
        except CudaRedistError as error:
            pages[folder] = error

    folders = sorted({folder for _, _, folder in records})
    run_tasks((partial(read_page, folder) for folder in folders), jobs, settings.stop)
    for label, record, folder in records:
        about = partial(finding, label=label, path=store.relative(path))
        page = pages[folder]
        if isinstance(page, CudaRedistError):
            yield about("unreachable", page.message)
        elif record.name not in page:
            yield about("gone", f"{record.name} is not on NVIDIA's page of MD5 sums")
        elif page[record.name] != record.md5:
            yield about(
                "changed-upstream",
                f"{record.name}: NVIDIA's page of MD5 sums has {page[record.name]}, "
                f"the record {record.md5}",
                hint=f"run `cudaredist runfile add --accept-changed {record.url}`",
            )


def _published_sums(folder: str, settings: Settings) -> dict[str, str]:
    """Return the MD5 sums of a release by file name."""
    with contextlib.closing(open_sources([folder.rstrip("/")], settings)) as sources:
        _, delivery = sources.read(_SUMS, _PAGE_LIMIT)
    sums = {
        name: md5.lower()
        for md5, name in _sums_in((delivery.data or b"").decode("ascii", "replace"))
    }
    if not sums:
        raise NotAtSourceError(f"{folder}{_SUMS}", "the page has no MD5 sums")
    return sums
