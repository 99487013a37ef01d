"""site: write the files of the web site to a folder.

The folder contains the list of its files, so that a later run removes files that it no longer
makes.
"""

import gc
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from cudaredist.commands.site.report import SiteReport
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, InvalidFileError, UsageError, WritingTo
from cudaredist.hints import again
from cudaredist.jsontext import load_json
from cudaredist.primitives import sha256_of
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.store.cache import Cache
from cudaredist.store.files import is_inside, names_in, read_file, sweep, sweep_file, write_file

SITE_FILES = "files.json"
"""The name of the list in the folder of a site."""


def update_site(
    make_files: Callable[[], Mapping[str, Callable[[], bytes]]],
    output: Path,
    state: str,
    cache: Cache,
    progress: Progress = NO_PROGRESS,
    *,
    may_write: bool = True,
) -> SiteReport:
    """Write the site, unless nothing changed since the last run.

    `state` identifies the data and the program, empty if it is not known. With `may_write` false,
    only the report of the changes is made.
    """
    if may_write:
        sweep_file(output / SITE_FILES)
    key = sha256_of(str(output.resolve()).encode())
    sizes, digest = _examine(output, state)
    if state and cache.get("site", key) == digest:
        return _report(output, sizes, written=0, removed=0)
    earlier = earlier_files(output)
    # The collection of garbage takes a seventh of the time, and finds nothing to free.
    gc.disable()
    try:
        if not may_write:
            return check_site(make_files(), output, earlier, progress)
        report = write_site(make_files(), output, earlier, progress)
    finally:
        # Else the next allocation would search the data of the site for cycles.
        gc.freeze()
        gc.enable()
    if state:
        cache.put("site", key, _examine(output, state)[1])
    return report


def _examine(output: Path, state: str) -> tuple[dict[str, int], bytes]:
    """Return the sizes of the listed files, and a hash of all states and of the list.

    Nothing is read or written by the list, so that it needs no model, which is slow to import.
    """
    listing = read_file(output / SITE_FILES) or b""
    sizes, states = {}, [state, sha256_of(listing)]
    for name in _listed(listing):
        with suppress(OSError, ValueError):
            about = os.lstat(f"{output}/{name}")
            sizes[name] = about.st_size
            times = about.st_mtime_ns, about.st_ctime_ns
            states.append(repr((name, about.st_mode, about.st_size, *times, about.st_ino)))
    return sizes, sha256_of(repr(states).encode()).encode()


def _listed(listing: bytes) -> list[str]:
    """Return the names in a list that may be broken."""
    with suppress(ValueError):
        match load_json(listing):
            case {"files": [*names]}:
                return [name for name in names if isinstance(name, str)]
            case _:
                pass
    return []


def write_site(
    files: Mapping[str, Callable[[], bytes]],
    output: Path,
    earlier: Iterable[str],
    progress: Progress = NO_PROGRESS,
) -> SiteReport:
    """Write files to a folder, and remove other files of an earlier run.

    The list of all these files is written first, so that the next run can complete this one.
    Raises `WriteError`.
    """
    listed = {*files, *earlier}
    _write_list(output, listed)
    for folder in {(output / path).parent for path in listed}:
        sweep(folder)
    sizes: dict[str, int] = {}
    written = 0
    for path, content in _each(files, progress):
        data = content()
        written += write_file(output / path, data, durable=False)
        sizes[path] = len(data)
    gone = sorted(listed - sizes.keys())
    for path in gone:
        with WritingTo(output / path):
            (output / path).unlink(missing_ok=True)
    _write_list(output, sizes)
    return _report(output, sizes, written=written, removed=len(gone))


def _each(
    files: Mapping[str, Callable[[], bytes]], progress: Progress
) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield the files in the order of the hashes of their paths.

    Large and small files are mixed in this order, so that the remaining time does not jump.
    """
    progress.step("making the site", len(files))
    order = sorted(files, key=lambda path: sha256_of(path.encode()))
    yield from progress.each((path, files[path]) for path in order)


def check_site(
    files: Mapping[str, Callable[[], bytes]],
    output: Path,
    earlier: Iterable[str],
    progress: Progress = NO_PROGRESS,
) -> SiteReport:
    """Report the files that `write_site` would write and remove. The exit code is 1 for any."""
    sizes: dict[str, int] = {}
    changed = 0
    for path, content in _each(files, progress):
        data = content()
        changed += read_file(output / path) != data
        sizes[path] = len(data)
    gone = len({*earlier} - sizes.keys())
    report = _report(output, sizes, written=changed, removed=gone)
    code = EXIT_FINDINGS if changed or gone else EXIT_OK
    return report.changed(is_check=True, exit_code=code)


def _report(output: Path, sizes: Mapping[str, int], *, written: int, removed: int) -> SiteReport:
    return SiteReport(
        output=str(output),
        pages=sum(path.endswith(".html") for path in sizes),
        files=len(sizes),
        size=sum(sizes.values()),
        written=written,
        removed=removed,
        exit_code=EXIT_OK,
    )


def _write_list(output: Path, paths: Iterable[str]) -> None:
    from cudaredist.formats.site_files import SiteFiles  # noqa: PLC0415 - slow

    listing = SiteFiles(schema_version=1, files=tuple(sorted(paths)))
    write_file(output / SITE_FILES, listing.canonical())


def earlier_files(output: Path) -> set[str]:
    """Return the files of an earlier run, even of an interrupted one.

    Files behind a link that leads out of the folder are omitted. Raises `UsageError` for a folder
    with other files.
    """
    from cudaredist.formats.registry import read_own_file  # noqa: PLC0415 - slow
    from cudaredist.formats.site_files import SiteFiles  # noqa: PLC0415 - slow

    data = read_file(output / SITE_FILES)
    if data is None:
        if names_in(output):
            message = f"{output} has files, but no {SITE_FILES} of an earlier site"
            # again() takes a folder such as a:b@c for an address, and would hide a part of it.
            call = again("--output", shlex.quote(str(output / "site")), without=["--output"])
            hint = f"for a new folder, run `{call}`"
            raise UsageError(message, hint=hint)
        return set()
    try:
        names = {*read_own_file(data, SiteFiles).files}
    except InvalidFileError as error:
        message = f"{output / SITE_FILES} is not the file list of a site: {error.lines[0]}"
        raise UsageError(message, hint=f"run `rm -r {shlex.quote(str(output))}`") from None
    return {name for name in names if is_inside(output / name, output)}
