"""Add records of runfile installers, from a file or an address."""

import re

from cudaredist.archives.makeself import check_makeself
from cudaredist.commands.runfile.report import AddedRunfile
from cudaredist.errors import UsageError
from cudaredist.formats.runfile_records import URL_PATTERN, Runfile, RunfileName, Runfiles
from cudaredist.hints import redacted
from cudaredist.primitives import sri_of
from cudaredist.sources.hashed_file import Recorder
from cudaredist.sources.protocol import without_credentials
from cudaredist.store.data_folder import Store
from cudaredist.store.files import update_output
from cudaredist.store.read_data import RUNFILES, read_runfiles
from cudaredist.words import shown


def add_runfile(location: str, url: str | None, store: Store, recorder: Recorder) -> AddedRunfile:
    """Fetch a runfile, verify it, and write its record.

    A file's address is `url` if it is given, else that of a record with the same bytes. Raises
    `UsageError` for a name that is not NVIDIA's or an address that cannot be recorded,
    `IntegrityError` for other bytes than those of the record unless these are accepted, and the
    errors of sources and `check_makeself`.
    """
    name = location.rpartition("/")[2]
    parsed = _parsed(location, name)
    if url is not None:
        url = _recordable(url)
    with recorder.fetched(location) as (file, content):
        url = file.url or url
        recorder.begin()
        table = read_runfiles(store.read_table(RUNFILES)).runfiles
        of_release = table.get(parsed.release, {})
        recorded = of_release.get(parsed.platform)
        if recorded is not None:
            is_accepted, record_name = recorder.accept_changed, f"the record of {recorded.name}"
            file.compare(recorded.sha256, record_name, accept_changed=is_accepted)
            if recorded.sha256 == file.sha256:
                url = url or recorded.url
        check_makeself(file.place, content)
    record = Runfile(
        name=name,
        url=url,
        size=file.size,
        sha256=file.sha256,
        sri=sri_of(file.sha256),
        md5=file.md5,
        driver=parsed.driver,
    )
    table = table | {parsed.release: of_release | {parsed.platform: record}}
    document = Runfiles(schema_version=1, runfiles=table)
    path = store.table_path(RUNFILES)
    status = update_output(path, document.canonical(), may_write=True, root=store.checkout)
    return AddedRunfile(
        release=parsed.release, platform=parsed.platform, record=record, status=status
    )


def _parsed(location: str, name: str) -> RunfileName:
    parsed = RunfileName.parse(name)
    if parsed is None:
        public = redacted(location).partition("?")[0].rpartition("/")[2]
        hint = "use a release such as 12.9.1, or a name such as cuda_12.9.1_575.57.08_linux.run"
        raise UsageError(f"{shown(public)} is not the name of a CUDA runfile", hint=hint)
    return parsed


def _recordable(url: str) -> str:
    """Return an address without credentials.

    Raises `UsageError` for one that cannot be recorded.
    """
    public = without_credentials(url)
    if re.fullmatch(URL_PATTERN, public) is None:
        message = f"{shown(redacted(url).partition('?')[0])} is not an address without a query"
        raise UsageError(message, hint="use --url https://host/folder/NAME")
    return public
