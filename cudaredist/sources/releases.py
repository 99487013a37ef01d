"""Parser and writer of `channels.json` and `releases.json`.

NVIDIA's second server lists its releases by channel. The code calls it `nvidia_channel`, because
`channel` is NVIDIA's archives or NVIDIA's wheels. Each entry of a release has the address, the
SHA-256 and the size of its manifest, so that these are known before the manifest is read.
"""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from cudaredist.errors import InvalidFileError, Problem
from cudaredist.formats.mirror_lock import ListedRelease
from cudaredist.jsontext import canonical_json, join_path, parse_json_parts
from cudaredist.manifests.read_manifest import MANIFEST_LIMIT
from cudaredist.primitives import (
    NVIDIA_CHANNEL_PATTERN,
    SHA256_PATTERN,
    Sha256,
    Version,
    is_manifest_address,
    parse_label,
)
from cudaredist.words import shown

NVIDIA_CHANNELS_PATH = "release/channels.json"
"""The list of NVIDIA channels and their products, below a source's root."""

DOCUMENT_LIMIT = 8 << 20
"""Maximum bytes of a document."""

_is_nvidia_channel = re.compile(NVIDIA_CHANNEL_PATTERN).fullmatch
_is_sha256 = re.compile(SHA256_PATTERN).fullmatch
_is_size = re.compile(r"[0-9]{1,15}").fullmatch

Products: TypeAlias = Mapping[str, frozenset[str]]
"""The products of each NVIDIA channel."""


class NvidiaChannelRelease(NamedTuple):
    """An entry of `releases.json`: a release in an NVIDIA channel."""

    nvidia_channel: str
    label: Version
    address: str
    """The path of the manifest below the source's root."""
    sha256: Sha256
    size: int

    @property
    def folder(self) -> str:
        """The folder of the manifest. Its archives' paths are relative to it."""
        return posixpath.dirname(self.address)


class ListedReleases(NamedTuple):
    """The releases of a product in its NVIDIA channels."""

    releases: tuple[NvidiaChannelRelease, ...]
    error: InvalidFileError | None
    """The problems of entries that are left out. None: there are none."""


def releases_path(product: str) -> str:
    """Return the path of a product's `releases.json` below a source's root."""
    return f"release/{product}/releases.json"


class ListedManifest(NamedTuple):
    """A manifest to list in `releases.json`."""

    listed: ListedRelease
    address: str
    """The path of the manifest below the root."""
    sha256: Sha256
    size: int


def release_documents(manifests: Iterable[ListedManifest]) -> dict[str, bytes]:
    """Return `channels.json` and each `releases.json`, by path below the root."""
    products: dict[str, set[str]] = defaultdict(set)
    releases: dict[str, dict[str, list[dict[str, object]]]] = defaultdict(dict)
    for listed, address, sha256, size in sorted(
        manifests, key=lambda one: Version.parse(one.listed.release)
    ):
        product, nvidia_channel = listed.redist, listed.nvidia_channel
        products[nvidia_channel].add(product)
        entry = {
            "version": listed.release,
            "manifest": posixpath.relpath(address, posixpath.dirname(releases_path(product))),
            "sha256": sha256,
            "size": size,
        }
        releases[product].setdefault(nvidia_channel, []).append(entry)
    if not products:
        return {}
    nvidia_channels = {
        name: [{"product": product} for product in sorted(names)]
        for name, names in products.items()
    }
    documents = {
        releases_path(product): canonical_json(document) for product, document in releases.items()
    }
    return {NVIDIA_CHANNELS_PATH: canonical_json(nvidia_channels), **documents}


def read_nvidia_channels(data: bytes, address: str) -> Products:
    """Read `channels.json`. Raises `InvalidFileError` with the document's address."""
    reader = _Reader(address)
    nvidia_channels = reader.nvidia_channels(data)
    products: dict[str, frozenset[str]] = {}
    for nvidia_channel, items in nvidia_channels.items():
        entries = reader.entries(nvidia_channel, items)
        names = [reader.text(entry, "product", place) for place, entry in entries]
        products[nvidia_channel] = frozenset(names)
    error = reader.error()
    if error is not None:
        raise error
    return products


def read_releases(data: bytes, product: str, address: str) -> ListedReleases:
    """Read `releases.json`. Raises `InvalidFileError` if it is not an object with channels.

    Entries with problems are left out. If a channel has two equal entries, one is returned.
    """
    reader = _Reader(address)
    releases: list[NvidiaChannelRelease] = []
    for nvidia_channel, items in reader.nvidia_channels(data, may_omit=True).items():
        for place, entry in reader.entries(nvidia_channel, items):
            release = reader.release(nvidia_channel, product, place, entry)
            if release is not None:
                releases.append(release)
    different = list(dict.fromkeys(releases))
    counts = Counter((release.nvidia_channel, release.label) for release in different)
    for (nvidia_channel, label), count in counts.items():
        if count > 1:
            reader.problem(nvidia_channel, f"has {count} different manifests of {label}")
    unambiguous = [
        release for release in different if counts[release.nvidia_channel, release.label] == 1
    ]
    return ListedReleases(tuple(unambiguous), reader.error())


