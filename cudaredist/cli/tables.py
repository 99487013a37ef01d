"""The commands of the two tables: what makes them, and what answers from them."""

import contextlib
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from cudaredist.cli.options import (
    SAFETY,
    AllowHttpOption,
    ArchiveJobsOption,
    BaseUrlOption,
    CacheDirOption,
    ChannelChoice,
    ChannelOption,
    CheckOption,
    ColorChoice,
    ColorOption,
    DataDirOption,
    DryRunOption,
    HeldVersionOption,
    JsonOption,
    KeepGoingOption,
    LogLevelOption,
    MaxVersionOption,
    MinVersionOption,
    OfflineOption,
    ParallelOption,
    QuietOption,
    RetriesOption,
    StrictOption,
    TimeoutOption,
    VerboseOption,
)
from cudaredist.cli.running import (
    archive_jobs,
    bases_of,
    cache_folder,
    chosen_redists,
    exits,
    make_console,
    may_write,
)
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, IncompleteError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cudaredist.console import Console
    from cudaredist.pipeline import Selection, TableRun
    from cudaredist.reports.archive_reports import TableReport
    from cudaredist.source.protocol import Settings
    from cudaredist.store.data_folder import Store

AcceptBoundsOption = Annotated[
    bool,
    typer.Option(
        "--accept-changed",
        help="Take bounds that go down from one release to the next, or changed for a release "
        "that the table has.",
        rich_help_panel=SAFETY,
    ),
]


class Subject(StrEnum):
    """What can be asked about."""

    NVCC = "nvcc"
    GPU = "gpu"
    CUDA = "cuda"
    SET = "set"


@exits
def update_nvcc_compat(
    context: typer.Context,
    channel: ChannelOption = ChannelChoice.REDIST,
    version: HeldVersionOption = None,
    min_version: MinVersionOption = None,
    max_version: MaxVersionOption = None,
    base_url: BaseUrlOption = None,
    jobs: ArchiveJobsOption = None,
    parallel: ParallelOption = True,
    retries: RetriesOption = 3,
    timeout: TimeoutOption = 30.0,
    allow_http: AllowHttpOption = False,
    offline: OfflineOption = False,
    accept_changed: AcceptBoundsOption = False,
    check: CheckOption = False,
    dry_run: DryRunOption = False,
    keep_going: KeepGoingOption = True,
    strict: StrictOption = False,
    data_dir: DataDirOption = None,
    cache_dir: CacheDirOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = 0,
    log_level: LogLevelOption = None,
    color: ColorOption = ColorChoice.AUTO,
) -> int:
    """Derive from NVIDIA's own header which host compilers each CUDA release accepts.

    Of every CUDA release held, the smallest archive with include/crt/host_config.h is fetched,
    proved and read; nothing is unpacked or executed, and no archive is read twice. The result is
    DATA/nvcc_compat.json, and what changes in it is shown. A release whose bounds are lower than
    those of the release before it, or others than the table has, is written with --accept-changed
    only (else exit 1).

    Examples:

        cudaredist update-nvcc-compat

        cudaredist update-nvcc-compat --channel wheels --min-version 12.8

        cudaredist update-nvcc-compat --check --json
    """
    from cudaredist import pipeline
    from cudaredist.source.protocol import Settings

    console = make_console(color, quiet=quiet, verbose=verbose, log_level=log_level)
    return _update(
        console,
        lambda run: pipeline.update_nvcc_compat(run, accept_changed=accept_changed),
        table="nvcc_compat",
        selection=_selection(version, min_version, max_version),
        settings=Settings(
            timeout=timeout,
            retries=retries,
            allow_http=allow_http,
            offline=offline,
            staging=cache_folder(cache_dir),
        ),
        bases=bases_of(context, channel.value, base_url),
        channel=channel,
        data_dir=data_dir,
        cache_dir=cache_dir,
        jobs=archive_jobs(jobs, parallel=parallel),
        write=may_write(check=check, dry_run=dry_run),
        dry_run=dry_run,
        strict=strict,
        fail_fast=not keep_going,
        json=json,
    )


