"""The commands that answer questions: diff, which, versions."""

from enum import StrEnum
from typing import Annotated

import typer

from cudaredist.cli.options import (
    OUTPUT,
    SELECT,
    AllowHttpOption,
    BaseUrlOption,
    CacheDirOption,
    DataDirOption,
    JobsOption,
    JsonOption,
    OfflineOption,
    QuietOption,
    ReadChannelOption,
    RedistOption,
    RetriesOption,
    TimeoutOption,
    complete_platform,
)
from cudaredist.cli.running import (
    bases_of,
    cache_folder,
    chosen_redists,
    exits,
    make_console,
    read_store,
)
from cudaredist.errors import EXIT_OK, UsageError


class DiffFormat(StrEnum):
    """Forms of diff's result."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


class VersionsFormat(StrEnum):
    """Forms of versions' result."""

    TEXT = "text"
    JSON = "json"
    RENOVATE = "renovate"
    NEWEST = "newest"


@exits
def diff(
    old: Annotated[
        str, typer.Argument(metavar="OLD", help="A file, or a release held: cuda@12.9.0.")
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Likewise, and of the same kind.")],
    channel: ReadChannelOption = None,
    data_dir: DataDirOption = None,
    cache_dir: CacheDirOption = None,
    format: Annotated[  # noqa: A002 - the option's name
        DiffFormat,
        typer.Option("--format", help="Form of the result.", rich_help_panel=OUTPUT),
    ] = DiffFormat.TEXT,
    json: JsonOption = False,
) -> int:
    """Say what is different between two releases, manifests, feature files or package sets.

    In a reviewer's order: other bytes under the same version, what is gone, what lost something or
    needs more, what is new, what changed. Of releases held, features and tables are compared as
    well. Where the cache knows the archives, files that lie in another package than before are
    named, and tell which one a new one was split from.

    Examples:

        cudaredist diff cuda@12.9.1 cuda@13.0.2

        cudaredist diff old/cuda-13.0.2.json new/cuda-13.0.2.json --format markdown
    """
    from cudaredist import pipeline, render
    from cudaredist.store.cache import Cache

    console = make_console()
    store = read_store(console, data_dir, channel)
    report = pipeline.diff(old, new, store, Cache(cache_folder(cache_dir)))
    match DiffFormat.JSON if json else format:
        case DiffFormat.TEXT:
            console.lines(render.diff_text(report))
        case DiffFormat.MARKDOWN:
            console.lines(render.diff_markdown(report))
        case DiffFormat.JSON:
            console.result(render.report_json(report))
    return EXIT_OK


@exits
def which(
    name: Annotated[
        str,
        typer.Argument(
            metavar="FILE|SONAME",
            help="Soname, file name or end of a path; * stands for any characters.",
        ),
    ],
    cuda: Annotated[
        str | None,
        typer.Option(
            "--cuda",
            metavar="LABEL",
            help="Only this CUDA release or minor, of the redistributable cuda.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option(
            "--platform",
            metavar="NAME",
            help="Only this platform.",
            rich_help_panel=SELECT,
            autocompletion=complete_platform,
        ),
    ] = None,
    redist: RedistOption = None,
    channel: ReadChannelOption = None,
    data_dir: DataDirOption = None,
    cache_dir: CacheDirOption = None,
    json: JsonOption = False,
) -> int:
    """Say which packages, outputs and releases provide a file or a soname.

    Libraries and programs are found by the feature files; headers and all else where the cache
    knows the archive. Exit 1 means that nothing held provides it.

    Examples:

        cudaredist which libcublas.so.12

        cudaredist which crt/host_config.h --cuda 12.9 --platform linux-x86_64
    """
    from cudaredist import pipeline, render
    from cudaredist.pipeline import Selection
    from cudaredist.store.cache import Cache

    console = make_console()
    store = read_store(console, data_dir, channel)
    names = [entry.name for entry in chosen_redists(redist, store.channel)]
    chosen = names if redist else ["cuda"] if cuda else []
    report = pipeline.which(
        name,
        store,
        Cache(cache_folder(cache_dir)),
        redists=chosen,
        cuda=None if cuda is None else Selection.parse([], cuda, cuda),
        platform=platform,
    )
    if json:
        console.result(render.report_json(report))
    else:
        console.lines(render.which_text(report))
    return report.exit_code


@exits
def versions(
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
    format: Annotated[  # noqa: A002 - the option's name
        VersionsFormat,
        typer.Option(
            "--format",
            help="Form of the result. Of one --redist: renovate, for its custom data source, and "
            "newest, the newest label alone, for nvchecker.",
            rich_help_panel=OUTPUT,
        ),
    ] = VersionsFormat.TEXT,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """List the labels held and those upstream, for people and for update bots.

    Only listings are fetched. A line is stale where upstream has a newer label than the newest
    held, which is no failure here: see check.

    Examples:

        cudaredist versions --redist cuda --redist cudnn

        cudaredist versions --redist cudnn --format renovate
    """
    from cudaredist import pipeline, render
    from cudaredist.source.chain import open_sources
    from cudaredist.source.protocol import Settings

    console = make_console(quiet=quiet)
    store = read_store(console, data_dir, channel, base_url)
    redists = chosen_redists(redist, store.channel)
    if format in {VersionsFormat.RENOVATE, VersionsFormat.NEWEST} and len(redists) != 1:
        raise UsageError(
            f"--format {format.value} is about one redistributable", hint="name one --redist"
        )
    settings = Settings(
        timeout=timeout, retries=retries, allow_http=allow_http, staging=cache_folder(None)
    )
    sources = (
        None if offline else open_sources(bases_of(context, store.channel, base_url), settings)
    )
    with console.progress("listing") as progress:
        report = pipeline.read_versions(
            store,
            redists,
            sources=sources,
            stop=settings.stop,
            jobs=jobs,
            progress=progress,
            are_asked_for=bool(redist),
        )
    if sources is not None:
        sources.close()
    match VersionsFormat.JSON if json else format:
        case VersionsFormat.TEXT:
            console.lines(render.versions_text(report))
        case VersionsFormat.JSON:
            console.result(render.report_json(report))
        case VersionsFormat.RENOVATE:
            # That nothing is known must not look as if all releases had been withdrawn.
            for name in report.releases:
                console.result(render.versions_renovate(report, name))
        case VersionsFormat.NEWEST:
            console.lines(report.releases.get(redists[0].name, ())[-1:])
    for error in report.errors:
        console.error(error.message, hint=error.hint)
    return report.exit_code
