"""mirror: the manifests and archives of a selection in a folder for a web server."""

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

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
from cudaredist.cli.session import Refusal, Session, command, find_redists, open_cache, warnings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cudaredist.commands.mirror.mirror_folder import MirrorFolder
    from cudaredist.commands.mirror.mirror_paths import MirrorSelection
    from cudaredist.commands.mirror.report import MirrorPruneReport, MirrorSyncReport
    from cudaredist.primitives import Version
    from cudaredist.redists import Redist
    from cudaredist.store.selection import Selection
    from cudaredist.store.targets import FeatureTarget

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
        None,
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
    (lambda o: o.accept_changed and o.action != "sync", "--accept-changed requires sync", None),
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
    --channel wheels. Equal files are hard links.
    """
    from cudaredist.commands.mirror.mirror_folder import MirrorFolder
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
        return session.finish(_prune(options, session, folder), prune_text)
    report = _sync(options, session, folder)
    return session.finish(
        report, sync_text, warnings=warnings_of(report.manifests), errors=sync_errors(report)
    )


@dataclass(frozen=True)
class _Choice:
    """The selection of the options, or of a package set."""

    channel: ChannelName
    redists: "Sequence[Redist]"
    releases: "Selection"
    archives: "MirrorSelection"
    labels: "frozenset[tuple[str, Version]] | None" = None


def _choice(options: MirrorOptions) -> _Choice:
    from cudaredist.commands.mirror.mirror_paths import MirrorSelection
    from cudaredist.primitives import parse_label
    from cudaredist.sets.read_set import read_package_set
    from cudaredist.store.selection import Selection
    from cudaredist.store.targets import Filter

    if options.package_set is None:
        return _Choice(
            options.channel,
            find_redists(options.redist, options.channel),
            options.releases.selection,
            MirrorSelection(options.archives.filter),
        )
    value, _ = read_package_set(options.package_set)
    packages = [p for p in value.packages.values() if p.archive and p.redist and p.release]
    labels = frozenset((p.redist or "", parse_label(p.release or "")) for p in packages)
    of_set = {p.archive.sha256: p.attr for p in packages if p.archive}
    return _Choice(
        value.channel,
        find_redists(sorted({redist for redist, _ in labels}), value.channel),
        Selection(versions=tuple(sorted({str(label) for _, label in labels}))),
        MirrorSelection(Filter(), of_set),
        labels,
    )


def _sync(options: MirrorOptions, session: Session, folder: "MirrorFolder") -> "MirrorSyncReport":
    from cudaredist.commands.download.download import ManifestDownload, store_destination
    from cudaredist.commands.mirror.sync_mirror import MirrorSync, local_metadata
    from cudaredist.sources.chain import SourceChain
    from cudaredist.sources.wheel_source import WheelSource
    from cudaredist.store.archive_service import ArchiveService
    from cudaredist.store.targets import targets_in_store

    choice = _choice(options)
    bases = session.connect(options.network, choice.channel)
    session.lock(folder.root)()
    wheels = None
    if choice.channel == "wheels":
        wheels = WheelSource(session.settings, local_metadata(folder))
    store = folder.store(choice.channel)
    targets: Sequence[FeatureTarget] = targets_in_store(store, choice.redists, bases)
    if wheels is None:
        sources = session.sources(bases)
        chains = {one: session.sources(one) for one in {target.bases for target in targets}}
    else:
        sources = session.enter_context(contextlib.closing(SourceChain([wheels])))
        chains = {bases: sources}
    destination = store_destination(
        store, choice.redists, is_explicit=options.redist is not None or choice.labels is not None
    )
    destination.sweep()
    download = ManifestDownload(
        sources=sources,
        to=destination,
        selection=choice.releases,
        cache=open_cache(options.cache_dir),
        stop=session.settings.stop,
        accept_changed=options.accept_changed,
        progress=session.progress("manifests"),
    )
    service = ArchiveService(
        chains=chains,
        stop=session.settings.stop,
        jobs=options.jobs.count,
        progress=session.progress("archives"),
    )
    return MirrorSync(
        mirror=folder,
        channel=choice.channel,
        download=download,
        targets=targets,
        selection=choice.archives,
        service=service,
        wheels=wheels,
        checksum=options.checksum,
        labels=choice.labels,
    ).run()


def _prune(options: MirrorOptions, session: Session, folder: "MirrorFolder") -> "MirrorPruneReport":
    from cudaredist.commands.mirror.prune_mirror import MirrorPrune
    from cudaredist.store.selection import ALL, Selection

    choice, releases = _choice(options), options.releases
    has_releases = bool(releases.version or releases.min_version or releases.max_version)
    is_whole = not has_releases and choice.labels is None
    folder.lock()
    session.lock(folder.root)()
    return MirrorPrune(
        mirror=folder,
        channel=choice.channel,
        redists=options.redist or (),
        releases=Selection(versions=(ALL,)) if is_whole else choice.releases,
        selection=choice.archives,
        labels=choice.labels,
        write=not options.check,
    ).run()
