"""Fetch, validate and compare a single upstream manifest."""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from cudaredist.errors import (
    IncompleteError,
    InvalidFileError,
    ManifestMismatchError,
    Problem,
    TooLargeError,
)
from cudaredist.formats.lock import LockEntry
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.wheel_policy import WheelPolicy
from cudaredist.hints import again
from cudaredist.jsontext import load_json
from cudaredist.manifests.field_reader import POOL_WARNING
from cudaredist.manifests.manifest_changes import manifest_changes
from cudaredist.manifests.manifest_values import Manifest
from cudaredist.manifests.read_manifest import MANIFEST_LIMIT, read_manifest
from cudaredist.primitives import (
    PREVIEW,
    ArchiveId,
    Version,
    manifest_name,
    published_sha256,
    resolved_path,
    sha256_of,
)
from cudaredist.redists import REDISTS, Redist
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.protocol import Listing, NvidiaChannelQuery
from cudaredist.sources.releases import NvidiaChannelRelease
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.words import shortened, shown


def read_wheel_policy(store: Store) -> WheelPolicy:
    """Return the policy of wheels.

    Raises `InvalidFileError` if the file is broken.
    """
    return read_own_file(store.read_policy("wheels"), WheelPolicy)


def nvidia_channel_query(
    store: Store, redist: Redist, nvidia_channels: Collection[str], *, is_direct: bool = False
) -> NvidiaChannelQuery | None:
    """Return the query for the releases of NVIDIA's second server.

    Local releases from there are listed even if their NVIDIA channel is not selected. Without
    such a release and without an NVIDIA channel, there is no query. A direct query does not look
    for the product in `channels.json` first.
    """
    if store.channel != "redist":
        return None
    selected = set(nvidia_channels)
    recorded = {
        Version.parse(label): entry.nvidia_channel
        for label, entry in store.recorded(redist.name).items()
        if entry.nvidia_channel is not None
    }
    if store.manifests(redist.name).has_preview():
        selected.add(PREVIEW)
    if not selected and not recorded:
        return None
    is_known = is_direct or bool(recorded)
    return NvidiaChannelQuery(
        redist.name, frozenset(selected), redist.preview_folder, recorded, is_known
    )


def unknown_nvidia_channels(
    selected: Collection[str], known: Collection[str]
) -> Iterator[IncompleteError]:
    """Yield an error for each selected NVIDIA channel that no product has.

    Without `releases.json`, early-access releases are listed in a folder, so `preview` is known.
    """
    for name in sorted(set(selected) - {*known, PREVIEW}):
        names = ", ".join(sorted(known)) or "none"
        hint = f"channels: {names}; run `{again(without=['--nvidia-channel'])}`"
        yield IncompleteError(f"no selected redistributable has the channel {name}", hint=hint)


class NvidiaChannelMove(NamedTuple):
    """A local release that is no longer in its recorded NVIDIA channel."""

    label: Version
    before: str
    after: str | None
    """Its new NVIDIA channel. None: it is on the usual server."""

    @property
    def text(self) -> str:
        """The move as text, such as `13.4.0 left preview (now in archive)`."""
        now = "on the usual server" if self.after is None else f"in {self.after}"
        return f"{self.label} left {self.before} (now {now})"


def nvidia_channel_moves(
    recorded: Mapping[str, LockEntry], listing: Listing
) -> tuple[NvidiaChannelMove, ...]:
    """Return the recorded releases that upstream moved to another place."""
    moves = []
    for text, entry in recorded.items():
        label, before = Version.parse(text), entry.nvidia_channel
        release = listing.releases.get(label)
        if before is None:
            continue
        if label in listing.folders and not listing.is_preview(label):
            moves.append(NvidiaChannelMove(label, before, None))
        elif release is not None and release.nvidia_channel != before:
            moves.append(NvidiaChannelMove(label, before, release.nvidia_channel))
    return tuple(sorted(moves))


