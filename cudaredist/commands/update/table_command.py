"""The common options and steps of commands that update a table."""

from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from cudaredist.cli.options import ArchiveJobs, LocalReleases, ManifestOptions
from cudaredist.cli.session import Session, find_redists, open_cache
from cudaredist.hints import command_line
from cudaredist.redists import CUDA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cudaredist.commands.update.report import ApiReport, SymbolReport, TableReport
    from cudaredist.commands.update.table_run import TableRun
    from cudaredist.formats.error_report import ErrorReport
    from cudaredist.formats.names import Channel


_Run = TypeVar("_Run", bound="TableRun")


class TableOptions(ManifestOptions):
    """Options of the commands that update a table."""

    typical = ("channel", "version", "jobs", "check", "data_dir")

    releases: LocalReleases = field(default_factory=LocalReleases)
    jobs: ArchiveJobs = field(default_factory=ArchiveJobs)


def open_run(
    kind: "type[_Run]", options: TableOptions, session: Session, names: list[str] | None
) -> "_Run":
    """Open the sources of local manifests, and lock the data folder."""
    from cudaredist.store.data_folder import Store
    from cudaredist.store.local_manifests import require_manifests
    from cudaredist.store.locate import data_folder
    from cudaredist.store.targets import read_local_manifests, targets_in_store

    selection, is_writing = options.releases.selection, not options.check
    bases = session.connect(options.network, options.channel)
    root = data_folder(options.folders.data_dir, writing=is_writing)
    store = Store(root, options.channel)
    known = find_redists(names, options.channel)
    local = require_manifests(store, names or ())
    targets = targets_in_store(store, [one for one in known if one.name in local], bases)
    cache = open_cache(options.folders.cache_dir)
    service = session.archive_service(targets, cache=cache, jobs=options.jobs)
    if is_writing:
        session.lock(root)
    manifests = read_local_manifests(targets, selection, strict=options.strict)
    return kind(manifests, service, store, write=is_writing, fail_fast=not options.keep_going)


def archive_errors(report: "SymbolReport | ApiReport") -> "Iterator[tuple[str, ErrorReport]]":
    """Yield the errors of manifests and archives, with their subjects."""
    for manifest in report.manifests:
        yield f"{manifest.redist} {manifest.release}", manifest.error
    for one in report.archives:
        if one.error is not None:
            yield f"{one.redist} {one.release} {one.package} {one.platform}", one.error


def update_table(
    options: TableOptions,
    session: Session,
    update: "Callable[[TableRun], TableReport]",
) -> int:
    """Update a table from the archives of CUDA releases, and report it."""
    from cudaredist.commands.update.table_run import TableRun
    from cudaredist.commands.update.text import finding_text, table_text

    run = open_run(TableRun, options, session, [CUDA])
    report = update(run)
    text, warnings = partial(table_text, quiet=options.quiet), map(finding_text, report.findings)
    code = session.finish(report, text, warnings=warnings)
    if report.held_back:
        message = f"skipped CUDA {', '.join(report.held_back)}: bounds are lower or changed"
        hint = f"review the findings, then run `{accept_command(options.channel)}`"
        session.console.error(message, hint=hint)
    session.errors((f"cuda {row.release}", row.error) for row in report.releases if row.error)
    return code


def accept_command(channel: "Channel") -> str:
    """Return the command that writes lower or changed bounds."""
    return command_line("update-nvcc-compat", "--replace", channel=channel)
