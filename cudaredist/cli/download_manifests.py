"""download-manifests: manifests from upstream into the data folder."""

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from cudaredist.cli.options import (
    ChannelName,
    Network,
    Options,
    Places,
    Releases,
    Write,
    argument,
    channel_option,
    jobs_option,
    keep_going_option,
    parallel_option,
    redist_option,
    safety_option,
    strict_option,
)
from cudaredist.cli.session import (
    CHECK_OR_DRY_RUN,
    URL_WITH_OPTIONS,
    Refusal,
    Session,
    command,
    find_redists,
    open_cache,
    url_alone,
    warnings_of,
)

if TYPE_CHECKING:
    from cudaredist.pipeline.manifests.download import Destination


class DownloadOptions(Options):
    """The options of download-manifests."""

    url: str | None = argument("Folder that itself holds the manifests.", metavar="URL")
    manifest_dir: Path | None = argument(
        "Where to put them, without a lock file.", metavar="MANIFEST_DIR"
    )
    redist: list[str] | None = redist_option()
    channel: ChannelName = channel_option()
    releases: Releases = field(default_factory=Releases)
    network: Network = field(default_factory=Network)
    jobs: int = jobs_option()
    parallel: bool = parallel_option()
    accept_changed: bool = safety_option(
        "Take manifests that changed in place upstream, or were edited here."
    )
    write: Write = field(default_factory=Write)
    keep_going: bool = keep_going_option()
    strict: bool = strict_option()
    cleanup: bool = safety_option(
        "No effect here: manifests need no cleaning up.",
        names="--cleanup/--no-cleanup",
        hidden=True,
        default=True,
    )
    """Accepted so that the calls in the nixpkgs manual work."""
    places: Places = field(default_factory=Places)


REFUSED: tuple[Refusal[DownloadOptions], ...] = (
    CHECK_OR_DRY_RUN,
    url_alone("say where the manifests are to go"),
    URL_WITH_OPTIONS,
)


@command(DownloadOptions, REFUSED)
def download_manifests(options: DownloadOptions, session: Session) -> int:
    """Find and fetch manifests, keep NVIDIA's bytes, and guard them against change.

    The newest manifest of every redistributable by default. Each is proved to be a manifest, stored
    untouched as DATA/manifests/NAME/redistrib_LABEL.json and recorded in the lock. One that changed
    in place upstream is not overwritten (exit 4).

    With URL and MANIFEST_DIR: one folder of manifests into one folder, as in the nixpkgs manual.

    Examples that need the network:

        cudaredist download-manifests --redist cuda --redist cudnn

        cudaredist download-manifests --redist cuda --min-version 12.6

        cudaredist download-manifests --version 12.9.1 URL ./manifests
    """
    from cudaredist.pipeline.manifests.download import ManifestDownload
    from cudaredist.render.manifest_text import download_errors, download_text
    from cudaredist.store.locate import data_folder

    is_writing, cache_dir = options.write.is_allowed, options.places.cache_dir
    selection = options.releases.selection
    root = options.manifest_dir or data_folder(options.places.data_dir, writing=True)
    bases = session.connect(options.network, options.channel)
    sources = session.sources(bases if options.url is None else [options.url])
    begin = session.lock(root) if is_writing else lambda: None
    destination = _destination(options, root)
    if is_writing:
        destination.sweep()
    report = ManifestDownload(
        sources=sources,
        to=destination,
        selection=selection,
        cache=open_cache(cache_dir),
        stop=session.settings.stop,
        jobs=options.jobs if options.parallel else 1,
        write=is_writing,
        accept_changed=options.accept_changed,
        strict=options.strict,
        fail_fast=not options.keep_going,
        progress=session.progress("manifests"),
        begin=begin,
    ).run()
    return session.finish(
        report,
        download_text,
        warnings=warnings_of(report.manifests),
        errors=download_errors(report),
        dry_run=options.write.dry_run,
    )


def _destination(options: DownloadOptions, root: Path) -> "Destination":
    from cudaredist.pipeline.manifests.download import into_folder, into_store
    from cudaredist.store.data_folder import Store

    if options.url is not None:
        return into_folder(options.url, root)
    store = Store(root, options.channel)
    redists = find_redists(options.redist, store.channel)
    return into_store(store, redists, are_asked_for=bool(options.redist))
