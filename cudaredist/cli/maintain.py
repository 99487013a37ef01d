"""The commands that judge data: check, schema, validate."""

import os
from pathlib import Path
from typing import Annotated

import typer

from cudaredist.cli.options import (
    OUTPUT,
    AllowHttpOption,
    BaseUrlOption,
    CacheDirOption,
    CheckFormat,
    ColorChoice,
    ColorOption,
    DataDirOption,
    JobsOption,
    JsonOption,
    LogLevelOption,
    OfflineOption,
    QuietOption,
    ReadChannelOption,
    RedistOption,
    RetriesOption,
    StrictOption,
    TimeoutOption,
    VerboseOption,
    complete_schema,
)
from cudaredist.cli.running import (
    append_lines,
    bases_of,
    cache_folder,
    chosen_redists,
    exits,
    make_console,
    read_store,
)
from cudaredist.errors import EXIT_OK


@exits
def check(
    context: typer.Context,
    redist: RedistOption = None,
    channel: ReadChannelOption = None,
    base_url: BaseUrlOption = None,
    jobs: JobsOption = 16,
    retries: RetriesOption = 3,
    timeout: TimeoutOption = 30.0,
    allow_http: AllowHttpOption = False,
    offline: OfflineOption = False,
    data_dir: DataDirOption = None,
    cache_dir: CacheDirOption = None,
    format: Annotated[  # noqa: A002 - the option's name
        CheckFormat,
        typer.Option("--format", help="Form of the result.", rich_help_panel=OUTPUT),
    ] = CheckFormat.TEXT,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = 0,
    log_level: LogLevelOption = None,
    color: ColorOption = ColorChoice.AUTO,
) -> int:
    """Say whether the data is fresh against upstream, complete, unchanged and valid.

    For CI: exit 1 means stale or incomplete data, 3 that upstream did not answer, 4 that bytes
    changed in place, 5 that a file is not understood. Writes nothing.

    Examples:

        cudaredist check

        cudaredist check --redist cuda --format markdown

        cudaredist check --offline --json
    """
    from cudaredist import render
    from cudaredist.pipeline import check_data
    from cudaredist.source.chain import open_sources
    from cudaredist.source.protocol import Settings
    from cudaredist.store.cache import Cache

    console = make_console(color, quiet=quiet, verbose=verbose, log_level=log_level)
    store = read_store(console, data_dir, channel, base_url)
    settings = Settings(
        timeout=timeout, retries=retries, allow_http=allow_http, staging=cache_folder(cache_dir)
    )
    bases = bases_of(context, store.channel, base_url)
    sources = None if offline else open_sources(bases, settings)
    with console.progress("checking") as progress:
        report = check_data(
            store,
            chosen_redists(redist, store.channel) if redist else (),
            sources=sources,
            cache=Cache(cache_folder(cache_dir)),
            stop=settings.stop,
            jobs=jobs,
            progress=progress,
        )
    if sources is not None:
        sources.close()
    match CheckFormat.JSON if json else format:
        case CheckFormat.TEXT:
            console.lines(render.check_text(report))
        case CheckFormat.JSON:
            console.result(render.report_json(report))
        case CheckFormat.MARKDOWN:
            console.lines(render.check_markdown(report))
        case CheckFormat.GITHUB:
            console.lines(render.check_annotations(report, os.path.relpath(store.root)))
            append_lines("GITHUB_STEP_SUMMARY", render.check_markdown(report))
            append_lines("GITHUB_OUTPUT", render.check_outputs(report))
    return report.exit_code


@exits
def schema(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Kind of data file.", autocompletion=complete_schema),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Print the JSON Schema of a kind of data file; without NAME, list the kinds.

    Examples:

        cudaredist schema

        cudaredist schema features > feature.schema.json
    """
    from cudaredist import render
    from cudaredist.schema.registry import FILE_KINDS, shipped_schema

    console = make_console()
    if name is not None:
        console.result(shipped_schema(name))
    elif json:
        console.result(render.kinds_json(FILE_KINDS.values()))
    else:
        console.lines(render.kinds_text(FILE_KINDS.values()))
    return EXIT_OK


@exits
def validate(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Manifests of NVIDIA's, or data files of ours."),
    ],
    strict: StrictOption = False,
    cache_dir: CacheDirOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Judge manifests and our own data files, told apart by their content.

    Every problem of a file is reported with the path to its field. Package sets are also held to
    the invariants I1 to I15 and I19, together where several are given; what needs the files of
    archives is looked up in the cache that process-manifests filled.

    Examples:

        cudaredist validate data/manifests/cuda/*.json data/manifests/lock.json

        cudaredist validate build/*/*.json
    """
    from cudaredist import render
    from cudaredist.pipeline import validate_files
    from cudaredist.store.cache import Cache

    console = make_console(quiet=quiet)
    report = validate_files(files, cache=Cache(cache_folder(cache_dir)), strict=strict)
    if json:
        console.result(render.report_json(report))
    else:
        console.lines(render.validate_text(report))
    return report.exit_code
