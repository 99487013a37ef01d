"""materialize: create a toolkit root from a package set."""

import os
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from cudaredist.cli.options import (
    ArchiveJobs,
    Network,
    Options,
    archive_jobs_option,
    argument,
    folder_option,
    output_option,
    parse_size,
    read_data_dir_option,
    safety_option,
    select_option,
)
from cudaredist.cli.session import Refusal, Session, command
from cudaredist.errors import UsageError
from cudaredist.hints import again

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cudaredist.commands.materialize.materialize_set import Materialization

LayoutName: TypeAlias = Literal["merged", "split"]


class MaterializeOptions(Options):
    """Options of materialize."""

    typical = ("root", "component", "archives", "verify", "remove")

    package_set: Path | None = argument("Package set from `build` (*.json).", metavar="SET")
    root: Path = folder_option(
        "Toolkit root: a new folder, or an existing root.",
        metavar="FOLDER",
        default=...,
    )
    layout: LayoutName = output_option("One tree, or one for each output.", default="merged")
    component: list[str] | None = select_option(
        "compiler, runtime, math, all or a package. Repeatable."
    )
    exclude: list[str] | None = select_option(
        "Package to skip, even if required. Repeatable.", metavar="PACKAGE"
    )
    static: bool = select_option(
        "Install static libraries. Default: on.", names="--static/--no-static", default=True
    )
    archives: Path | None = folder_option(
        "Folder with archives to use before downloads.", metavar="FOLDER"
    )
    max_download: str | None = select_option("Download limit, such as 500MB.", metavar="SIZE")
    replace: bool = safety_option("Remove packages that are not selected, restore altered files.")
    verify: bool = safety_option("Only verify every file of the root.")
    remove: bool = safety_option("Only remove the installed files.")
    network: Network = field(default_factory=Network)
    jobs: int | None = archive_jobs_option()
    data_dir: Path | None = read_data_dir_option()


REFUSED: tuple[Refusal[MaterializeOptions], ...] = (
    (lambda o: o.verify and o.remove, "--remove cannot be combined with --verify", None),
    (
        lambda o: o.package_set is not None and (o.verify or o.remove),
        "--verify and --remove cannot be combined with SET",
        "run `cudaredist materialize --root {root} --verify`",
    ),
    (
        lambda o: o.replace and (o.verify or o.remove),
        "--replace cannot be combined with --verify or --remove",
        None,
    ),
    (
        lambda o: o.package_set is None and not (o.verify or o.remove),
        "missing package set",
        "run `cudaredist build --cuda 13 --platform linux-x86_64 --output set.json` to create one",
    ),
)


@command(MaterializeOptions, REFUSED)
def materialize(options: MaterializeOptions, session: Session) -> int:
    """Create a CUDA toolkit from a package set.

    Examples that need the network:

        cudaredist materialize set.json --root cuda
        cudaredist materialize set.json --root compiler --component compiler
        cudaredist materialize --root cuda --verify

    A component or package includes its dependencies. The toolkit works with CMake, CUDA_HOME,
    containers and Bazel. Archives are downloaded, verified and unpacked in one pass. The root
    appears only when all of its files are verified. If a run is interrupted, the next one resumes
    it. A run with other components adds packages; use --replace to remove some.

    The root contains a record of every file for --verify and --remove. With --layout split, each
    output has its own tree, ROOT/PACKAGE/OUTPUT, instead of the one that nvcc and CMake expect.
    """
    from cudaredist.commands.materialize.root import remove_root, verify_root
    from cudaredist.commands.materialize.text import toolkit_text

    session.share_files()
    if options.package_set is not None:
        report = _materialization(options, options.package_set, session).run()
    elif options.remove:
        report = remove_root(options.root)
    else:
        report = verify_root(options.root)
    return session.finish(report, toolkit_text)


def _materialization(
    options: MaterializeOptions, package_set: Path, session: Session
) -> "Materialization":
    """Open the sources, and prepare the creation of a toolkit root."""
    from cudaredist.commands.materialize.install import Toolkit
    from cudaredist.commands.materialize.materialize_set import Materialization, select_packages
    from cudaredist.sets.read_set import read_package_set
    from cudaredist.store.archive_service import ArchiveService
    from cudaredist.store.data_folder import Store
    from cudaredist.store.locate import data_folder

    network, archives, jobs = options.network, options.archives, ArchiveJobs(jobs=options.jobs)
    if archives is not None and not os.path.isdir(archives):  # noqa: PTH112 - raises nothing
        raise UsageError(
            f"--archives {archives}: no such folder",
            hint=f"to download them, run `{again(without=['--archives'])}`",
        )
    value, sha256 = read_package_set(package_set)
    limit = parse_size(options.max_download)
    store = Store(data_folder(options.data_dir, writing=False))
    selection = select_packages(value, options.component or (), options.exclude or (), store)
    bases = session.connect(network, value.channel)
    if network.offline and (value.channel == "wheels" or not network.base_url):
        bases = ()
    if not bases and archives is None:
        raise UsageError(
            "--offline requires --archives",
            hint="set the folder with the archives with --archives FOLDER, or run "
            f"`{again(without=['--offline'])}`",
        )
    progress = session.progress("archives")

    def service(bases: "Sequence[str]", limit: int | None) -> ArchiveService:
        return ArchiveService(
            chains={(): session.sources(bases)},
            stop=session.settings.stop,
            jobs=jobs.count,
            progress=progress,
            max_fetched=limit,
        )

    toolkit = Toolkit(
        package_set=value,
        set_sha256=sha256,
        packages=selection.packages,
        layout=options.layout,
        with_static=options.static,
    )
    return Materialization(
        toolkit=toolkit,
        required=selection.required,
        root=options.root,
        replace=options.replace,
        sources=service(bases, limit) if bases else None,
        archives=archives,
        local=None if archives is None else service([str(archives)], None),
        announce=session.console.note,
    )
