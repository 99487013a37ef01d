"""Fetch, validate and compare a single upstream manifest."""

from functools import partial
from typing import NamedTuple

from cudaredist.errors import InvalidFileError, Problem, shortened, shown
from cudaredist.formats.policy import WheelPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.jsontext import load_json
from cudaredist.manifests.manifest_changes import manifest_changes
from cudaredist.manifests.manifest_values import Manifest
from cudaredist.manifests.read_manifest import MANIFEST_LIMIT, read_manifest
from cudaredist.primitives import Version, manifest_name, sha256_of
from cudaredist.redists import REDISTS, Redist
from cudaredist.sources.chain import SourceChain
from cudaredist.sources.protocol import Listing
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store


def read_wheel_policy(store: Store) -> WheelPolicy:
    """Return the policy of wheels.

    Raises `InvalidFileError` if the file is broken.
    """
    return read_own_file(store.read_policy("wheels"), WheelPolicy)


class UpstreamManifest(NamedTuple):
    """A manifest with the source that served it."""

    source: str
    data: bytes
    sha256: str
    warnings: tuple[str, ...]
    """Empty if the local file already has these bytes."""
    doubts: tuple[str, ...] = ()
    """Reasons why it may have other archives than the release, even if it is local."""


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
        data = data if whole and len(data) > len(local) else local
    if delivery.etag:
        cache.remember(location, sha256_of(data), delivery.etag)
    return UpstreamManifest(
        delivery.source, data, sha256_of(data), shortened(warnings), delivery.doubts
    )


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
    data: bytes, label: Version | None, redist: Redist | None, *, strict: bool
) -> tuple[Manifest, list[Problem]]:
    """Read a manifest, and return it with its warnings.

    A manifest that names another product causes a warning too. Raises `InvalidFileError` if it is
    not valid or, with `strict`, if there are warnings.
    """
    manifest = read_manifest(data, label=label)
    warnings = list(manifest.warnings)
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