@exits
def update_gpus(
    context: typer.Context,
    channel: ChannelOption = ChannelChoice.REDIST,
    version: HeldVersionOption = None,
    min_version: MinVersionOption = None,
    max_version: MaxVersionOption = None,
    base_url: BaseUrlOption = None,
    jobs: ArchiveJobsOption = None,
    parallel: ParallelOption = True,
    retries: RetriesOption = 3,
    timeout: TimeoutOption = 30.0,
    allow_http: AllowHttpOption = False,
    offline: OfflineOption = False,
    check: CheckOption = False,
    dry_run: DryRunOption = False,
    keep_going: KeepGoingOption = True,
    strict: StrictOption = False,
    data_dir: DataDirOption = None,
    cache_dir: CacheDirOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = 0,
    log_level: LogLevelOption = None,
    color: ColorOption = ColorChoice.AUTO,
) -> int:
    """Derive from NVIDIA's own ptxas which compute capabilities each CUDA release knows.

    Of every CUDA release held, the smallest archive with bin/ptxas is fetched, proved and searched
    for text; nothing is unpacked or executed, and no archive is read twice. Policy adds what no
    file states. The result is DATA/gpus.json, and what changes in it is shown.

    Examples:

        cudaredist update-gpus

        cudaredist update-gpus --channel wheels --version 13.0.2

        cudaredist update-gpus --check --json
    """
    from cudaredist import pipeline
    from cudaredist.source.protocol import Settings

    console = make_console(color, quiet=quiet, verbose=verbose, log_level=log_level)
    return _update(
        console,
        pipeline.update_gpus,
        table="gpus",
        selection=_selection(version, min_version, max_version),
        settings=Settings(
            timeout=timeout,
            retries=retries,
            allow_http=allow_http,
            offline=offline,
            staging=cache_folder(cache_dir),
        ),
        bases=bases_of(context, channel.value, base_url),
        channel=channel,
        data_dir=data_dir,
        cache_dir=cache_dir,
        jobs=archive_jobs(jobs, parallel=parallel),
        write=may_write(check=check, dry_run=dry_run),
        dry_run=dry_run,
        strict=strict,
        fail_fast=not keep_going,
        json=json,
    )


def _selection(versions: list[str] | None, low: str | None, high: str | None) -> "Selection":
    from cudaredist.pipeline import ALL, Selection

    return Selection.parse(versions or ([] if low or high else [ALL]), low, high)


def _update(
    console: "Console",
    update: "Callable[[TableRun], TableReport]",
    *,
    table: str,
    selection: "Selection",
    settings: "Settings",
    bases: list[str],
    channel: ChannelChoice,
    data_dir: Path | None,
    cache_dir: Path | None,
    jobs: int,
    write: bool,
    dry_run: bool,
    strict: bool,
    fail_fast: bool,
    json: bool,
) -> int:
    from cudaredist import render
    from cudaredist.locks import writing
    from cudaredist.pipeline import ArchiveService, TableRun, read_local_manifests, targets_in_store
    from cudaredist.source.chain import open_sources
    from cudaredist.store.cache import Cache
    from cudaredist.store.data_folder import Store
    from cudaredist.store.locate import held_folder

    root = held_folder(data_dir, writing=write)
    store = Store(root, channel.value)
    targets = targets_in_store(store, chosen_redists(["cuda"]), bases)
    with contextlib.ExitStack() as stack:
        chains = {
            target.bases: stack.enter_context(
                contextlib.closing(open_sources(target.bases, settings))
            )
            for target in targets
        }
        if write:
            stack.enter_context(writing(root))
            store.sweep_table(table)
        service = ArchiveService(
            chains=chains,
            cache=Cache(cache_folder(cache_dir)),
            stop=settings.stop,
            jobs=jobs,
            progress=stack.enter_context(console.byte_progress("archives")),
        )
        manifests = read_local_manifests(targets, selection, strict=strict)
        run = TableRun(
            manifests=manifests, service=service, store=store, write=write, fail_fast=fail_fast
        )
        report = update(run)
    if dry_run and report.exit_code == EXIT_FINDINGS:
        report = report.model_copy(update={"exit_code": EXIT_OK})
    for finding in report.findings:
        console.warning(f"{finding.kind}: {finding.message}")
    if json:
        console.result(render.report_json(report))
    else:
        console.lines(render.table_text(report))
    if report.held_back:
        console.error(
            f"bounds go down or changed; of CUDA {', '.join(report.held_back)} nothing is written",
            hint="look at the findings, then take them with --accept-changed",
        )
    for outcome in report.releases:
        if outcome.error is not None:
            console.error(f"cuda {outcome.label}: {outcome.error.message}", hint=outcome.error.hint)
    return report.exit_code


