"""The files of a program, and the data and requirements that it is compared with."""

import posixpath
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple, TypeAlias

from packaging.utils import canonicalize_name

from cudaredist.binaries.file_facts import Binary
from cudaredist.binaries.reader import ENDS_EARLY
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.library_policy import LibraryPolicy, Owner
from cudaredist.formats.settings import IgnoredFinding
from cudaredist.grouping import grouped
from cudaredist.primitives import Version, natural_order
from cudaredist.programs.library_names import family_of, original_name, possible_sonames
from cudaredist.sets.library_names import DRIVER_OWNERS, find_external, key_of, stem_of
from cudaredist.tables.gpus.coverage import CoverageRules
from cudaredist.tables.symbols.symbol_table import SymbolColumns

Majors: TypeAlias = frozenset[int]
"""CUDA majors."""
Tables: TypeAlias = Mapping[str, SymbolColumns]
"""Tables of symbols by library."""

DeviceCodeSizes: TypeAlias = frozenset[tuple[str, int]]
"""The bytes of a file's device code, by architecture."""

_PLATFORMS = {
    ("elf", "aarch64"): ("linux-sbsa", "linux-aarch64"),
    ("elf", "ppc64le"): ("linux-ppc64le",),
    ("elf", "x86_64"): ("linux-x86_64",),
    ("pe", "aarch64"): ("windows-arm64",),
    ("pe", "x86_64"): ("windows-x86_64",),
}


class WheelMember(NamedTuple):
    """A file in a wheel."""

    wheel: str
    """The wheel's path."""
    name: str

    @property
    def installed(self) -> str | None:
        """Its path below site-packages, None if it is installed elsewhere."""
        folder, _, rest = self.name.partition("/")
        if not folder.endswith(".data"):
            return self.name
        scheme, _, path = rest.partition("/")
        return path if scheme in {"purelib", "platlib"} else None


@dataclass(frozen=True, eq=False, slots=True)
class ProgramFile:
    """One binary of the program."""

    display_path: str
    """Its path in messages."""
    binary: Binary
    names: AbstractSet[str]
    """Names that others find it by: of the file, of links to it, and its soname."""
    member: WheelMember | None = None
    """Its wheel, if it is in one."""
    path: str = ""
    """Its path on this machine without links, if it is in an environment."""
    size: int = 0
    """Bytes, unpacked."""
    unlinked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Symbols that it uses, by known libraries that it does not list as needed."""

    @property
    def installed(self) -> str | None:
        """Its path below site-packages, if it is in a wheel."""
        return None if self.member is None else self.member.installed

    @property
    def is_packaged(self) -> bool:
        """Whether it is in a wheel or an environment."""
        return self.member is not None or bool(self.path)

    @property
    def is_unread(self) -> bool:
        """Whether a part of it is unread, other than the names of libraries that it may open.

        A note states a part that is unread.
        """
        unread = self.binary.unread
        return bool({*unread} - {"opens"}) or len(self.binary.notes) > ("opens" in unread)

    @property
    def is_whole(self) -> bool:
        """Whether its headers can be read, and the file has all bytes that they state."""
        if {"needed", "runpath", "soname"} <= {*self.binary.unread}:
            return False
        return not any(note.startswith(ENDS_EARLY) for note in self.binary.notes)

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms that it runs on, the usual one first."""
        return _PLATFORMS.get((self.binary.kind, self.binary.machine or ""), ())

    @property
    def name(self) -> str:
        """Its soname, or the name of the file."""
        if self.binary.kind == "elf" and self.binary.soname:
            return self.binary.soname
        return self.display_path.rpartition("/")[2]


def paths_of(files: Iterable[ProgramFile]) -> tuple[str, ...]:
    """Return the paths of files for messages, sorted."""
    return tuple(sorted(file.display_path for file in files))


class KnownLibrary(NamedTuple):
    """A library in one package of a release, or of a package set."""

    soname: str
    redist: str
    label: Version
    package: str
    platform: str
    variant: str | None
    archive: str
    """The beginning of the archive's hash, as tables of symbols have it."""
    wheel: str | None
    """Path of the wheel below the package index, such as `nvidia-nccl-cu12/....whl`."""
    finds_parts: bool = True
    """Whether it finds the libraries of its own package that it opens."""

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


