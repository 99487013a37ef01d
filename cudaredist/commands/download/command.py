"""download-manifests: download manifests into the data folder."""

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from cudaredist.cli.options import (
    ManifestOptions,
    UpstreamReleases,
    argument,
    jobs_option,
    redist_option,
    safety_option,
)
from cudaredist.cli.session import (
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
    from cudaredist.commands.download.download import Destination


class DownloadOptions(ManifestOptions):
    """Options of download-manifests."""

    typical = ("redist", "channel", "version", "min_version", "data_dir")

    url: str | None = argument("Folder with the manifests.", metavar="URL")
    manifest_dir: Path | None = argument(
        "Target folder, without a lock file.", metavar="MANIFEST_DIR"
    )
    redist: list[str] | None = redist_option()
    releases: UpstreamReleases = field(default_factory=UpstreamReleases)
    jobs: int = jobs_option()
    replace: bool = safety_option("Accept manifests that changed upstream or were edited here.")


REFUSED: tuple[Refusal[DownloadOptions], ...] = (
    url_alone("run `cudaredist download-manifests {url} manifests`"),
    URL_WITH_OPTIONS,
    (
        lambda o: o.url is not None and o.releases.nvidia_channel,
        "--nvidia-channel cannot be combined with URL and MANIFEST_DIR",
        ["--nvidia-channel"],
    ),
)


@command(DownloadOptions, REFUSED)
def download_manifests(options: DownloadOptions, session: Session) -> int:
    """Download NVIDIA's manifests and lock their hashes.

    Examples:

        cudaredist download-manifests --redist cuda --redist cudnn  # needs network
        cudaredist download-manifests --redist cuda --min-version 12.6  # needs network
        cudaredist download-manifests --version 12.9.1 URL ./manifests  # needs network

    By default, downloads the newest manifest of every redistributable. --min-version and
    --max-version select all releases in their range. Each manifest is validated, stored byte for
    byte as DATA/manifests/NAME/redistrib_LABEL.json, and recorded in the lock. A manifest that
    changed in place upstream is not overwritten (exit code 4).

    --base-url takes an https:// URL, a file:// URL or a folder. It must contain
    compute/NAME/redist/. If it is repeated, the sources are tried in order. In CUDAREDIST_BASE_URL,
    separate the sources with spaces.

    With URL and MANIFEST_DIR, downloads the manifests of one folder, as in the nixpkgs manual.
    """
    from cudaredist.commands.download.download import ManifestDownload
    from cudaredist.commands.download.text import download_errors, download_text
    from cudaredist.store.locate import data_folder

    is_writing, cache_dir = not options.check, options.folders.cache_dir
    selection = options.releases.selection
    root = options.manifest_dir or data_folder(options.folders.data_dir, writing=True)
    bases = session.connect(options.network, options.channel)
    destination = _destination(options, root)
    sources = session.sources(bases if options.url is None else [options.url], destination.store)
    begin = session.lock(root) if is_writing else lambda: None
    if is_writing:
        destination.sweep()
    report = ManifestDownload(
        sources,
        destination,
        selection,
        open_cache(cache_dir),
        session.workers("manifests", options.jobs),
        write=is_writing,
        accept_changed=options.replace,
        strict=options.strict,
        fail_fast=not options.keep_going,
        begin=begin,
    ).run()
    return session.finish(
        report,
        download_text,
        warnings=warnings_of(report.manifests),
        errors=download_errors(report.redists, report.manifests, report.errors),
    )


def _destination(options: DownloadOptions, root: Path) -> "Destination":
    from cudaredist.commands.download.download import folder_destination, store_destination
    from cudaredist.store.data_folder import Store

    if options.url is not None:
        return folder_destination(options.url, root)
    store = Store(root, options.channel)
    redists = find_redists(options.redist, store.channel)
    return store_destination(store, redists, store.lock().redists, is_explicit=bool(options.redist))
