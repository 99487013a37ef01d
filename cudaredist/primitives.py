"""Basic values: versions, labels, platforms, hashes and paths.

Each value is parsed once and keeps its raw text, because file names and addresses need it byte for
byte. This module does no input or output.
"""

import base64
import hashlib
import posixpath
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from operator import ne
from typing import BinaryIO, NamedTuple, Self, TypeAlias

from cudaredist.errors import UsageError
from cudaredist.words import shown

_CHUNK = 256 << 10

Place: TypeAlias = str
"""Platform and variant, such as `linux-x86_64/cuda12`. Empty for a whole package."""


def place_name(platform: str, variant: str | None) -> Place:
    """Return the name of a platform and variant."""
    return platform if variant is None else f"{platform}/{variant}"


class ArchiveId(NamedTuple):
    """The key of an archive in a release."""

    package: str
    platform: str
    variant: str | None

    @property
    def place(self) -> Place:
        """The platform and variant."""
        return place_name(self.platform, self.variant)


Sha256: TypeAlias = str
"""64 lowercase hexadecimal digits."""

SHA256_PATTERN = r"^[0-9a-f]{64}$"

KNOWN_PLATFORMS = frozenset(
    {
        *("linux-x86_64", "linux-sbsa", "linux-aarch64", "linux-ppc64le", "linux-all"),
        *("windows-x86_64", "windows-arm64", "source"),
    }
)
"""The platform names in NVIDIA's manifests until 2026. Other names give a warning."""

SOURCE, LINUX_ALL = "source", "linux-all"
"""Platforms of archives for every platform, or for every Linux platform."""

_MACHINES = {
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "ppc64le": "ppc64le",
    "sbsa": "aarch64",
    "x86_64": "x86_64",
}

LABEL_PATTERN = r"^[0-9]{1,18}(\.[0-9]{1,18}){1,3}(-cuda[0-9]{1,18}(\.[0-9]{1,18})?)?$"
"""A manifest's label: 2 to 4 numbers and NCCL's suffix, as in `2.29.2-cuda12.9`."""

_is_label = re.compile(LABEL_PATTERN).fullmatch
_LONGEST_VERSION = 80
_MANIFEST_NAME = re.compile(r"redistrib_(?P<label>.{1,120})\.json")

_PLAIN_PART = r"[A-Za-z0-9_+~@=,-][A-Za-z0-9_.+~@=,-]*"
_PART = f"{_PLAIN_PART}+"
_PATH_LIMIT = 1024

NVIDIA_CHANNEL_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$"
"""The name of a channel of NVIDIA's second server."""

PREVIEW = "preview"
"""The channel with early-access releases."""

ADDRESS_PATTERN = rf"^(release|pool)(/{_PLAIN_PART})+$"
"""The path of a manifest on NVIDIA's second server, below a source's root."""

ARCHIVE_ENDS = ("-archive.tar.xz", "-archive.zip", "-archive.tar.gz", "-archive.tar.zst", ".tar.gz")
"""Usual ends of archive paths: Linux first, Windows second.

The last one is from early manifests.
"""


# Parts of paths contain neither backslashes nor control characters, and are neither `.` nor `..`.
# The first part is not a drive of Windows, such as `C:`. The engine of pydantic has no lookahead,
# which would take less text.
_FORBIDDEN = r"/\\\x00-\x1f\x7f-\x9f"
_ANY = f"[^{_FORBIDDEN}]"
_WITH_DOT = rf"\.[^.{_FORBIDDEN}]{_ANY}*|\.\.{_ANY}+"
_INNER_PART = f"(?:[^.{_FORBIDDEN}]{_ANY}*|{_WITH_DOT})"
_FIRST_PART = (
    f"(?:[A-Za-z]|[A-Za-z][^:{_FORBIDDEN}]{_ANY}*|[^.A-Za-z{_FORBIDDEN}]{_ANY}*|{_WITH_DOT})"
)
_INNER_PATH = f"{_FIRST_PART}(?:/{_INNER_PART})*"
PLAIN_PATH_PATTERN = f"^{_PLAIN_PART}(/{_PLAIN_PART})*$"
"""A path of plain characters that stays below its folder, without hidden parts."""
INNER_PATH_PATTERN = f"^{_INNER_PATH}$"
"""A relative path with slashes that stays below its folder."""
INNER_FOLDER_PATTERN = rf"^(?:\.|{_INNER_PATH})?$"
"""Such a path, or the folder itself as an empty text or `.`."""

ARCHIVE_PATH_PATTERN = rf"^(?:\.\./\.\./\.\./pool/)?{_PLAIN_PART}(?:/{_PLAIN_PART})*$"
"""The path of an archive in a manifest. NVIDIA's pool is above the manifest's folder."""
NAME_PATTERN = f"^{_FIRST_PART}$"
"""The name of a redistributable, which is also a folder."""
LIBRARY_PATTERN = r"^[A-Za-z0-9_+][A-Za-z0-9_.+-]{0,127}$"
"""The name of a library with a table of symbols."""
API_NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$"
"""The name of a package with a table of its API."""

