"""The options of bump."""

from dataclasses import field
from pathlib import Path
from typing import Literal, TypeAlias

from cudaredist.cli.options import (
    ArchiveJobs,
    ChannelName,
    Folders,
    Network,
    NvidiaChannels,
    Options,
    check_option,
    format_option,
    label_option,
    output_option,
    output_path_option,
    redist_option,
    safety_option,
    select_option,
    shipped_data_option,
    strict_option,
)
from cudaredist.cli.session import Refusal

BumpFormat: TypeAlias = Literal["text", "markdown", "github", "commit-message", "nixpkgs-commit"]


class BumpOptions(Options):
    """Options of bump."""

    typical = ("redist", "version", "check", "output", "write_commit_message")

    redist: list[str] | None = redist_option()
    channel: ChannelName | None = select_option(
        "NVIDIA's archives or wheels. Default: the local ones."
    )
    version: list[str] | None = label_option("Release to add. Repeatable. Default: newer ones.")
    nvidia_channels: NvidiaChannels = field(default_factory=NvidiaChannels)
    process: bool = select_option(
        "Inspect archives and build sets. Default: on.",
        names="--process/--no-process",
        default=True,
    )
    network: Network = field(default_factory=Network)
    jobs: ArchiveJobs = field(default_factory=ArchiveJobs)
    allow_missing_features: bool = safety_option(
        "Accept local releases without features in package sets."
    )
    check: bool = check_option()
    strict: bool = strict_option()
    output: Path | None = output_path_option(
        "Folder for the newest package sets. Default: none.", metavar="FOLDER"
    )
    changelog: Path | None = output_option("Changelog for new entries under Unreleased, ### Data.")
    write_commit_message: Path | None = output_option("File for the commit message.")
    format: BumpFormat = format_option("text, markdown, github, commit-message or nixpkgs-commit.")
    folders: Folders = field(default_factory=Folders)
    shipped_data: bool = shipped_data_option()


REFUSED: tuple[Refusal[BumpOptions], ...] = (
    (
        lambda o: o.json and o.format == "commit-message",
        "--json cannot be combined with --format commit-message",
        ["--json"],
    ),
    (
        lambda o: o.output is not None and not o.process,
        "--output cannot be combined with --no-process",
        "run `cudaredist build --output {output}` to create package sets",
    ),
    (
        lambda o: {"latest", "all"} & set(o.version or ()),
        "--version of bump requires a release, such as 13.0.2",
        ["--version"],
    ),
)