class UpstreamManifest(NamedTuple):
    """A manifest with the source that served it."""

    source: str
    data: bytes
    sha256: str
    warnings: tuple[str, ...]
    """Empty if the local file already has these bytes."""
    doubts: tuple[str, ...] = ()
    """Reasons why it may have other archives than the release, even if it is local."""
    release: NvidiaChannelRelease | None = None
    """The entry of `releases.json` that names it."""

    @property
    def origin(self) -> str:
        """The server or the NVIDIA channel, for messages."""
        return f"those of {self.source}" if self.release is None else "those of the channel"

    @property
    def entry(self) -> LockEntry:
        """The record for the lock."""
        return LockEntry(
            sha256=self.sha256,
            size=len(self.data),
            nvidia_channel=self.release and self.release.nvidia_channel,
            address=self.release and self.release.address,
        )


def fetch_manifest(
    sources: SourceChain,
    cache: Cache,
    label: Version,
    listing: Listing,
    local: bytes | None,
    *,
    redist: Redist | None = None,
    strict: bool = False,
    whole: bool = False,
) -> UpstreamManifest:
    """Fetch a listed manifest, and validate it if it is new.

    If the server sent an ETag for the local bytes, only ask whether they changed. `whole` turns
    that off: bytes that were damaged in transit came with the ETag of the good ones. After trying
    every source, raises `SourceError`, or `InvalidFileError` if the bytes are not a valid manifest
    or, with `strict`, cause warnings.
    """
    folder = listing.folders[label]
    name = manifest_name(label)
    # `strict` validates local bytes too, so it needs them from the source.
    is_needed = strict or whole or local is None
    warnings: list[Problem] = []

    def inspect(data: bytes) -> None:
        if data != local or strict:
            _, warnings[:] = validate_manifest(data, label, redist, strict=strict)

    location, delivery = sources.read(
        f"{folder}/{name}" if folder else name,
        MANIFEST_LIMIT,
        first=listing.sources[label],
        etag=None if is_needed else partial(cache.etag, sha256=sha256_of(local or b"")),
        inspect=inspect,
    )
    data = (local if delivery.data is None else delivery.data) or b""
    if local is not None and delivery.is_generated and _differ_by_missing_date(local, data):
        # An accepted change adds a date, and never removes one.
        adds_date = len(data) > len(local)
        if not (whole and adds_date):
            data = local
    if delivery.etag:
        cache.remember(location, sha256_of(data), delivery.etag)
    return UpstreamManifest(
        delivery.source, data, sha256_of(data), shortened(warnings), delivery.doubts
    )


def fetch_listed(
    sources: SourceChain,
    cache: Cache,
    label: Version,
    listing: Listing,
    local: bytes | None,
    *,
    redist: Redist,
    entry: LockEntry | None = None,
) -> UpstreamManifest:
    """Fetch a manifest from the server that the lock's entry names, by default the usual one."""
    release = listing.releases.get(label)
    is_of_nvidia_channel = label not in listing.folders or (entry and entry.nvidia_channel)
    if release is not None and is_of_nvidia_channel:
        return fetch_nvidia_channel_manifest(sources, release, listing, local, redist=redist)
    return fetch_manifest(sources, cache, label, listing, local, redist=redist)


def fetch_nvidia_channel_manifest(
    sources: SourceChain,
    release: NvidiaChannelRelease,
    listing: Listing,
    local: bytes | None,
    *,
    redist: Redist,
    strict: bool = False,
) -> UpstreamManifest:
    """Fetch the manifest of an entry of `releases.json`, and validate it if it is new.

    Local bytes with the entry's hash are not requested again. Raises `ManifestMismatchError` if the
    size or the hash differs from the entry, before the manifest is parsed.
    """
    first = listing.sources[release.label]
    source, data = first, local
    warnings: list[Problem] = []
    if local is None or published_sha256(local, release.sha256) != release.sha256:

        def verify(delivered: bytes) -> None:
            _verify(delivered, release, release.address)

        try:
            _, delivery = sources.read(release.address, release.size, first=first, inspect=verify)
        except TooLargeError as error:
            raise ManifestMismatchError(
                release.address, "size", f"{release.size:,}", f"more than {release.size:,} bytes"
            ) from error
        source, data = delivery.source, delivery.data or b""
    data = (data or b"")[: release.size]  # nixpkgs' copy has one more line feed
    if data != local or strict:
        manifest, warnings = validate_manifest(
            data, release.label, redist, strict=strict, is_of_nvidia_channel=True
        )
        _check_paths(manifest, release)
    return UpstreamManifest(source, data, release.sha256, shortened(warnings), release=release)