# Plain characters. No part is empty or begins with a dot.
_is_safe_path = re.compile(rf"{_PART}(?:/{_PART})*+").fullmatch
_is_inner_path = re.compile(_INNER_PATH).fullmatch
_is_manifest_address = re.compile(ADDRESS_PATTERN).fullmatch
_POOL_PREFIX = "../../../pool/"
_NIX_DIGITS = "0123456789abcdfghijklmnpqrsvwxyz"
_NIX_PAIRS = [first + second for first in _NIX_DIGITS for second in _NIX_DIGITS]
_UNSAFE_CHARACTER = re.compile(r"[^A-Za-z0-9_.+~@=,/-]")


def _numbers(text: str) -> tuple[int, ...]:
    # Reject signs, blanks, underscores and other scripts' digits, which int() accepts.
    if len(text) <= _LONGEST_VERSION and text.isascii() and text.replace(".", "").isdigit():
        with suppress(ValueError):  # two dots in a row, or one at an end
            return tuple(map(int, text.split(".")))
    raise ValueError("expected numbers separated by dots")


class Version(NamedTuple):
    """A version or label in NVIDIA's form, ordered by its integer components.

    `9.10.2` is newer than `9.9.0`, and `24.7` than `24.03`. If the numbers are equal, the suffix of
    NCCL's labels decides (`2.31.2-cuda13.3` < `2.31.2-cuda13.4`), then the raw text, so that the
    order is total. PEP 440 is not used, because it would rewrite `24.03` to `24.3`.
    """

    components: tuple[int, ...]
    suffix: tuple[int, ...]
    text: str

    @classmethod
    @lru_cache(maxsize=4096)
    def parse(cls, text: str) -> Self:
        """Parse dotted numbers, optionally followed by `-cuda<numbers>`.

        Raises `ValueError` for anything else.
        """
        if "-" not in text:
            return cls(_numbers(text), (), text)
        release, _, suffix = text.partition("-cuda")
        return cls(_numbers(release), _numbers(suffix), text)

    @property
    def line(self) -> str:
        """The release line: the first two numbers, and the suffix's first.

        `12.9.1` belongs to `12.9`, and `2.31.2-cuda13.4` to `2.31-cuda13`. The raw text is used, so
        `24.03` is its own line.
        """
        numbers = ".".join(self.text.partition("-")[0].split(".")[:2])
        return f"{numbers}-cuda{self.suffix[0]}" if self.suffix else numbers

    def begins_with(self, other: Self) -> bool:
        """Check if the numbers begin with those of another version: `12.9.1` with `12.9`."""
        numbers = self.components[: len(other.components)], self.suffix[: len(other.suffix)]
        return numbers == (other.components, other.suffix)

    def __str__(self) -> str:
        return self.text


class Platform(str):
    """A platform of NVIDIA's manifests, such as `linux-sbsa`."""

    __slots__ = ()

    @property
    def os(self) -> str:
        """The operating system: `linux`, `windows`, or `any` for `source`."""
        return "any" if self == SOURCE else self.partition("-")[0]

    @property
    def machine(self) -> str | None:
        """The machine of its binaries in facts, None if there is not exactly one."""
        return _MACHINES.get(self.partition("-")[2])

    @property
    def served_by(self) -> tuple[str, ...]:
        """The platforms with archives for this one, best first."""
        return (SOURCE, *([LINUX_ALL] if self.os == "linux" else []), self)


SBSA, JETSON = Platform("linux-sbsa"), Platform("linux-aarch64")
"""The two platforms for ARM."""


@lru_cache(maxsize=4096)
def parse_label(text: str) -> Version:
    """Parse a manifest's label: 2 to 4 numbers, and NCCL's suffix.

    Raises `ValueError` for anything else.
    """
    if not _is_label(text):
        raise ValueError("expected 2 to 4 numbers separated by dots, such as 12.9.1")
    return Version.parse(text)


def versioned_attr(name: str, label: Version) -> str:
    """Return the name of a package's additional version in sets, such as `cudnn_8_9`."""
    return f"{name}_{label.line.partition('-')[0].replace('.', '_')}"


def find_release(text: str, labels: Iterable[Version]) -> Version | None:
    """Return the release with a label, or the newest one whose label begins with a prefix.

    `13` is the newest 13.x.y, and `2.31-cuda12` is NCCL's newest 2.31 for CUDA 12. None: no release
    has this prefix.
    """
    releases = {str(label): label for label in labels}
    try:
        prefix = Version.parse(text)
    except ValueError:
        return None
    matches = (label for label in releases.values() if label.begins_with(prefix))
    return releases.get(text) or max(matches, default=None)


def manifest_name(label: Version) -> str:
    """Return the file name of the manifest with this label."""
    return f"redistrib_{label}.json"


def label_of_manifest_name(name: str) -> Version | None:
    """Return the label in `redistrib_<label>.json`, or None for other names.

    Names such as `redistrib_13.5.0.json.asc` or `redistrib_12.9.1_tar.json` are not manifests.
    """
    match = _MANIFEST_NAME.fullmatch(name)
    with suppress(ValueError):
        return match and parse_label(match["label"])
    return None