class NvidiaBuild(NamedTuple):
    """A build of NVIDIA's libraries."""

    cuda: int | None
    """The CUDA major that it is for, if it is known."""


def majors_of(libraries: Iterable[KnownLibrary]) -> Majors:
    """Return the CUDA majors of libraries of the toolkit itself."""
    return frozenset(lib.major for lib in libraries if lib.major and lib.redist == "cuda")


def common_majors(stated: Iterable[Majors]) -> Majors:
    """Return the CUDA majors common to all parts that state any."""
    known = list(filter(None, stated))
    return reduce(frozenset.intersection, known) if known else frozenset()


class Catalog:
    """All known libraries by soname."""

    def __init__(self, libraries: Iterable[KnownLibrary]) -> None:
        self._libraries = tuple(libraries)
        self._by_name = grouped((key_of(library.soname), library) for library in self._libraries)
        self._families = frozenset(map(family_of, self._by_name))
        self._by_project = grouped((library.project, library) for library in self._libraries)
        self._projects = frozenset(filter(None, self._by_project))
        self._by_package = grouped((library.package, library) for library in self._libraries)

    def providers(self, soname: str, platforms: Collection[str]) -> tuple[KnownLibrary, ...]:
        """Return the libraries with a soname, in the order of their releases."""
        named = self._by_name.get(key_of(soname), ())
        libraries = (library for library in named if library.platform in platforms)
        return tuple(
            sorted(libraries, key=lambda library: (library.redist, library.label, library))
        )

    def has_family(self, name: str) -> bool:
        """Check if a library of this name, of any version, is known."""
        return family_of(name) in self._families

    def products(self, name: str) -> tuple[str, ...]:
        """Return the redistributables with a library of this name, of any version."""
        libraries = (library for other in self.others(name) for library in self._by_name[other])
        return tuple(sorted({library.redist for library in libraries}))

    def soname_of(self, file: ProgramFile) -> str | None:
        """Return the known soname of a file that may have been renamed."""
        return next((key for key in possible_sonames(file.name) if key in self._by_name), None)

    def is_copy(self, file: ProgramFile) -> bool:
        """Check if a file is a copy of a library of NVIDIA's packages."""
        if not file.binary.is_shared:
            return False
        has_version = ".so." in file.name or original_name(file.name) != file.name
        return self.soname_of(file) is not None or (has_version and self.has_family(file.name))

    def nvidia_build(self, files: Sequence[ProgramFile]) -> NvidiaBuild | None:
        """Return the build of NVIDIA's libraries that files are, None for other programs."""
        libraries: list[KnownLibrary] = []
        wheels = {file.member.wheel for file in files if file.member is not None}
        for wheel in wheels:
            own = self._of_wheel(posixpath.basename(wheel))
            if not own:
                return None
            libraries += own
        if any(file.member is None and not self.is_copy(file) for file in files) or not files:
            return None
        if not wheels:
            names = {self.soname_of(file) for file in files}
            libraries = [lib for name in names for lib in self._by_name.get(name or "", ())]
        majors = {library.major for library in libraries}
        return NvidiaBuild(majors.pop() if len(majors) == 1 else None)

    def _of_wheel(self, name: str) -> tuple[KnownLibrary, ...]:
        """Return the libraries of a wheel, or of all wheels of its project."""
        project = canonicalize_name(name.partition("-")[0])
        known = self.wheels(project)
        same = (lib for lib in known if posixpath.basename(lib.wheel or "") == name)
        return tuple(same) or known

    def projects_with(self, opened: str) -> frozenset[str]:
        """Return the projects of the wheels with a library, of any version if it has none."""
        names = [opened]
        if opened.endswith(".so"):
            names = [name for name in self.others(opened) if name.startswith(f"{opened}.")]
        libraries = (lib for name in names for lib in self._by_name.get(key_of(name), ()))
        return frozenset(lib.project for lib in libraries if lib.project is not None)

    def package_stems(self, file: ProgramFile) -> frozenset[str]:
        """Return the names of the libraries in the packages that a file is a copy from."""
        copies = self._by_name.get(self.soname_of(file) or "", ())
        packages = {(lib.redist, lib.package) for lib in copies}
        return frozenset(
            stem_of(lib.soname)
            for redist, package in packages
            for lib in self._by_package[package]
            if lib.redist == redist
        )

    def wheels(self, project: str) -> tuple[KnownLibrary, ...]:
        """Return the libraries in the wheels of a project."""
        return tuple(self._by_project.get(project, ()))

    def stems_of(self, package: str) -> frozenset[str]:
        """Return the names of the libraries in all releases of a package, without versions."""
        return frozenset(stem_of(each.soname) for each in self._by_package.get(package, ()))

    def on_platforms(self, platforms: Sequence[str]) -> tuple[KnownLibrary, ...]:
        """Return the libraries for some platforms."""
        return tuple(library for library in self._libraries if library.platform in platforms)

    def labels(self, redist: str) -> tuple[Version, ...]:
        """Return the releases of a redistributable, in ascending order."""
        return tuple(sorted({lib.label for lib in self._libraries if lib.redist == redist}))

    def projects(self) -> frozenset[str]:
        """Return the projects of the wheels with libraries."""
        return self._projects

    def sonames(self, platforms: Sequence[str]) -> tuple[str, ...]:
        """Return the names of libraries for some platforms, sorted."""
        return tuple(sorted({lib.soname for lib in self._libraries if lib.platform in platforms}))

    def named_like(self, stem: str) -> tuple[str, ...]:
        """Return the sonames with a stem such as `libcuSPARSE`, in any case, newest last."""
        lowered = stem.lower()
        names = (name for name in self._by_name if family_of(name).lower() == lowered)
        return tuple(sorted(names, key=natural_order))

    def others(self, soname: str) -> tuple[str, ...]:
        """Return the sonames of the same family, sorted."""
        family = family_of(soname)
        return tuple(sorted(name for name in self._by_name if family_of(name) == family))


