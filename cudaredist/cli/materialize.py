"""materialize: a toolkit root from a package set."""

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
    data_dir_option,
    output_option,
    parse_size,
    place_option,
    safety_option,
    select_option,
)
from cudaredist.cli.session import Refusal, Session, command
from cudaredist.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cudaredist.pipeline.toolkit.materialize_set import Materialization

LayoutName: TypeAlias = Literal["merged", "split"]


class MaterializeOptions(Options):
    """The options of materialize."""

    package_set: Path | None = argument("Package set that build made, *.json.", metavar="SET")
    root: Path = place_option(
        "Where the toolkit goes: a folder that is not there yet, or one of ours.",
        metavar="FOLDER",
        default=...,
    )
    layout: LayoutName = output_option(
        "merged: the one tree that nvcc and CMake expect; split: FOLDER/PACKAGE/OUTPUT.",
        default="merged",
    )
    component: list[str] | None = select_option(
        "compiler, runtime, math, all, or a package, with all that it needs; repeatable. "
        "Default: all.",
        metavar="NAME",
    )
    exclude: list[str] | None = select_option(
        "Package to leave out although others need it; repeatable.", metavar="PACKAGE"
    )
    static: bool = select_option(
        "With or without the output `static`.", names="--static/--no-static", default=True
    )
    archives: Path | None = place_option(
        "Where archives are looked for first: laid out as at NVIDIA, or flat.", metavar="FOLDER"
    )
    max_download: str | None = select_option(
        "Most that may be fetched, such as 500MB.", metavar="SIZE"
    )
    replace: bool = safety_option(
        "Remove packages that the root has and that are not selected; restore every altered file."
    )
    verify: bool = safety_option("Only prove that every file of a root is what was laid out.")
    remove: bool = safety_option("Only take a root away: what was laid out, and nothing else.")
    network: Network = field(default_factory=Network)
    jobs: int | None = archive_jobs_option()
    data_dir: Path | None = data_dir_option()


REFUSED: tuple[Refusal[MaterializeOptions], ...] = (
    (lambda o: o.verify and o.remove, "--verify cannot be combined with --remove", None),
    (
        lambda o: o.package_set is not None and (o.verify or o.remove),
        "--verify and --remove cannot be combined with SET",
        "they go by the record in the root",
    ),
    (
        lambda o: o.replace and (o.verify or o.remove),
        "--replace cannot be combined with --verify or --remove",
        None,
    ),
    (
        lambda o: o.package_set is None and not (o.verify or o.remove),
        "name the package set to lay out",
        "cudaredist build makes them",
    ),
)


@command(MaterializeOptions, REFUSED)
def materialize(options: MaterializeOptions, session: Session) -> int:
    """Lay out a CUDA toolkit from a package set: for CMake, CUDA_HOME, containers, Bazel.

    Archives are fetched, proved and written in one pass; the root appears at once, when everything
    in it was proved. A second run does nothing, and one that was interrupted goes on. Another
    selection may add packages; removing some requires --replace. A record of every file lies in the
    root, for --verify and --remove.

    Examples:

        cudaredist build --cuda 13.0.2 --platform linux-x86_64 -o set.json

    Examples that need the network:

        cudaredist materialize set.json --root cuda

        cudaredist materialize set.json --root compiler --component compiler

        cudaredist materialize --root cuda --verify
    """
    from cudaredist.pipeline.toolkit.root import remove_root, verify_root
    from cudaredist.render.set_text import toolkit_text

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
    """Open what is needed to create a toolkit root."""
    from cudaredist.pipeline.archives import ArchiveService
    from cudaredist.pipeline.toolkit.install import Toolkit
    from cudaredist.pipeline.toolkit.materialize_set import (
        Materialization,
        read_package_set,
        select_packages,
    )
    from cudaredist.store.data_folder import Store
    from cudaredist.store.locate import data_folder

    network, archives, jobs = options.network, options.archives, ArchiveJobs(jobs=options.jobs)
    if archives is not None and not os.path.isdir(archives):  # noqa: PTH112 - raises nothing
        raise UsageError(f"--archives {archives}: no such folder")
    value, sha256 = read_package_set(package_set)
    limit = None if options.max_download is None else parse_size(options.max_download)
    store = Store(data_folder(options.data_dir, writing=False))
    chosen = select_packages(value, options.component or (), options.exclude or (), store)
    bases = session.connect(network, value.channel)
    if network.offline and (value.channel == "wheels" or not network.base_url):
        bases = ()
    if not bases and archives is None:
        raise UsageError(
            "without the network, archives must be at hand",
            hint="name the folder that holds them with --archives",
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
        packages=chosen.packages,
        layout=options.layout,
        with_static=options.static,
    )
    return Materialization(
        toolkit=toolkit,
        required=chosen.required,
        root=options.root,
        replace=options.replace,
        sources=service(bases, limit) if bases else None,
        archives=archives,
        local=None if archives is None else service([str(archives)], None),
        announce=session.console.note,
    )
