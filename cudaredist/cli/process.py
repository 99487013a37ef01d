"""The command that looks into archives."""

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cudaredist.cli.options import (
    NETWORK,
    OUTPUT,
    SAFETY,
    SELECT,
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
    EngineChoice,
    HeldVersionOption,
    JsonOption,
    KeepGoingOption,
    LogLevelOption,
    MaxVersionOption,
    MinVersionOption,
    OfflineOption,
    ParallelOption,
    QuietOption,
    RedistOption,
    RetriesOption,
    StrictOption,
    TimeoutOption,
    VerboseOption,
    complete_platform,
)
from cudaredist.cli.running import (
    NOT_WITH_URL,
    archive_jobs,
    bases_of,
    cache_folder,
    chosen_redists,
    exits,
    is_typed,
    make_console,
    may_write,
    parse_size,
)
from cudaredist.console import Console
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, UsageError

if TYPE_CHECKING:
    from cudaredist.reports.archive_reports import PeekReport


@exits
def process_manifests(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", help="Folder that archives' paths are relative to."),
    ] = None,
    manifest_dir: Annotated[
        Path | None,
        typer.Argument(metavar="MANIFEST_DIR", help="Manifests; feature files go beside them."),
    ] = None,
    redist: RedistOption = None,
    channel: ChannelOption = ChannelChoice.REDIST,
    version: HeldVersionOption = None,
    min_version: MinVersionOption = None,
    max_version: MaxVersionOption = None,
    package: Annotated[
        list[str] | None,
        typer.Option(
            "--package",
            metavar="NAME",
            help="Package, such as cuda_cudart; repeatable. What a file says of others stays.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    platform: Annotated[
        list[str] | None,
        typer.Option(
            "--platform",
            metavar="NAME",
            help="Platform, such as linux-x86_64; repeatable.",
            rich_help_panel=SELECT,
            autocompletion=complete_platform,
        ),
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            metavar="NAME",
            help="Variant, such as cuda12; repeatable.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    max_download: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Most that may be fetched, such as 5GB; the smallest archives go first, and those "
            "of unknown size, such as wheels, are left out.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    base_url: BaseUrlOption = None,
    jobs: ArchiveJobsOption = None,
    parallel: ParallelOption = True,
    retries: RetriesOption = 3,
    timeout: TimeoutOption = 30.0,
    allow_http: AllowHttpOption = False,
    offline: OfflineOption = False,
    allow_unverified: Annotated[
        bool,
        typer.Option(
            "--allow-unverified",
            help="Also look into archives whose manifest states no hash; they are marked.",
            rich_help_panel=SAFETY,
        ),
    ] = False,
    cleanup: Annotated[
        bool,
        typer.Option(
            "--cleanup/--no-cleanup",
            help="--no-cleanup is --keep-archives.",
            rich_help_panel=SAFETY,
        ),
    ] = True,
    keep_archives: Annotated[
        bool,
        typer.Option(
            "--keep-archives",
            help="Keep archives in the cache folder, by their hash.",
            rich_help_panel=SAFETY,
        ),
    ] = False,
    fill_cache: Annotated[
        bool,
        typer.Option(
            "--fill-cache",
            help="Also read archives that feature files know and the cache does not: of them which "
            "and diff know all files then.",
            rich_help_panel=SELECT,
        ),
    ] = False,
    check: CheckOption = False,
    dry_run: DryRunOption = False,
    keep_going: KeepGoingOption = True,
    strict: StrictOption = False,
    engine: Annotated[
        EngineChoice,
        typer.Option(
            "--engine",
            help="Where the work is done: threads of this machine, or a Dask cluster.",
            rich_help_panel=NETWORK,
        ),
    ] = EngineChoice.LOCAL,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            envvar="CUDAREDIST_SCHEDULER",
            help="Address of the Dask scheduler, for example tls://host:8786.",
            rich_help_panel=NETWORK,
        ),
    ] = None,
    peek: Annotated[
        bool,
        typer.Option(
            "--peek",
            help="Only list the outputs of zip archives, from their last 64 KiB; unverified, "
            "nothing is written.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    legacy: Annotated[
        bool,
        typer.Option(
            "--legacy",
            help="Write the feature files that nixpkgs consumed, with MANIFEST_DIR.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    data_dir: DataDirOption = None,
    cache_dir: CacheDirOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = 0,
    log_level: LogLevelOption = None,
    color: ColorOption = ColorChoice.AUTO,
) -> int:
    """Look into every archive that the manifests name, and write down what each provides.

    Archives are fetched, proved and read in one pass; nothing is unpacked, stored or executed. What
    was read is cached by the archive's hash, so that no archive is ever fetched twice, and feature
    files are written as DATA/features/NAME/feature_LABEL.json as soon as they are known. A run that
    was interrupted goes on where it stopped when it is started again.

    With URL and MANIFEST_DIR: one folder of manifests, as in the nixpkgs manual.

    Examples:

        cudaredist process-manifests --redist cudnn --version latest

        cudaredist process-manifests --platform linux-x86_64 --max-download 5GB

        cudaredist process-manifests --legacy --version 12.9.1 URL ./manifests
    """
    from cudaredist import pipeline, render
    from cudaredist.locks import writing
    from cudaredist.pipeline import FeatureRun, Filter, Selection
    from cudaredist.source.chain import open_sources
    from cudaredist.source.protocol import Settings
    from cudaredist.store.cache import Cache
    from cudaredist.store.data_folder import Store
    from cudaredist.store.locate import held_folder

    console = make_console(color, quiet=quiet, verbose=verbose, log_level=log_level)
    has_bounds = min_version is not None or max_version is not None
    versions = version or ([] if has_bounds else ["all"])
    selection = Selection.parse(versions, min_version, max_version)
    write = may_write(check=check, dry_run=dry_run) and not peek
    settings = Settings(
        timeout=timeout,
        retries=retries,
        allow_http=allow_http,
        offline=offline,
        staging=cache_folder(cache_dir),
    )
    for is_wrong, why in (
        (engine is EngineChoice.DASK and not scheduler, "--engine dask needs --scheduler"),
        (
            engine is EngineChoice.DASK and (keep_archives or not cleanup),
            "--keep-archives goes with --engine local only",
        ),
        (legacy and url is None, "--legacy goes with URL and MANIFEST_DIR"),
    ):
        if is_wrong:
            raise UsageError(why)
    if url is None:
        root = held_folder(data_dir, writing=write)
        store, bases = Store(root, channel.value), bases_of(context, channel.value, base_url)
        targets = pipeline.targets_in_store(store, chosen_redists(redist, channel.value), bases)
    elif manifest_dir is None:
        raise UsageError("URL goes with MANIFEST_DIR", hint="say where the manifests are")
    elif any(map(functools.partial(is_typed, context), NOT_WITH_URL)):
        raise UsageError(
            "URL and MANIFEST_DIR go without --redist, --channel, --base-url and --data-dir"
        )
    else:
        root = held_folder(manifest_dir, writing=write)
        targets = pipeline.targets_in_folder(url, root)
    with contextlib.ExitStack() as stack:
        chains = {
            bases: stack.enter_context(contextlib.closing(open_sources(bases, settings)))
            for bases in {target.bases for target in targets}
        }
        if write:
            stack.enter_context(writing(root))
            for target in targets:
                target.features.sweep()
        manifests = pipeline.read_local_manifests(targets, selection, strict=strict)
        archive_filter = Filter(
            packages=frozenset(package or ()),
            platforms=frozenset(platform or ()),
            variants=frozenset(variant or ()),
        )
        cache = Cache(cache_folder(cache_dir))
        service = pipeline.ArchiveService(
            chains=chains,
            cache=cache,
            stop=settings.stop,
            jobs=archive_jobs(jobs, parallel=parallel),
            progress=stack.enter_context(console.byte_progress("archives")),
            keep_archives=keep_archives or not cleanup,
        )
        if peek:
            peeked = pipeline.peek(manifests, archive_filter, service)
            return _show_peek(console, peeked, json=json)
        features = FeatureRun(
            manifests=manifests,
            service=service,
            cache=cache,
            filter=archive_filter,
            write=write,
            legacy=legacy,
            fill_cache=fill_cache,
            allow_unverified=allow_unverified,
            max_download=None if max_download is None else parse_size(max_download),
            fail_fast=not keep_going,
            announce=console.note,
        )
        if engine is EngineChoice.DASK and scheduler is not None and write:
            features.engine = stack.enter_context(pipeline.dask_engine(scheduler, settings))
        report = features.run()
    if dry_run and report.exit_code == EXIT_FINDINGS:
        report = report.model_copy(update={"exit_code": EXIT_OK})
    for outcome in report.manifests:
        for warning in outcome.warnings:
            console.warning(f"{outcome.redist} {outcome.label}: {warning}")
    if json:
        console.result(render.report_json(report))
    else:
        console.lines(render.process_text(report))
    for what, error in render.process_errors((*report.manifests, *report.archives)):
        console.error(f"{what}: {error.message}", hint=error.hint)
    return report.exit_code


def _show_peek(console: Console, report: "PeekReport", *, json: bool) -> int:
    from cudaredist import render

    if json:
        console.result(render.report_json(report))
    else:
        console.lines(render.peek_text(report))
    for what, error in render.process_errors((*report.manifests, *report.archives)):
        console.error(f"{what}: {error.message}", hint=error.hint)
    return report.exit_code