class AuditData(NamedTuple):
    """The data that programs are compared with."""

    title: str
    """The package set or the data, in words."""
    channel: str
    catalog: Catalog
    policy: LibraryPolicy
    drivers: DriverPolicy
    rules: CoverageRules | None
    tables: Callable[[Iterable[str]], Tables]
    """Returns the symbol tables of libraries."""
    exporters: Callable[[Collection[str]], Mapping[str, Collection[str]]]
    """Returns the C functions that libraries export in any release, with these libraries."""
    device_code: Callable[[str], Mapping[str, Collection[DeviceCodeSizes]]]
    """Returns the device code of a library by archive."""

    def owner_of(self, soname: str) -> Owner | None:
        """Return the owner of a library outside NVIDIA's packages, None for others."""
        external = find_external(soname, self.policy)
        return None if external is None else external.owner

    def is_cuda_library(self, name: str, platforms: Sequence[str]) -> bool:
        """Check if a library belongs to NVIDIA's products, other than the driver."""
        owner = self.owner_of(name)
        if owner is None:
            return self.catalog.has_family(name)
        # A distribution may have libraries such as NCCL, too.
        return owner not in DRIVER_OWNERS and bool(self.catalog.providers(name, platforms))


class AuditRequirements(NamedTuple):
    """Properties that the program must have."""

    gpus: tuple[str, ...] = ()
    """Capabilities that run its device code."""
    gpu_names: tuple[str, ...] = ()
    """Their names in the command, such as `Tesla T4`."""
    max_glibc: str | None = None
    cuda: str | None = None
    """A CUDA release, or a prefix such as `12.9`."""
    driver: str | None = None
    """A driver version, or a prefix such as `550.54`."""
    no_bundled: bool = False
    advisories: bool = False
    """Whether known vulnerabilities are findings."""
    has_sizes: bool = False
    """Whether the report has the sizes of files."""
    ignored: tuple[IgnoredFinding, ...] = ()
    """Findings that do not count."""
