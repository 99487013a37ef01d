"""mirror: the manifests and archives of a selection in a folder for a web server."""

from dataclasses import field
from pathlib import Path
from typing import Literal, TypeAlias

from cudaredist.cli.options import (
    ArchiveJobs,
    Archives,
    ChannelName,
    Network,
    Options,
    Releases,
    argument,
    cache_dir_option,
    channel_option,
    redist_option,
    safety_option,
    select_option,
)
from cudaredist.cli.session import Refusal, Session, command, warnings_of

MirrorAction: TypeAlias = Literal["sync", "verify", "prune"]
_SELECTING = frozenset(
    {"redist", "channel", "version", "min_version", "max_version", "package", "platform", "variant"}
)


class MirrorOptions(Options):
    """Options of mirror."""

    typical = ("redist", "channel", "version", "platform", "package_set")

    action: MirrorAction = argument(
        "Copy a selection, verify the mirror offline, or remove everything else.",
        metavar="sync|verify|prune",
        default=...,
    )
    folder: Path = argument("Folder of the mirror.", metavar="DIR", default=...)
    redist: list[str] | None = redist_option()
    channel: ChannelName = channel_option()
    releases: Releases = field(default_factory=Releases)
    archives: Archives = field(default_factory=Archives)
    package_set: Path | None = select_option(
        "Package set with the releases and archives to select.", names="--set"
    )
    accept_changed: bool = safety_option("Replace manifests that changed in place upstream.")
    checksum: bool = safety_option("Hash every file. Default: only if its size or time differs.")
    check: bool = safety_option("List the files to prune. Exit 1 if there are any.")
    network: Network = field(default_factory=Network)
    jobs: ArchiveJobs = field(default_factory=ArchiveJobs)
    cache_dir: Path | None = cache_dir_option()


REFUSED: tuple[Refusal[MirrorOptions], ...] = (
    (
        lambda o: o.package_set is not None and o.typed & _SELECTING,
        "--set cannot be combined with other options of the selection",
    ),
    (
        lambda o: o.action == "verify" and (o.package_set or o.typed & _SELECTING),
        "verify cannot be combined with a selection",
        "run `cudaredist mirror verify {folder}`",
    ),
    (
        lambda o: o.check and o.action != "prune",
        "--check requires prune",
        "run `cudaredist mirror prune {folder} --check`",
    ),
    (lambda o: o.accept_changed and o.action != "sync", "--accept-changed requires sync"),
    (
        lambda o: o.checksum and o.action != "sync",
        "--checksum requires sync",
        "run `cudaredist mirror verify {folder}` to read every file",
    ),
)


@command(MirrorOptions, REFUSED)
def mirror(options: MirrorOptions, session: Session) -> int:
    """Sync, verify or prune a mirror for a web server.

    Examples that need the network:

        cudaredist mirror sync ./mirror --redist cuda --version 13.0.2 --platform linux-x86_64
        cudaredist mirror sync ./mirror --channel wheels --redist cuda --package cuda_nvcc
        cudaredist mirror verify ./mirror

    - **sync** downloads and verifies the selected manifests and archives. It resumes interrupted
      runs, and repairs damaged files. By default, it detects these by their size and time. With
      --checksum, it compares the hash of every file.
    - **verify** compares every byte with the lock, offline.
    - **prune** removes stray files. With a selection, keeps the selected releases and removes the
      rest.

    DIR has the layout of NVIDIA's server for --base-url, and a package index in DIR/simple for
    --channel wheels. Equal archives are hard links.
    """
    from cudaredist.commands.mirror.mirror_folder import MirrorFolder
    from cudaredist.commands.mirror.prune_mirror import MirrorPrune
    from cudaredist.commands.mirror.sync_mirror import MirrorSync
    from cudaredist.commands.mirror.text import prune_text, sync_errors, sync_text, verify_text
    from cudaredist.commands.mirror.verify_mirror import MirrorVerification

    session.share_files(with_group=True)
    folder = MirrorFolder(options.folder)
    if options.action == "verify":
        verification = MirrorVerification(
            mirror=folder, jobs=options.jobs.count, progress=session.progress("files")
        )
        return session.finish(verification.run(), verify_text)
    if options.action == "prune":
        return session.finish(MirrorPrune(options, session, folder).run(), prune_text)
    report = MirrorSync(options, session, folder).run()
    return session.finish(
        report, sync_text, warnings=warnings_of(report.manifests), errors=sync_errors(report)
    )
