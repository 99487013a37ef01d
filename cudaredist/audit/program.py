"""A program as audit reads it, and the libraries that are known to provide what it needs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cudaredist.audit.library_names import family_of, possible_sonames
from cudaredist.binaries.file_facts import Binary
from cudaredist.packagesets.libraries import key_of
from cudaredist.primitives import Version, parse_label

_PLATFORMS = {
    ("elf", "aarch64"): ("linux-sbsa", "linux-aarch64"),
    ("elf", "ppc64le"): ("linux-ppc64le",),
    ("elf", "x86_64"): ("linux-x86_64",),
    ("pe", "aarch64"): ("windows-arm64",),
    ("pe", "x86_64"): ("windows-x86_64",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFile:
    """One binary of the program."""

    shown: str
    """Its path in messages."""
    binary: Binary
    names: frozenset[str]
    """Names that others find it by: of the file, of links to it, and its soname."""
    installed: str | None = None
    """Its path below site-packages, if it is in a wheel."""
    unlinked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Symbols that it uses, by known libraries that it does not list as needed."""

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms that it runs on, the usual one first."""
        return _PLATFORMS.get((self.binary.kind, self.binary.machine or ""), ())

    @property
    def name(self) -> str:
        """Its soname, or the name of the file."""
        if self.binary.kind == "elf" and self.binary.soname:
            return self.binary.soname
        return self.shown.rpartition("/")[2]


class KnownLibrary(NamedTuple):
    """A library in one package of a release, or of a package set."""

    soname: str
    redist: str
    label: Version
    package: str
    version: str | None
    platform: str
    variant: str | None
    archive: str
    """The beginning of the archive's hash, as tables of symbols have it."""
    wheel: str | None
    """Path of the wheel below the package index, such as `nvidia-nccl-cu12/....whl`."""

    @property
    def project(self) -> str | None:
        """The project of the wheel."""
        return None if self.wheel is None else self.wheel.partition("/")[0]

    @property
    def major(self) -> int | None:
        """The CUDA major that it is for, or None."""
        if self.redist == "cuda":
            return self.label.components[0]
        digits = (self.variant or "").removeprefix("cuda")
        return int(digits) if digits.isdecimal() else None


@dataclass(slots=True)
class Catalog:
    """All known libraries by soname."""

    _by_name: Mapping[str, list[KnownLibrary]] = field(default_factory=dict)
    _families: frozenset[str] = frozenset()

    @classmethod
    def of(cls, libraries: Iterable[KnownLibrary]) -> "Catalog":
        """Return the catalog of some libraries."""
        by_name: dict[str, list[KnownLibrary]] = defaultdict(list)
        for library in libraries:
            by_name[key_of(library.soname)].append(library)
        return cls(dict(by_name), frozenset(map(family_of, by_name)))

    def providers(self, soname: str, platforms: Sequence[str]) -> tuple[KnownLibrary, ...]:
        """Return the libraries with a soname, in the order of their releases."""
        found = [one for one in self._by_name.get(key_of(soname), ()) if one.platform in platforms]
        return tuple(sorted(found, key=lambda one: (one.redist, one.label, one)))

    def has_family(self, name: str) -> bool:
        """Check if a library of this name, of any version, is known."""
        return family_of(name) in self._families

    def soname_of(self, name: str) -> str | None:
        """Return the known soname of a file that may have been renamed."""
        return next((one for one in possible_sonames(name) if one in self._by_name), None)

    def labels(self, redist: str) -> tuple[Version, ...]:
        """Return the releases of a redistributable, in ascending order."""
        libraries = (one for named in self._by_name.values() for one in named)
        return tuple(sorted({one.label for one in libraries if one.redist == redist}))

    def sonames(self, platforms: Sequence[str]) -> tuple[str, ...]:
        """Return the names of libraries for some platforms, sorted."""
        return tuple(
            sorted(
                {
                    one.soname
                    for named in self._by_name.values()
                    for one in named
                    if one.platform in platforms
                }
            )
        )

    def others(self, soname: str) -> tuple[str, ...]:
        """Return the sonames of the same family, sorted."""
        family = family_of(soname)
        return tuple(sorted(name for name in self._by_name if family_of(name) == family))


def label_fits(label: Version, text: str) -> bool:
    """Check if a release is of a release line such as `12.9`, or is that release."""
    numbers = Version.parse(text).components if text.isdecimal() else parse_label(text).components
    return label.components[: len(numbers)] == numbers
