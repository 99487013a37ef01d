"""The scripted version bump."""

import contextlib
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cudaredist.cli.options import (
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
    JsonOption,
    LogLevelOption,
    OfflineOption,
    ParallelOption,
    QuietOption,
    RedistOption,
    RetriesOption,
    StrictOption,
    TimeoutOption,
    VerboseOption,
)
from cudaredist.cli.running import (
    append_lines,
    archive_jobs,
    bases_of,
    cache_folder,
    chosen_redists,
    exits,
    make_console,
)
from cudaredist.errors import UsageError, WriteError

if TYPE_CHECKING:
    from cudaredist.console import Console
    from cudaredist.redists import Redist
    from cudaredist.reports.set_reports import BumpReport
    from cudaredist.store.data_folder import Store

_LISTINGS = 16
"""Listings and manifests that are asked for at the same time."""


class BumpFormat(StrEnum):
    """Forms of bump's result."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    GITHUB = "github"
    NIXPKGS = "nixpkgs-commit"


@exits
def bump(
    context: typer.Context,
    redist: RedistOption = None,
    channel: ChannelOption = ChannelChoice.REDIST,
    version: Annotated[
        list[str] | None,
        typer.Option(
            "--version",
            metavar="LABEL",
            help="Release to bring in, wherever upstream lists it; repeatable. Default: the newest "
            "of each line held that is behind, and of each newer line.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    process: Annotated[
        bool,
        typer.Option(
            "--process/--no-process",
            help="--no-process: manifests only, neither features nor tables nor package sets.",
            rich_help_panel=SELECT,
        ),
    ] = True,
    base_url: BaseUrlOption = None,
    jobs: ArchiveJobsOption = None,
    parallel: ParallelOption = True,
    retries: RetriesOption = 3,
    timeout: TimeoutOption = 30.0,
    allow_http: AllowHttpOption = False,
    offline: OfflineOption = False,
    allow_missing_features: Annotated[
        bool,
        typer.Option(
            "--allow-missing-features",
            help="Build package sets also where other releases' archives were not examined.",
            rich_help_panel=SAFETY,
        ),
    ] = False,
    check: CheckOption = False,
    strict: StrictOption = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Also write the newest package sets there. Default: they are built, judged and "
            "not kept.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    changelog: Annotated[
        Path | None,
        typer.Option(
            "--changelog",
            metavar="FILE",
            help="Add a line for each release under ### Data of what is unreleased.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    print_commit_message: Annotated[
        bool,
        typer.Option(
            "--print-commit-message",
            help="Print the commit message and nothing else; nothing at all if nothing is new.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    write_commit_message: Annotated[
        Path | None,
        typer.Option(
            "--write-commit-message",
            metavar="FILE",
            help="Write the commit message to a file, if anything is new.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        BumpFormat,
        typer.Option(
            "--format",
            help="Form of the result; nixpkgs-commit: for nixpkgs' update scripts.",
            rich_help_panel=OUTPUT,
        ),
    ] = BumpFormat.TEXT,
    data_dir: DataDirOption = None,
    cache_dir: CacheDirOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = 0,
    log_level: LogLevelOption = None,
    color: ColorOption = ColorChoice.AUTO,
) -> int:
    """Bring the data up to date in one run, and write the commit message for it.

    Downloads what is newer of everything held, looks into its archives, updates the tables if CUDA
    is among it, builds the package sets and judges them, and says what is different. What succeeded
    is kept where something fails; the same command goes on from there. Nothing is ever committed.
    Exit 0 where all went well or nothing is new, with --check 1 where something is.

    Examples:

        cudaredist bump

        cudaredist bump --redist cuda --write-commit-message message.txt --changelog CHANGELOG.md

        cudaredist bump --check --json
    """
    from cudaredist import render
    from cudaredist.locks import writing
    from cudaredist.pipeline import ALL, LATEST, Bump, Selection, targets_in_store
    from cudaredist.source.chain import open_sources
    from cudaredist.source.protocol import Settings
    from cudaredist.store.cache import Cache
    from cudaredist.store.data_folder import Store
    from cudaredist.store.locate import data_folder, held_folder

    console = make_console(color, quiet=quiet, verbose=verbose, log_level=log_level)
    if print_commit_message and (json or format is not BumpFormat.TEXT):
        raise UsageError("--print-commit-message goes without --json and --format")
    if output is not None and not process:
        raise UsageError("--output goes without --no-process", hint="build makes package sets")
    if {LATEST, ALL} & set(version or ()):
        raise UsageError("--version wants a label here, such as 13.0.2")
    Selection.parse(version or (), None, None)
    settings = Settings(
        timeout=timeout,
        retries=retries,
        allow_http=allow_http,
        offline=offline,
        staging=cache_folder(cache_dir),
    )
    root = data_folder(data_dir, writing=not check) if redist else None
    store = Store(root or held_folder(data_dir, writing=not check), channel.value)
    redists = _redists(store, redist, channel, console)
    bases = tuple(bases_of(context, channel.value, base_url))
    targets = targets_in_store(store, redists, bases)
    with contextlib.ExitStack() as stack:
        chains = {
            one: stack.enter_context(contextlib.closing(open_sources(one, settings)))
            for one in {bases, *(target.bases for target in targets)}
        }
        begin = stack.enter_context(writing(store.root)) if not check else lambda: None
        run = Bump(
            store=store,
            redists=redists,
            are_asked_for=bool(redist),
            sources=chains[bases],
            targets=targets,
            chains=chains,
            cache=Cache(cache_folder(cache_dir)),
            stop=settings.stop,
            versions=tuple(version or ()),
            with_archives=process,
            output=output,
            allow_missing_features=allow_missing_features,
            strict=strict,
            write=not check,
            begin=begin,
            jobs=_LISTINGS if parallel else 1,
            archive_jobs=archive_jobs(jobs, parallel=parallel),
            progress=console.progress,
            byte_progress=console.byte_progress,
            announce=console.note,
        )
        report = run.run()
        if not check:
            _write_files(report, write_commit_message, changelog)
        _show(
            report,
            console,
            BumpFormat.JSON if json else format,
            store.root,
            only_message=print_commit_message,
        )
        if print_commit_message or format is BumpFormat.NIXPKGS:
            # The other forms say so themselves.
            for trouble in render.bump_troubles(report):
                console.error(trouble)
        for error in report.errors:
            console.error(error.message, hint=error.hint, details=error.changes)
        run.told(report)
    return report.exit_code


def _redists(
    store: "Store", names: list[str] | None, channel: ChannelChoice, console: "Console"
) -> "list[Redist]":
    """Return the redistributables named, or those of which anything is held."""
    from cudaredist.redists import REDISTS

    if names:
        return chosen_redists(names, channel.value)
    held = store.redists()
    if not held:
        raise UsageError(
            "no manifest is held, so nothing can be behind",
            hint="name what to begin with in --redist, or use download-manifests",
        )
    for name in held:
        if name not in REDISTS:
            console.warning(f"{name} is no redistributable, so it is left alone")
    return [REDISTS[name] for name in held if name in REDISTS]


def _write_files(report: "BumpReport", message: Path | None, changelog: Path | None) -> None:
    from cudaredist import render
    from cudaredist.store.files import read_file, write_output

    text = render.commit_message(report)
    if not text:
        return
    if message is not None:
        write_output(message, text.encode())
    if changelog is not None:
        data = read_file(changelog)
        try:
            held = None if data is None else data.decode()
        except UnicodeDecodeError as error:
            raise WriteError(changelog, OSError("it is no UTF-8 text")) from error
        write_output(changelog, render.with_entries(held, report).encode())


def _show(
    report: "BumpReport", console: "Console", form: BumpFormat, root: Path, *, only_message: bool
) -> None:
    from cudaredist import render

    if only_message:
        console.result(render.commit_message(report))
        if not report.releases:
            console.note("nothing is new")
        return
    match form:
        case BumpFormat.TEXT:
            console.lines(render.bump_text(report))
        case BumpFormat.JSON:
            console.result(render.report_json(report))
        case BumpFormat.MARKDOWN:
            console.lines(render.bump_markdown(report))
        case BumpFormat.NIXPKGS:
            console.result(render.nixpkgs_commits(report, Path(os.path.relpath(root))))
        case BumpFormat.GITHUB:
            console.lines(render.bump_annotations(report))
            append_lines("GITHUB_STEP_SUMMARY", render.bump_markdown(report))
            append_lines("GITHUB_OUTPUT", render.bump_outputs(report))
