"""One manifest as upstream serves it now."""

from dataclasses import dataclass

from cudaredist.diffs.manifest import manifest_changes
from cudaredist.errors import InvalidFileError, Problem, shortened, shown
from cudaredist.manifests.manifest_values import Manifest
from cudaredist.manifests.read_manifest import MANIFEST_LIMIT, read_manifest
from cudaredist.primitives import Version, manifest_name, sha256_of
from cudaredist.redists import REDISTS, Redist
from cudaredist.source.chain import SourceChain
from cudaredist.source.protocol import Listing
from cudaredist.store.cache import Cache


@dataclass(frozen=True, slots=True)
class UpstreamManifest:
    """A manifest as upstream serves it now."""

    source: str
    data: bytes
    sha256: str
    warnings: tuple[str, ...]
    """Empty for bytes that were held already."""


def fetch_manifest(
    sources: SourceChain,
    cache: Cache,
    label: Version,
    listing: Listing,
    held: bytes | None,
    *,
    redist: Redist | None = None,
    strict: bool = False,
    whole: bool = False,
) -> UpstreamManifest:
    """Fetch one listed manifest and prove that it is one, unless its bytes are those held.

    Asks only whether it changed where the server gave an ETag for the bytes held, unless `whole`:
    bytes that were damaged in transit came with the ETag of the good ones. Raises
    `SourceError`, and `InvalidFileError` for bytes that are no manifest (with `strict` also for
    those that have warnings), after every source was tried.
    """
    folder = listing.folders[label]
    name = manifest_name(label)
    held_sha256 = None if held is None else sha256_of(held)
    warnings: list[Problem] = []

    def etag(place: str) -> str | None:
        # Under `strict` bytes that are held are judged too, so they must come.
        is_needed = strict or whole
        return cache.etag(place, held_sha256) if held_sha256 and not is_needed else None

    def inspect(data: bytes) -> None:
        if data == held and not strict:
            return
        _, warnings[:] = judge_manifest(data, label, redist, strict=strict)

    place, delivery = sources.read(
        f"{folder}/{name}" if folder else name,
        MANIFEST_LIMIT,
        first=listing.sources[label],
        etag=etag,
        inspect=inspect,
    )
    if delivery.data is None and held is not None:
        data = held
    else:
        data = delivery.data or b""
        if delivery.etag:
            cache.remember(place, sha256_of(data), delivery.etag)
    return UpstreamManifest(
        delivery.source, data, sha256_of(data), shortened([str(problem) for problem in warnings])
    )


def judge_manifest(
    data: bytes, label: Version | None, redist: Redist | None, *, strict: bool
) -> tuple[Manifest, list[Problem]]:
    """Read a manifest; return it with its warnings, one more where it names another product.

    Raises `InvalidFileError` for what is no manifest, with `strict` also where there are warnings.
    """
    manifest = read_manifest(data, label=label)
    warnings = list(manifest.warnings)
    product = manifest.release_product
    is_known = redist is not None and redist.name in REDISTS
    if redist is not None and is_known and product and not redist.accepts_product(product):
        message = f"names the product {shown(product)}, expected {redist.name}"
        warnings.append(Problem("release_product", message))
    if strict and warnings:
        raise InvalidFileError("manifest under --strict", warnings)
    return manifest, warnings


def described_changes(held: bytes | None, served: bytes) -> tuple[str, ...]:
    """Say what differs between two manifests' bytes, a line each."""
    if held is None:
        return ("the bytes fetched before are not held any more, so only their hash differs",)
    try:
        changes = manifest_changes(read_manifest(held), read_manifest(served))
    except InvalidFileError as error:
        return (f"the held file is {error.message}",)
    return changes or ("both say the same; only the bytes differ, as by formatting",)