class _Reader:
    """Reads a document and gathers its problems."""

    def __init__(self, address: str) -> None:
        self._what = f"{posixpath.basename(address)} ({address})"
        self._problems: list[Problem] = []
        self._hidden: list[Problem] = []

    def problem(self, place: str, message: str) -> None:
        self._problems.append(Problem(place, message))

    def error(self) -> InvalidFileError | None:
        """Return the error of all problems, None if there are none."""
        return InvalidFileError(self._what, self._problems) if self._problems else None

    def nvidia_channels(self, data: bytes, *, may_omit: bool = False) -> Mapping[str, object]:
        """Return the values of the document, by NVIDIA channel.

        With `may_omit`, `entries` omits those with forbidden characters or repeated keys. Without,
        they raise `InvalidFileError` for the document.
        """
        document, problems = parse_json_parts(data, what=self._what, limit=DOCUMENT_LIMIT)
        if not all(may_omit and "[" in problem.path for problem in problems):
            raise InvalidFileError(self._what, problems)
        self._hidden = problems
        self._problems += problems
        if not isinstance(document, dict):
            raise InvalidFileError.of(self._what, "expected an object with channels")
        for name in document:
            if not _is_nvidia_channel(name):
                self.problem("", f"{shown(name)} is not the name of a channel")
        return {name: items for name, items in document.items() if _is_nvidia_channel(name)}

    def entries(
        self, nvidia_channel: str, items: object
    ) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Yield the entries of an NVIDIA channel with their places in the document."""
        if not isinstance(items, list):
            self.problem(nvidia_channel, "expected a list of objects")
            return
        for number, entry in enumerate(items):
            place = f"{nvidia_channel}[{number}]"
            path = f"{join_path('', nvidia_channel)}[{number}]"
            if any(problem.path.startswith(path) for problem in self._hidden):
                continue
            if isinstance(entry, dict):
                yield place, entry
            else:
                self.problem(place, "expected an object")

    def text(self, entry: Mapping[str, object], key: str, place: str) -> str:
        """Return the text of a required key, empty after a problem."""
        value = entry.get(key)
        if isinstance(value, str) and value:
            return value
        message = "is missing" if key not in entry else "expected a text that is not empty"
        self.problem(f"{place}.{key}", message)
        return ""

    def release(
        self, nvidia_channel: str, product: str, place: str, entry: Mapping[str, object]
    ) -> NvidiaChannelRelease | None:
        """Return the release of an entry, or None after a problem."""
        label = self._label(entry, place)
        address = self._address(entry, product, place)
        sha256 = self.text(entry, "sha256", place)
        if sha256 and not _is_sha256(sha256):
            self.problem(f"{place}.sha256", "expected 64 lower-case hex digits")
        size = self._size(entry, place)
        if label is None or address is None or size is None or not _is_sha256(sha256):
            return None
        return NvidiaChannelRelease(nvidia_channel, label, address, sha256, size)

    def _label(self, entry: Mapping[str, object], place: str) -> Version | None:
        text = self.text(entry, "version", place)
        try:
            return parse_label(text) if text else None
        except ValueError as error:
            self.problem(f"{place}.version", f"{error}, got {shown(text)}")
            return None

    def _address(self, entry: Mapping[str, object], product: str, place: str) -> str | None:
        """Return the path of a manifest below the source's root."""
        text = self.text(entry, "manifest", place)
        folder, below = f"release/{product}", text
        while below.startswith("../"):
            # A path that leads above the root is refused below.
            folder = posixpath.dirname(folder) if folder else ".."
            below = below.removeprefix("../")
        address = posixpath.join(folder, below)
        if is_manifest_address(address):
            return address
        if text:
            message = f"{shown(text)} is not a relative path to a file in release/ or pool/"
            self.problem(f"{place}.manifest", message)
        return None

    def _size(self, entry: Mapping[str, object], place: str) -> int | None:
        value = entry.get("size")
        if "size" not in entry:
            self.problem(f"{place}.size", "is missing")
            return None
        if isinstance(value, str) and _is_size(value):
            value = int(value)
        if type(value) is int and 0 < value <= MANIFEST_LIMIT:
            return value
        self.problem(f"{place}.size", f"expected the bytes of a manifest, got {shown(str(value))}")
        return None
