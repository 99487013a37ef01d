"""Compare the records of runfile installers with NVIDIA's MD5 sums."""

import contextlib
import re
from collections.abc import Iterator
from functools import partial

from cudaredist.commands.check.findings import finding, own_file_findings
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
            command = command_line("runfile add", quoted(record.url or ""), "--replace")
            published = f"NVIDIA's page of MD5 sums has {page[record.name]}"
            message = f"{record.name}: {published}, the record {record.md5}"
            yield about("changed-upstream", message, hint=f"run `{command}`")


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
