"""update-gpus, and the shared code of update-nvcc-compat."""

from dataclasses import field
from typing import TYPE_CHECKING, TypeVar

from cudaredist.cli.options import (
    ArchiveJobs,
    ChannelName,
    Folders,
    LocalReleases,
    Network,
    Options,
    Write,
    channel_option,
    keep_going_option,
    strict_option,
)
from cudaredist.cli.session import (
    CHECK_OR_DRY_RUN,
    Refusal,
    Session,
    command,
    find_redists,
    open_cache,
)
from cudaredist.errors import command_line
from cudaredist.redists import CUDA

if TYPE_CHECKING:
    from collections.abc import Callable

    from cudaredist.pipeline.tables.collect_symbols import SymbolRun
    from cudaredist.pipeline.tables.table_registry import Table
    from cudaredist.pipeline.tables.update import TableRun
    from cudaredist.reports.archive_reports import TableReport
    from cudaredist.schema.base import OwnModel

_Run = TypeVar("_Run", "TableRun", "SymbolRun")


class TableOptions(Options):
    """Options of the commands that update a table."""

    typical = ("channel", "version", "jobs", "check", "data_dir")

    channel: ChannelName = channel_option()
    releases: LocalReleases = field(default_factory=LocalReleases)
    network: Network = field(default_factory=Network)
    jobs: ArchiveJobs = field(default_factory=ArchiveJobs)
    write: Write = field(default_factory=Write)
    keep_going: bool = keep_going_option()
    strict: bool = strict_option()
    folders: Folders = field(default_factory=Folders)


REFUSED: tuple[Refusal[TableOptions], ...] = (CHECK_OR_DRY_RUN,)


@command(TableOptions, REFUSED)
def update_gpus(options: TableOptions, session: Session) -> int:
    """Read the compute capabilities of CUDA releases from ptxas.

    Examples that need the network:

        cudaredist update-gpus
        cudaredist update-gpus --version latest
        cudaredist update-gpus --check --json

    For every local CUDA release, the smallest archive with bin/ptxas is downloaded, verified and
    searched for the names of capabilities. Nothing is unpacked or executed, and no archive is read
    twice. Policy adds facts that no file contains. The result is DATA/gpus.json. Its changes are
    shown.
    """
    from cudaredist.pipeline.tables.table_registry import GPU_TABLE
    from cudaredist.pipeline.tables.update import update_gpu_table

    return update_table(options, session, GPU_TABLE, update_gpu_table)


def open_run(
    kind: "type[_Run]", options: TableOptions, session: Session, names: list[str] | None
) -> "_Run":
    """Open the sources of local manifests, and lock the data folder."""
    from cudaredist.pipeline.features.targets import read_local_manifests, targets_in_store
    from cudaredist.pipeline.read_data import require_manifests
    from cudaredist.store.data_folder import Store
    from cudaredist.store.locate import data_folder

    selection, is_writing = options.releases.selection, options.write.is_allowed
    bases = session.connect(options.network, options.channel)
    root = data_folder(options.folders.data_dir, writing=is_writing)
    store = Store(root, options.channel)
    known = find_redists(names, options.channel)
    local = require_manifests(store, names or ())
    targets = targets_in_store(store, [one for one in known if one.name in local], bases)
    cache = open_cache(options.folders.cache_dir)
    service = session.archive_service(targets, cache=cache, jobs=options.jobs.count)
    if is_writing:
        session.lock(root)
    return kind(
        manifests=read_local_manifests(targets, selection, strict=options.strict),
        service=service,
        store=store,
        write=is_writing,
        fail_fast=not options.keep_going,
    )


def update_table(
    options: TableOptions,
    session: Session,
    table: "Table[OwnModel]",
    update: "Callable[[TableRun], TableReport]",
) -> int:
    """Update a table from the archives of CUDA releases, and report it."""
    from cudaredist.pipeline.tables.update import TableRun
    from cudaredist.render.table_text import table_text

    run = open_run(TableRun, options, session, [CUDA])
    if run.write:
        run.store.sweep_table(table.name)
    report = update(run)
    code = session.finish(
        report,
        table_text,
        warnings=(f"{finding.kind}: {finding.message}" for finding in report.findings),
        dry_run=options.write.dry_run,
    )
    if report.held_back:
        session.console.error(
            f"skipped CUDA {', '.join(report.held_back)}: bounds are lower or changed",
            hint="review the findings, then run "
            f"`{command_line('update-nvcc-compat', '--accept-changed', channel=options.channel)}`",
        )
    session.errors((f"cuda {row.release}", row.error) for row in report.releases if row.error)
    return code
