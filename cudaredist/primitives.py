"""The small values everything else is made of: versions, labels, platforms, hashes, paths.

Each is parsed once, at the edge, and keeps its raw text, because file names and addresses need it
byte for byte. Nothing here reads or writes anything.
"""

import hashlib
import re
from operator import ne
from typing import NamedTuple, Self, TypeAlias

from cudaredist.errors import UsageError, shown

Sha256: TypeAlias = str
"""64 lower-case hexadecimal digits."""

SHA256_PATTERN = r"^[0-9a-f]{64}$"

KNOWN_PLATFORMS = frozenset(
    {
        *("linux-x86_64", "linux-sbsa", "linux-aarch64", "linux-ppc64le", "linux-all"),
        *("windows-x86_64", "windows-arm64", "source"),
    }
)
"""The platform names NVIDIA's manifests have used until 2026; others are kept and warned about."""

SOURCE, LINUX_ALL = "source", "linux-all"
"""Platforms of archives that serve every platform, or every Linux."""

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

_PART = r"[A-Za-z0-9_+~@=,-][A-Za-z0-9_.+~@=,-]*+"
_PATH_LIMIT = 1024

ARCHIVE_ENDS = ("-archive.tar.xz", "-archive.zip", "-archive.tar.gz", "-archive.tar.zst", ".tar.gz")
"""Usual ends of archive paths, the one for Linux first and the one for Windows second.

The last one is that of early manifests.
"""

# Plain characters, and no part that is empty or begins with a dot.
_is_safe_path = re.compile(rf"{_PART}(?:/{_PART})*+").fullmatch
_POOL_PREFIX = "../../../pool/"
_UNSAFE_CHARACTER = re.compile(r"[^A-Za-z0-9_.+~@=,/-]")


def _numbers(text: str) -> tuple[int, ...]:
    # int() also takes signs, blanks, underscores and other scripts' digits, so those go first.
    if len(text) <= _LONGEST_VERSION and text.isascii() and text.replace(".", "").isdigit():
        try:
            return tuple(map(int, text.split(".")))
        except ValueError:  # two dots in a row, or one at an end
            pass
    raise ValueError("expected numbers with dots between them")


class Version(NamedTuple):
    """A version or label as NVIDIA writes it, ordered component by component as integers.

    `9.10.2` is newer than `9.9.0`, and `24.7` than `24.03`; where the numbers are equal the suffix
    of NCCL's labels decides (`2.31.2-cuda13.3` < `2.31.2-cuda13.4`), then the raw text, so that the
    order is total. Nothing goes through PEP 440, which would rewrite `24.03` to `24.3`.
    """

    components: tuple[int, ...]
    suffix: tuple[int, ...]
    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read numbers with dots, with or without `-cuda<numbers>` behind; else `ValueError`."""
        if "-" not in text:
            return cls(_numbers(text), (), text)
        release, _, suffix = text.partition("-cuda")
        return cls(_numbers(release), _numbers(suffix), text)

    @property
    def line(self) -> str:
        """The release line a version belongs to: its first two numbers, and the suffix's first.

        `12.9.1` belongs to `12.9`, `2.31.2-cuda13.4` to `2.31-cuda13`. The text is kept raw, so
        `24.03` is its own line.
        """
        numbers = ".".join(self.text.partition("-")[0].split(".")[:2])
        return f"{numbers}-cuda{self.suffix[0]}" if self.suffix else numbers

    def __str__(self) -> str:
        return self.text


class Platform(str):
    """A platform of NVIDIA's manifests: an operating system and a machine, as in `linux-sbsa`."""

    __slots__ = ()

    @property
    def os(self) -> str:
        """The operating system: `linux`, `windows`, or `any` for archives that serve all."""
        return "any" if self == SOURCE else self.partition("-")[0]

    @property
    def machine(self) -> str | None:
        """The machine of its binaries as facts name it, or None if it is not one machine."""
        return _MACHINES.get(self.partition("-")[2])

    @property
    def served_by(self) -> tuple[str, ...]:
        """The platforms whose archives serve this one, best first."""
        return (SOURCE, *([LINUX_ALL] if self.os == "linux" else []), self)


def parse_label(text: str) -> Version:
    """Read a manifest's label: 2 to 4 numbers and NCCL's suffix, as in `2.29.2-cuda12.9`.

    Raises `ValueError` for anything else.
    """
    if not _is_label(text):
        raise ValueError("expected 2 to 4 numbers with dots between them, such as 12.9.1")
    return Version.parse(text)


def manifest_name(label: Version) -> str:
    """Return the file name of the manifest with this label."""
    return f"redistrib_{label}.json"


def label_of_manifest_name(name: str) -> Version | None:
    """Return the label in `redistrib_<label>.json`, or None where the name is no manifest's.

    Neighbours such as `redistrib_13.5.0.json.asc` or `redistrib_12.9.1_tar.json` are no manifests.
    """
    match = _MANIFEST_NAME.fullmatch(name)
    if match is None:
        return None
    try:
        return parse_label(match["label"])
    except ValueError:
        return None


def natural_order(text: str) -> list[tuple[int, int, str]]:
    """Return what to sort names by so that numbers in them count as such: `sm_90`, `sm_100`."""
    parts = re.split(r"([0-9]{1,18})", text)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]


def sha256_of(data: bytes) -> Sha256:
    """Return the SHA-256 of some bytes."""
    return hashlib.sha256(data).hexdigest()


def is_safe_relative_path(text: str) -> bool:
    """Say whether a path of a manifest stays below the manifest's folder, in plain characters."""
    return len(text) <= _PATH_LIMIT and _is_safe_path(text) is not None


def is_pool_path(text: str) -> bool:
    """Say whether a path is of NVIDIA's early-access layout, `../../../pool/<path>`.

    Manifests lie three folders below a source's root (`compute/cuda/redist/`), so such a path
    stays inside the root. It is the only use of `..` that has been seen.
    """
    return text.startswith(_POOL_PREFIX) and is_safe_relative_path(text.removeprefix(_POOL_PREFIX))


def path_problem(text: str) -> str | None:  # noqa: PLR0911 - a table of cases reads best as one
    """Say what is wrong with a path of a manifest; None where nothing is."""
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
        return f"has the character {unsafe.group()!a}, which no such path may have"
    return "has an empty or hidden part, expected names with single slashes between them"


def join_address(address: str, path: str) -> str:
    """Return the address of a path below another one, of any scheme; `..` goes up.

    Raises `UsageError` for a path that leads above the server's root.
    """
    scheme, separator, place = address.rpartition("://")
    below = path
    while below.startswith("../"):
        place, below = place.rstrip("/").rpartition("/")[0], below.removeprefix("../")
        if not place:
            raise UsageError(
                f"{shown(path)} leads above the root of {address}",
                hint="name an address with more folders, such as https://HOST/compute/cuda/redist/",
            )
        place = f"{place}/"
    return f"{scheme}{separator}{place}{below}"


def usual_stem(package: str, version: Version, platform: str, variant: str | None) -> str:
    """Return the path of an archive in NVIDIA's usual form, without its end."""
    tag = "" if variant is None else f"_{variant}"
    return f"{package}/{platform}/{package}-{platform}-{version.text}{tag}"


def differs_little(text: str, usual: str, most: int = 1) -> bool:
    """Return whether a text differs from the usual one in 1 to `most` characters.

    Damage in transit leaves such texts; a new habit of NVIDIA's changes more.
    """
    return len(text) == len(usual) and 0 < sum(map(ne, text, usual)) <= most