@exits
def explain(
    subject: Annotated[
        Subject, typer.Argument(metavar="nvcc|gpu|cuda|set", help="What the question is about.")
    ],
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="CUDA release or minor; for gpu a capability, chip or product; for set a file.",
        ),
    ],
    data_dir: DataDirOption = None,
    json: JsonOption = False,
) -> int:
    """Say what is known of a compiler, a GPU, a CUDA release or a package set.

    Every fact comes with its source, and of a set what it holds and what it lacks and why. Where
    documentation or policy says otherwise than NVIDIA's files, both are shown. Answers come
    from nvcc_compat.json and gpus.json of the data folder; nothing is fetched.

    Examples:

        cudaredist explain nvcc 13.4

        cudaredist explain gpu "Jetson Orin"

        cudaredist explain cuda 12.9 --json

        cudaredist explain set build/linux-x86_64/cuda-13.0.2.json
    """
    from cudaredist import pipeline, render
    from cudaredist.reports.answer_reports import ExplainReport
    from cudaredist.store.data_folder import Store
    from cudaredist.store.locate import data_folder
    from cudaredist.tables.explain_gpu import explain_cuda, explain_gpu
    from cudaredist.tables.explain_nvcc import explain_nvcc

    console = make_console()
    if subject is Subject.SET:
        summary = pipeline.summarize(name, pipeline.read_package_set(Path(name)).value)
        if json:
            console.result(render.report_json(summary))
        else:
            console.lines(render.set_text(summary))
        return EXIT_OK
    store = Store(data_folder(data_dir, writing=False))
    match subject:
        case Subject.NVCC:
            answer = explain_nvcc(
                name,
                pipeline.read_nvcc_compat(store) or _lacking(store, "nvcc_compat"),
                pipeline.read_nvcc_policy(store),
            )
        case Subject.GPU:
            answer = explain_gpu(
                name,
                pipeline.read_gpus(store) or _lacking(store, "gpus"),
                pipeline.read_gpu_policy(store),
            )
        case _:
            answer = explain_cuda(
                name,
                pipeline.read_nvcc_compat(store) or _lacking(store, "nvcc_compat"),
                pipeline.read_gpus(store) or _lacking(store, "gpus"),
                pipeline.read_nvcc_policy(store),
            )
    report = ExplainReport(kind=answer.kind, asked=answer.asked, topics=answer.topics)
    if json:
        console.result(render.report_json(report))
    else:
        console.lines(render.explain_text(report))
    return EXIT_OK


def _lacking(store: "Store", table: str) -> NoReturn:
    from cudaredist.pipeline.file_findings import TABLE_COMMANDS

    raise IncompleteError(
        f"{store.table_path(table)}: no such table",
        hint=f"cudaredist {TABLE_COMMANDS[table]} makes it",
    )
