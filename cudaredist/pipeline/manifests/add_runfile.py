"""Records of runfile installers: added from a file or an address, compared with NVIDIA's sums."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator

from cudaredist.archives.makeself import MakeselfCheck
from cudaredist.errors import CudaRedistError, NotAtSourceError, UsageError, shown
from cudaredist.jsontext import canonical_json
from cudaredist.packagesets.metadata import sri_of
from cudaredist.pipeline.findings import finding
from cudaredist.pipeline.read_data import RUNFILES, read_runfiles
from cudaredist.primitives import parse_label
from cudaredist.progress import Progress
from cudaredist.reports.manifest_reports import Finding, RunfileReport
from cudaredist.schema.runfile_records import Runfile, RunfileName, Runfiles
from cudaredist.source.chain import SourceChain, open_sources
from cudaredist.source.protocol import Settings, without_credentials
from cudaredist.store.data_folder import Store

_INSTALLERS, _SUMS = "local_installers/", "docs/sidebar/md5sum.txt"
_PAGE_LIMIT = 1 << 20


def add_runfile(
    location: str,
    url: str | None,
    store: Store,
    *,
    begin: Callable[[], None],
    settings: Settings,
    progress: Progress,
) -> RunfileReport:
    """Read a runfile once, verify it, and write its record.

    A file's address is `url`, if it is given. `begin` is called before the first write. Raises
    `UsageError` for a name that is not NVIDIA's, and the errors of sources and `MakeselfCheck`.
    """
    base, _, name = location.rpartition("/")
    parsed = RunfileName.parse(name)
    if parsed is None:
        raise UsageError(
            f"{shown(name)} is not the name of a CUDA runfile",
            hint="use a name such as cuda_12.9.1_575.57.08_linux.run",
        )
    if "://" in location and not location.startswith("file:"):
        url = without_credentials(location)
    with contextlib.closing(open_sources([base or "."], settings)) as sources:
        size, sha256, md5 = _read(sources, name, progress)
    record = Runfile(
        name=name,
        url=url,
        size=size,
        sha256=sha256,
        sri=sri_of(sha256),
        md5=md5,
        driver=parsed.driver,
    )
    begin()
    table = read_runfiles(store).runfiles
    table = table | {parsed.release: table.get(parsed.release, {}) | {parsed.platform: record}}
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


def _read(sources: SourceChain, name: str, progress: Progress) -> tuple[int, str, str]:
    """Return the size, SHA-256 and MD5 of a runfile, verified."""

    def use(place: str, stream: Callable[[int], Iterator[bytes]]) -> tuple[int, str, str]:
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
        return size, sha256.hexdigest(), md5.hexdigest()

    progress.expect(1, None)
    return sources.consume([name], use)


def runfile_findings(store: Store, settings: Settings) -> Iterator[Finding]:
    """Yield the records that differ from NVIDIA's page of MD5 sums for their release.

    The page's address follows from that of the runfile. A record without it is not compared.
    """
    path = store.relative(store.table_path(RUNFILES))
    for release, by_platform in read_runfiles(store).runfiles.items():
        for record in by_platform.values():
            folder = (record.url or "").removesuffix(_INSTALLERS + record.name)
            if not folder or folder == record.url:
                continue
            label = parse_label(release)
            try:
                sums = _published_sums(folder, settings)
            except CudaRedistError as error:
                yield finding("unreachable", error.message, label=label, path=path)
                continue
            published = sums.get(record.name)
            if published is None:
                message = f"{record.name} is not on NVIDIA's page of MD5 sums"
                yield finding("gone", message, label=label, path=path)
            elif published != record.md5:
                yield finding(
                    "changed-upstream",
                    f"{record.name}: NVIDIA's page of MD5 sums has {published}, "
                    f"the record {record.md5}",
                    label=label,
                    path=path,
                    hint=f"cudaredist runfile add {record.url}",
                )


def _published_sums(folder: str, settings: Settings) -> dict[str, str]:
    """Return the MD5 sums of a release by file name."""
    with contextlib.closing(open_sources([folder.rstrip("/")], settings)) as sources:
        _, delivery = sources.read(_SUMS, _PAGE_LIMIT)
    lines = (delivery.data or b"").decode("utf-8", "replace").splitlines()
    pairs = (line.split() for line in lines)
    sums = {pair[1].removeprefix("*"): pair[0].lower() for pair in pairs if len(pair) == 2}  # noqa: PLR2004 - hash and name
    if not sums:
        raise NotAtSourceError(f"{folder}{_SUMS}", "the page has no MD5 sums")
    return sums
