"""Compare the records of runfile installers with NVIDIA's MD5 sums."""

import contextlib
import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from cudaredist.commands.check.checked_files import CheckedFiles, Facts
from cudaredist.commands.check.findings import finding
from cudaredist.commands.check.report import Finding
from cudaredist.errors import CudaRedistError, NotAtSourceError
from cudaredist.formats.registry import FILE_KINDS
from cudaredist.formats.runfile_records import Runfiles
from cudaredist.hints import command_line, quoted
from cudaredist.primitives import parse_label
from cudaredist.sources.chain import open_sources
from cudaredist.sources.protocol import Settings
from cudaredist.store.data_folder import Store
from cudaredist.store.read_data import RUNFILES
from cudaredist.tasks import each, raise_if_stopped

_INSTALLERS, _SUMS = "local_installers/", "docs/sidebar/md5sum.txt"
_PAGE_LIMIT = 1 << 20
_sums_in = re.compile(r"^[ \t]*([0-9A-Fa-f]{32})[ \t]+\*?(\S+)[ \t\r]*$", re.MULTILINE).findall
"""The hashes and names on a page in the format of md5sum."""


class _Record(NamedTuple):
    """The record of a runfile with an address."""

    name: str
    url: str
    md5: str


def runfile_findings(
    store: Store, settings: Settings, jobs: int, checked: CheckedFiles
) -> Iterator[Finding]:
    """Yield the defects of the records, and differences from NVIDIA's pages of MD5 sums.

    A page's address follows from that of the runfile. A record without it is not compared, and in
    an offline run none is.
    """
    path = store.table_path(RUNFILES)
    if not path.exists():
        return
    facts = yield from checked.read(path, FILE_KINDS[RUNFILES], _facts_of_runfiles)
    if facts is None or settings.offline:
        return
    records = [
        (parse_label(release), record, record.url.removesuffix(_INSTALLERS + record.name))
        for release, record in (
            (release, _Record(*values)) for release, *values in facts["records"]
        )
        if record.url.endswith(f"/{_INSTALLERS}{record.name}")
    ]
    folders = sorted({folder for _, _, folder in records})
    sums = each(folders, partial(_published_sums, settings), jobs, settings.stop)
    pages = dict(zip(folders, sums, strict=True))
    for label, record, folder in records:
        about = partial(finding, label=label, path=store.relative(path))
        page = pages[folder]
        if isinstance(page, CudaRedistError):
            yield about("unreachable", page.message)
        elif record.name not in page:
            yield about("gone", f"{record.name} is not on NVIDIA's page of MD5 sums")
        elif page[record.name] != record.md5:
            command = command_line("runfile add", quoted(record.url), "--replace")
            published = f"NVIDIA's page of MD5 sums has {page[record.name]}"
            message = f"{record.name}: {published}, the record {record.md5}"
            yield about("changed-upstream", message, hint=f"run `{command}`")


def _facts_of_runfiles(runfiles: Runfiles) -> Facts:
    """Return the records with an address."""
    records = [
        [release, record.name, record.url, record.md5]
        for release, by_platform in runfiles.runfiles.items()
        for record in by_platform.values()
        if record.url is not None
    ]
    return {"records": records}


def _published_sums(settings: Settings, folder: str) -> dict[str, str]:
    """Return the MD5 sums of a release by file name."""
    raise_if_stopped(settings.stop)
    with contextlib.closing(open_sources([folder.rstrip("/")], settings)) as sources:
        _, delivery = sources.read(_SUMS, _PAGE_LIMIT)
    sums = {
        name: md5.lower()
        for md5, name in _sums_in((delivery.data or b"").decode("ascii", "replace"))
    }
    if not sums:
        raise NotAtSourceError(f"{folder}{_SUMS}", "the page has no MD5 sums")
    return sums
