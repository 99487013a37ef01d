"""The commands that fetch."""

import contextlib
import functools
from pathlib import Path
from typing import Annotated

import typer

from cudaredist.cli.options import (
    SAFETY,
    AllowHttpOption,
    BaseUrlOption,
    CacheDirOption,
    ChannelChoice,
    ChannelOption,
    CheckOption,
    ColorChoice,
    ColorOption,
    DataDirOption,
    DryRunOption,
    JobsOption,
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
    VersionOption,
)
from cudaredist.cli.running import (
    NOT_WITH_URL,
    bases_of,
    cache_folder,
    chosen_redists,
    exits,
    is_typed,
    make_console,
    may_write,
)
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, UsageError


@exits
def download_manifests(
    context: typer.Context,
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="Folder that itself holds the manifests.")
    ] = None,
    manifest_dir: Annotated[
        Path | None,
        typer.Argument(metavar="MANIFEST_DIR", help="Where to put them, without a lock file."),
    ] = None,
    redist: RedistOption = None,
    channel: ChannelOption = ChannelChoice.REDIST,
    version: VersionOption = None,
    min_version: MinVersionOption = None,
    max_version: MaxVersionOption = None,
    base_url: BaseUrlOption = None,
    jobs: JobsOption = 16,
    parallel: ParallelOption = True,
    retries: RetriesOption = 3,
    timeout: TimeoutOption = 30.0,
    allow_http: AllowHttpOption = False,
    offline: OfflineOption = False,
    accept_changed: Annotated[
        bool,
        typer.Option(
            "--accept-changed",
            help="Take manifests that changed in place upstream, or were edited here.",
            rich_help_panel=SAFETY,
        ),
    ] = False,
    check: CheckOption = False,
    dry_run: DryRunOption = False,
    keep_going: KeepGoingOption = True,
    strict: StrictOption = False,
    cleanup: Annotated[  # noqa: ARG001 - taken so that the nixpkgs manual's calls work; no archive is touched
        bool,
        typer.Option(
            "--cleanup/--no-cleanup",
            help="No effect here: manifests need no cleaning up.",
            rich_help_panel=SAFETY,
            hidden=True,
        ),
    ] = True,
    data_dir: DataDirOption = None,
    cache_dir: CacheDirOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = 0,
    log_level: LogLevelOption = None,
    color: ColorOption = ColorChoice.AUTO,
) -> int:
    """Find and fetch manifests, keep NVIDIA's bytes, and guard them against change.

    The newest manifest of every redistributable by default. Each is proved to be a manifest, stored
    untouched as DATA/manifests/NAME/redistrib_LABEL.json and recorded in the lock. One that changed
    in place upstream is not overwritten (exit 4).

    With URL and MANIFEST_DIR: one folder of manifests into one folder, as in the nixpkgs manual.

    Examples:

        cudaredist download-manifests --redist cuda --redist cudnn

        cudaredist download-manifests --redist cuda --min-version 12.6

        cudaredist download-manifests --version 12.9.1 URL ./manifests
    """
    from cudaredist import render
    from cudaredist.locks import writing
    from cudaredist.pipeline import ManifestDownload, Selection, into_folder, into_store
    from cudaredist.source.chain import open_sources
    from cudaredist.source.protocol import Settings
    from cudaredist.store.cache import Cache
    from cudaredist.store.data_folder import Store
    from cudaredist.store.locate import data_folder

    console = make_console(color, quiet=quiet, verbose=verbose, log_level=log_level)
    selection = Selection.parse(version or (), min_version, max_version)
    jobs = jobs if parallel else 1
    write = may_write(check=check, dry_run=dry_run)
    settings = Settings(
        timeout=timeout,
        retries=retries,
        allow_http=allow_http,
        offline=offline,
        staging=cache_folder(cache_dir),
    )
    cache = Cache(cache_folder(cache_dir))
    if url is None:
        root = data_folder(data_dir, writing=True)
    elif manifest_dir is None:
        raise UsageError("URL goes with MANIFEST_DIR", hint="say where the manifests are to go")
    elif any(map(functools.partial(is_typed, context), NOT_WITH_URL)):
        raise UsageError(
            "URL and MANIFEST_DIR go without --redist, --channel, --base-url and --data-dir"
        )
    else:
        root = manifest_dir
    bases = [url] if url else bases_of(context, channel.value, base_url)
    with contextlib.ExitStack() as stack:
        sources = stack.enter_context(contextlib.closing(open_sources(bases, settings)))
        begin = stack.enter_context(writing(root)) if write else lambda: None
        if url is None:
            to = into_store(
                Store(root, channel.value),
                chosen_redists(redist, channel.value),
                are_asked_for=bool(redist),
            )
        else:
            to = into_folder(url, root)
        if write:
            to.sweep()
        report = ManifestDownload(
            sources=sources,
            targets=to.targets,
            selection=selection,
            cache=cache,
            stop=settings.stop,
            jobs=jobs,
            write=write,
            accept_changed=accept_changed,
            strict=strict,
            fail_fast=not keep_going,
            progress=stack.enter_context(console.progress("manifests")),
            begin=begin,
            save_lock=to.save_lock,
        ).run()
    if dry_run and report.exit_code == EXIT_FINDINGS:
        report = report.model_copy(update={"exit_code": EXIT_OK})
    for outcome in report.manifests:
        for warning in outcome.warnings:
            console.warning(f"{outcome.redist} {outcome.label}: {warning}")
    if json:
        console.result(render.report_json(report))
    else:
        console.lines(render.download_text(report))
    for what, error in render.download_errors(report):
        console.error(f"{what}: {error.message}", hint=error.hint, details=error.changes)
    return report.exit_code