def natural_order(text: str) -> list[tuple[int, int, str]]:
    """Return a sort key that compares numbers in names: `sm_90`, `sm_100`."""
    parts = re.split(r"([0-9]{1,18})", text)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]


def cut(text: str, limit: int) -> str:
    """Return the first `limit` characters of a text, with an ellipsis if it has more."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def sha256_of_file(file: BinaryIO) -> Sha256:
    """Return the SHA-256 of an open file from its position to its end."""
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def sha256_of(data: bytes) -> Sha256:
    """Return the SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def published_sha256(data: bytes, recorded: Sha256 | None) -> Sha256:
    """Return the SHA-256 of a manifest as published.

    nixpkgs' copies have one more line feed at the end. It does not count if the record is without.
    """
    is_copy = data.endswith(b"\n") and sha256_of(data[:-1]) == recorded
    return recorded if is_copy and recorded else sha256_of(data)


def sri_of(sha256: str) -> str:
    """Return a hash in SRI form (`sha256-` and base64)."""
    return f"sha256-{base64.b64encode(bytes.fromhex(sha256)).decode()}"


def nix_base32_of(sha256: str) -> str:
    """Return a hash in the base 32 of Nix, which writes the last digit first."""
    value = int.from_bytes(bytes.fromhex(sha256), "little")
    return "".join([_NIX_PAIRS[value >> place & 1023] for place in range(250, -1, -10)])


def is_safe_relative_path(text: str) -> bool:
    """Check if a path has plain characters and stays below its folder."""
    return len(text) <= _PATH_LIMIT and _is_safe_path(text) is not None


def is_pool_path(text: str) -> bool:
    """Check if a path has NVIDIA's early-access form, `../../../pool/<path>`.

    Manifests are three folders below a source's root (`compute/cuda/redist/`), so such a path stays
    inside the root. No other use of `..` is known.
    """
    return text.startswith(_POOL_PREFIX) and is_safe_relative_path(text.removeprefix(_POOL_PREFIX))


def is_manifest_address(text: str) -> bool:
    """Check if a path can be the address of a manifest on NVIDIA's second server."""
    return len(text) <= _PATH_LIMIT and _is_manifest_address(text) is not None


def is_inner_path(text: str) -> bool:
    """Check if a path is relative, printable, and stays below its folder."""
    return text.isprintable() and _is_inner_path(text) is not None


def path_problem(text: str) -> str | None:  # noqa: PLR0911 - a table of cases reads best as one
    """Return the problem of a manifest's path, or None if it is valid."""
    if is_safe_relative_path(text) or is_pool_path(text):
        return None
    if not text:
        return "is empty"
    if len(text) > _PATH_LIMIT:
        return f"is {len(text)} characters long, more than {_PATH_LIMIT}"
    if "://" in text:
        return "is a URL, expected a relative path"
    if text.startswith("/") or "\\" in text or re.match(r"[A-Za-z]:", text):
        return "is absolute or has backslashes, expected a relative path with slashes"
    if ".." in text.split("/"):
        return "has '..', expected a path below the manifest's folder"
    unsafe = _UNSAFE_CHARACTER.search(text)
    if unsafe:
        return f"has the forbidden character {unsafe.group()!a}"
    return "has an empty or hidden part, expected names with single slashes between them"


def resolved_path(folder: str, path: str) -> str | None:
    """Resolve a path against a folder. None: it leads above the root."""
    resolved = posixpath.normpath(posixpath.join(folder, path))
    return None if resolved.startswith("../") else resolved


def join_address(address: str, path: str) -> str:
    """Append a path to an address of any scheme, and resolve leading `..`.

    Raises `UsageError` if the path leads above the server's root.
    """
    scheme, separator, folder = address.rpartition("://")
    below = path
    while below.startswith("../"):
        folder, below = folder.rstrip("/").rpartition("/")[0], below.removeprefix("../")
        if not folder:
            hint = "use an address with more folders, such as https://HOST/compute/cuda/redist/"
            raise UsageError(f"{shown(path)} leads above the root of {address}", hint=hint)
        folder = f"{folder}/"
    return f"{scheme}{separator}{folder}{below}"


def usual_stem(package: str, version: Version, platform: str, variant: str | None) -> str:
    """Return an archive's path in NVIDIA's usual form, without its end."""
    tag = "" if variant is None else f"_{variant}"
    return f"{package}/{platform}/{package}-{platform}-{version.text}{tag}"


def differs_little(text: str, usual: str, most: int = 1) -> bool:
    """Check if a text differs from the usual one in 1 to `most` characters.

    Damage in transit causes such differences. A new naming scheme changes more characters.
    """
    return len(text) == len(usual) and 0 < sum(map(ne, text, usual)) <= most


def is_mangled(name: str) -> bool:
    """Check if a symbol has the form of a C++ name, on Linux or on Windows."""
    return name.startswith(("_Z", "?"))
