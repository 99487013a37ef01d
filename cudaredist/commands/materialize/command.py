"""materialize: create a toolkit root from a package set."""

from dataclasses import field
from pathlib import Path
from typing import Literal, TypeAlias

from cudaredist.cli.options import (
    Network,
    Options,
    archive_jobs_option,
    argument,
    folder_option,
    output_option,
    read_data_dir_option,
    safety_option,
    select_option,
)
from cudaredist.cli.session import Refusal, Session, command

LayoutName: TypeAlias = Literal["merged", "split"]


class MaterializeOptions(Options):
    """Options of materialize."""

    typical = ("root", "component", "archives", "verify", "remove")

    package_set: Path | None = argument("Package set from `build` (*.json).", metavar="SET")
    root: Path = folder_option(
        "Toolkit root: a new folder, or an existing root.",
        names="--root -o",
        metavar="FOLDER",
        default=...,
    )
    target: Path | None = folder_option(
        "Package set of the platform to compile for.", metavar="TARGET_SET"
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
    (lambda o: o.verify and o.remove, "--remove cannot be combined with --verify"),
    (
        lambda o: o.package_set is not None and (o.verify or o.remove),
        "--verify and --remove cannot be combined with SET",
        "run `cudaredist materialize --root {root} --verify`",
    ),
    (
        lambda o: o.target is not None and (o.verify or o.remove),
        "--target cannot be combined with --verify or --remove",
    ),
    (
        lambda o: o.target is not None and o.layout == "split",
        "--target cannot be combined with --layout split",
    ),
    (
        lambda o: o.replace and (o.verify or o.remove),
        "--replace cannot be combined with --verify or --remove",
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
        cudaredist materialize set.json --target arm.json --root cross
        cudaredist materialize --root cuda --verify

    A component or package includes its dependencies. The toolkit works with CMake, CUDA_HOME,
    containers and Bazel. Archives are downloaded, verified and unpacked in one pass. The root
    appears only when all of its files are verified. If a run is interrupted, the next one resumes
    it. A run with other components adds packages; use --replace to remove some.

    With --target, the root contains the compilers of SET, and the headers and libraries of
    TARGET_SET, in `targets/sbsa-linux` or `targets/aarch64-linux`.

    The root contains a record of every file for --verify and --remove. With --layout split, each
    output has its own tree, ROOT/PACKAGE/OUTPUT, instead of the one that nvcc and CMake expect.
    """
    from cudaredist.commands.materialize.materialize_set import Materialization
    from cudaredist.commands.materialize.root import remove_root, verify_root
    from cudaredist.commands.materialize.text import toolkit_text

    session.share_files()
    if options.package_set is not None:
        report = Materialization(options, options.package_set, session).run()
    elif options.remove:
        report = remove_root(options.root)
    else:
        report = verify_root(options.root)
    return session.finish(report, toolkit_text)
