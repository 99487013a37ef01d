"""The command that lays out toolkit roots."""

import contextlib
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cudaredist.cli.options import (
    OUTPUT,
    PLACES,
    SAFETY,
    SELECT,
    AllowHttpOption,
    ArchiveJobsOption,
    BaseUrlOption,
    ColorChoice,
    ColorOption,
    DataDirOption,
    JsonOption,
    LogLevelOption,
    OfflineOption,
    QuietOption,
    RetriesOption,
    TimeoutOption,
    VerboseOption,
)
from cudaredist.cli.running import (
    archive_jobs,
    bases_of,
    cache_folder,
    exits,
    make_console,
    parse_size,
)
from cudaredist.errors import UsageError


class LayoutChoice(StrEnum):
    """Forms of a toolkit root."""

    MERGED = "merged"
    SPLIT = "split"


@exits
def materialize(
    context: typer.Context,
    package_set: Annotated[
        Path | None,
        typer.Argument(metavar="SET", help="Package set that build made, *.json."),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root",
            metavar="FOLDER",
            help="Where the toolkit goes: a folder that is not there yet, or one of ours.",
            rich_help_panel=PLACES,
        ),
    ] = None,
    layout: Annotated[
        LayoutChoice,
        typer.Option(
            "--layout",
            help="merged: the one tree that nvcc and CMake expect; split: FOLDER/PACKAGE/OUTPUT.",
            rich_help_panel=OUTPUT,
        ),
    ] = LayoutChoice.MERGED,
    component: Annotated[
        list[str] | None,
        typer.Option(
            "--component",
            metavar="NAME",
            help="compiler, runtime, math, all, or a package, with all that it needs; repeatable. "
            "Default: all.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="PACKAGE",
            help="Package to leave out although others need it; repeatable.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    static: Annotated[
        bool,
        typer.Option(
            "--static/--no-static",
            help="With or without the output `static`.",
            rich_help_panel=SELECT,
        ),
    ] = True,
    archives: Annotated[
        Path | None,
        typer.Option(
            "--archives",
            metavar="FOLDER",
            help="Where archives are looked for first: laid out as at NVIDIA, or flat.",
            rich_help_panel=PLACES,
        ),
    ] = None,
    max_download: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Most that may be fetched, such as 500MB.",
            rich_help_panel=SELECT,
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Only prove that every file of a root is what was laid out.",
            rich_help_panel=SAFETY,
        ),
    ] = False,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove",
            help="Only take a root away: what was laid out, and nothing else.",
            rich_help_panel=SAFETY,
        ),
    ] = False,
    base_url: BaseUrlOption = None,
    jobs: ArchiveJobsOption = None,
    retries: RetriesOption = 3,
    timeout: TimeoutOption = 30.0,
    allow_http: AllowHttpOption = False,
    offline: OfflineOption = False,
    data_dir: DataDirOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = 0,
    log_level: LogLevelOption = None,
    color: ColorOption = ColorChoice.AUTO,
) -> int:
    """Lay out a CUDA toolkit from a package set: for CMake, CUDA_HOME, containers, Bazel.

    Archives are fetched, proved and written in one pass; the root appears at once, when everything
    in it was proved. A second run does nothing, and one that was interrupted goes on. A record of
    every file lies in the root, for --verify and --remove.

    Examples:

        cudaredist materialize build/linux-x86_64/cuda-13.0.2.json --root cuda

        cudaredist materialize SET --root cuda --component compiler --component runtime

        cudaredist materialize --root cuda --verify
    """
    from cudaredist import pipeline, render

    console = make_console(color, quiet=quiet, verbose=verbose, log_level=log_level)
    if root is None:
        raise UsageError("a toolkit has a place", hint="name it with --root FOLDER")
    if verify and remove:
        raise UsageError("--verify and --remove exclude each other")
    if package_set is not None and (verify or remove):
        raise UsageError(
            "--verify and --remove go without SET", hint="they go by the record in the root"
        )
    if verify or remove:
        report = (pipeline.verify_root if verify else pipeline.remove_root)(root)
    elif package_set is None:
        raise UsageError("name the package set to lay out", hint="cudaredist build makes them")
    else:
        from cudaredist.pipeline import ArchiveService
        from cudaredist.source.chain import open_sources
        from cudaredist.source.protocol import Settings
        from cudaredist.store.data_folder import Store
        from cudaredist.store.locate import data_folder

        if archives is not None and not os.path.isdir(archives):  # noqa: PTH112 - raises nothing
            raise UsageError(f"--archives {archives}: no such folder")
        found = pipeline.read_package_set(package_set)
        limit = None if max_download is None else parse_size(max_download)
        policy = pipeline.read_component_policy(Store(data_folder(data_dir, writing=False)))
        chosen = pipeline.selected(found.value, component or (), exclude or (), policy)
        channel = found.value.channel
        bases = bases_of(context, channel, base_url)
        if offline and (channel == "wheels" or not base_url):
            bases = []
        if not bases and archives is None:
            raise UsageError(
                "without the network, archives must be at hand",
                hint="name the folder that holds them with --archives",
            )
        settings = Settings(
            timeout=timeout,
            retries=retries,
            allow_http=allow_http,
            offline=offline,
            staging=cache_folder(None),
        )
        with contextlib.ExitStack() as stack:
            progress = stack.enter_context(console.byte_progress("archives"))

            def opened(locations: list[str], limit: int | None) -> ArchiveService | None:
                if not locations:
                    return None
                chain = stack.enter_context(contextlib.closing(open_sources(locations, settings)))
                return ArchiveService(
                    chains={(): chain},
                    stop=settings.stop,
                    jobs=archive_jobs(jobs, parallel=True),
                    progress=progress,
                    max_fetched=limit,
                )

            report = pipeline.Materialization(
                package_set=found.value,
                set_sha256=found.sha256,
                packages=chosen.packages,
                required=chosen.required,
                root=root,
                layout=layout.value,
                with_static=static,
                sources=opened(bases, limit),
                archives=archives,
                at_hand=opened([] if archives is None else [str(archives)], None),
                announce=console.note,
            ).run()
    if json:
        console.result(render.report_json(report))
    else:
        console.lines(render.toolkit_text(report))
    return report.exit_code