def _verify(data: bytes, release: NvidiaChannelRelease, place: str) -> None:
    """Compare a manifest's size and hash with its entry in `releases.json`."""
    if len(data) != release.size:
        raise ManifestMismatchError(place, "size", f"{release.size:,}", f"{len(data):,} bytes")
    sha256 = sha256_of(data)
    if sha256 != release.sha256:
        raise ManifestMismatchError(place, "SHA-256", release.sha256, sha256)


def _check_paths(manifest: Manifest, release: NvidiaChannelRelease) -> None:
    """Raise `InvalidFileError` for archives outside the root of the server."""
    problems: list[Problem] = []
    for archive in manifest.archives:
        if resolved_path(release.folder, archive.relative_path) is None:
            field = f"{archive.package}.{archive.platform}.relative_path"
            message = f"{shown(archive.relative_path)} leads above the root of the server"
            problems.append(Problem(field, message))
    if problems:
        raise InvalidFileError(f"manifest ({release.address})", problems)


def archive_hashes(data: bytes) -> frozenset[tuple[ArchiveId, str | None]]:
    """Return the archives of a manifest with their hashes.

    Paths do not count: the same archives have other paths on NVIDIA's second server.
    """
    return frozenset((archive.id, archive.sha256) for archive in read_manifest(data).archives)


def _differ_by_missing_date(local: bytes, data: bytes) -> bool:
    """Check if only one of two manifests of wheels has a date, and the rest is equal.

    Not every package index has the dates of wheels, and earlier manifests do not contain them.
    """
    try:
        documents = [load_json(manifest) for manifest in (local, data)]
        dates = [document.pop("release_date", None) for document in documents]
    except (ValueError, AttributeError):
        return False
    return dates.count(None) == 1 and documents[0] == documents[1]


def validate_manifest(
    data: bytes,
    label: Version | None,
    redist: Redist | None,
    *,
    strict: bool,
    is_of_nvidia_channel: bool = False,
) -> tuple[Manifest, list[Problem]]:
    """Read a manifest, and return it with its warnings.

    A manifest that names another product causes a warning too. The archives of a release of
    an NVIDIA channel are in NVIDIA's pool, which causes none. Raises `InvalidFileError` if it is
    not valid or, with `strict`, if there are warnings.
    """
    manifest = read_manifest(data, label=label)
    warnings = [
        warning
        for warning in manifest.warnings
        if not (is_of_nvidia_channel and warning.message == POOL_WARNING)
    ]
    product = manifest.release_product
    if redist and redist.name in REDISTS and product and not redist.accepts_product(product):
        message = f"names the product {shown(product)}, expected {redist.name}"
        warnings.append(Problem("release_product", message))
    if strict and warnings:
        raise InvalidFileError("manifest under --strict", warnings)
    return manifest, warnings


def describe_changes(local: bytes | None, served: bytes) -> tuple[str, ...]:
    """Describe the differences between two manifests, one per line."""
    if local is None:
        return ("the SHA-256 differs; details are unknown because the local file is missing",)
    try:
        changes = manifest_changes(read_manifest(local), read_manifest(served))
    except InvalidFileError as error:
        return (f"local file: {error.message}",)
    return changes or ("same contents; only the bytes differ, for example in formatting",)
