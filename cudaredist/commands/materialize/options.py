"""The options of materialize."""

from dataclasses import field
from pathlib import Path
from typing import Literal, TypeAlias

from cudaredist.cli.options import (
    Network,
    Options,
    archive_jobs_option,
    argument,
    component_option,
    folder_option,
    max_archive_option,
    output_flag,
    output_option,
    output_path_option,
    package_option,
    read_data_dir_option,
    safety_option,
    select_option,
)
from cudaredist.cli.session import Refusal

TreeName: TypeAlias = Literal["merged", "split"]
LayoutName: TypeAlias = Literal["merged", "split", "oci"]


class MaterializeOptions(Options):
    """Options of materialize."""

    typical = ("root", "component", "check", "verify", "remove")

    package_set: Path | None = argument("Package set from `build` (*.json).", metavar="SET")
    root: Path = output_path_option(
        "Toolkit root: a new folder, or an existing root.",
        metavar="FOLDER",
        default=...,
    )
    target_set: Path | None = folder_option(
        "Package set of the platform to compile for.", metavar="TARGET_SET"
    )
    layout: LayoutName = output_option(
        "One tree, one for each output, or OCI image.", default="merged"
    )
    component: list[str] | None = component_option(
        "compiler, runtime, math, all or a package. Repeatable."
    )
    programs: list[Path] | None = select_option(
        "Program or folder whose libraries to install. Repeatable.", names="--for", metavar="PATH"
    )
    exclude: list[str] | None = package_option(
        "Package to skip, even if required. Repeatable.", metavar="PACKAGE"
    )
    static: bool = select_option(
        "Install static libraries. Default: on.", names="--static/--no-static", default=True
    )
    run_paths: bool = output_flag("Add missing run paths to libraries. Requires patchelf.")
    archives: Path | None = folder_option(
        "Folder with archives to use before downloads.", metavar="FOLDER"
    )
    max_download: str | None = select_option("Download limit, such as 500MB.", metavar="SIZE")
    replace: bool = safety_option("Remove packages that are not selected, restore altered files.")
    check: bool = safety_option("Only report packages and sizes. Exit 1 if files would change.")
    verify: bool = safety_option("Only verify every file of the root.")
    remove: bool = safety_option("Only remove the installed files.")
    network: Network = field(default_factory=Network)
    jobs: int | None = archive_jobs_option()
    max_archive: str | None = max_archive_option()
    data_dir: Path | None = read_data_dir_option()

    @property
    def tree(self) -> TreeName:
        """The layout of the root, or of the files in an image."""
        return "split" if self.layout == "split" else "merged"

    @property
    def only_root(self) -> bool:
        """Whether an existing root is verified or removed, without a package set."""
        return self.verify or self.remove


REFUSED: tuple[Refusal[MaterializeOptions], ...] = (
    (lambda o: o.verify and o.remove, "--remove cannot be combined with --verify", ["--remove"]),
    (
        lambda o: o.package_set and o.verify,
        "--verify cannot be combined with SET",
        "run `cudaredist materialize --output {root} --verify`",
    ),
    (
        lambda o: o.package_set and o.remove,
        "--remove cannot be combined with SET",
        "run `cudaredist materialize --output {root} --remove`",
    ),
    (
        lambda o: o.target_set and o.only_root,
        "--target-set cannot be combined with --verify or --remove",
        ["--target-set"],
    ),
    (lambda o: o.layout == "oci" and not o.programs, "--layout oci requires --for", ["--layout"]),
    (
        lambda o: o.programs and o.component != ["runtime"],
        "--for requires --component runtime, and no other component",
        ["--for"],
    ),
    (
        lambda o: o.programs and (o.target_set or o.layout == "split"),
        "--for cannot be combined with --target-set or --layout split",
        ["--for"],
    ),
    (lambda o: o.programs and o.exclude, "--for cannot be combined with --exclude", ["--for"]),
    (
        lambda o: o.programs and o.only_root,
        "--for cannot be combined with --verify or --remove",
        ["--for"],
    ),
    (
        lambda o: o.target_set and o.layout == "split",
        "--target-set cannot be combined with --layout split",
        ["--target-set"],
    ),
    (
        lambda o: o.run_paths and o.only_root,
        "--run-paths cannot be combined with --verify or --remove",
        ["--run-paths"],
    ),
    (
        lambda o: o.check and o.only_root,
        "--check cannot be combined with --verify or --remove",
        ["--check"],
    ),
    (
        lambda o: o.replace and o.only_root,
        "--replace cannot be combined with --verify or --remove",
        ["--replace"],
    ),
    (
        lambda o: not (o.package_set or o.only_root),
        "missing package set",
        "run `cudaredist build --cuda 13 --platform linux-x86_64 --output set.json` to create one",
    ),
)
