"""The options of mirror."""

from dataclasses import field
from pathlib import Path
from typing import Literal

from cudaredist.cli.options import (
    ArchiveJobs,
    Archives,
    ChannelName,
    Network,
    Options,
    UpstreamReleases,
    argument,
    cache_dir_option,
    channel_option,
    component_option,
    redist_option,
    safety_option,
    select_option,
)
from cudaredist.cli.session import Refusal

_SELECTING = frozenset(
    {"redist", "channel", "version", "min_version", "max_version", "package", "platform", "variant"}
)


class MirrorOptions(Options):
    """Options of mirror."""

    typical = ("redist", "version", "platform", "package_set", "check")

    action: Literal["sync", "verify", "prune"] = argument(
        "Copy a selection, verify the mirror offline, or remove everything else.",
        metavar="sync|verify|prune",
        default=...,
    )
    folder: Path = argument("Folder of the mirror.", metavar="DIR", default=...)
    redist: list[str] | None = redist_option()
    channel: ChannelName = channel_option()
    releases: UpstreamReleases = field(default_factory=UpstreamReleases)
    archives: Archives = field(default_factory=Archives)
    package_set: Path | None = select_option(
        "Package set with the releases and archives to select.", names="--set"
    )
    component: list[str] | None = component_option(
        "Of --set: compiler, runtime, math or a package. Repeatable."
    )
    replace: bool = safety_option("Replace manifests that changed in place upstream.")
    checksum: bool = safety_option("Hash every file. Default: only if its size or time differs.")
    check: bool = safety_option("Only list files to write or to prune. Exit 1 if any.")
    network: Network = field(default_factory=Network)
    jobs: ArchiveJobs = field(default_factory=ArchiveJobs)
    cache_dir: Path | None = cache_dir_option()


REFUSED: tuple[Refusal[MirrorOptions], ...] = (
    (
        lambda o: o.package_set is not None and o.typed & _SELECTING,
        "--set cannot be combined with other options of the selection",
        ["--set"],
    ),
    (
        lambda o: o.component and o.package_set is None,
        "--component requires --set",
        ["--component"],
    ),
    (
        lambda o: o.action == "verify" and (o.package_set or o.typed & _SELECTING),
        "verify cannot be combined with a selection",
        "run `cudaredist mirror verify {folder}`",
    ),
    (
        lambda o: o.check and o.action == "verify",
        "--check requires sync or prune",
        ["--check"],
    ),
    (lambda o: o.replace and o.action != "sync", "--replace requires sync", ["--replace"]),
    (
        lambda o: o.checksum and o.action != "sync",
        "--checksum requires sync",
        "run `cudaredist mirror verify {folder}` to read every file",
    ),
)
