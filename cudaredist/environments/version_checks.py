"""Libraries that a file refuses because they are older than the CUDA release of its build.

Jitify, a part of libcudf, composes the name `libnvJitLink.so.12`, and refuses a library of an
earlier CUDA minor than the compiler. Neither METADATA nor the symbols have this requirement. But
the file contains the text of the check, and the version of its PTX is that of the compiler.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version as WheelVersion

from cudaredist.environments.installed import Distribution
from cudaredist.environments.loaded_libraries import LoadedLibraries
from cudaredist.errors import ReadingFrom
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.primitives import Version
from cudaredist.programs.program import AuditData, KnownLibrary, ProgramFile
from cudaredist.programs.wheel_requirements import wheel_version
from cudaredist.sets.library_names import stem_of
from cudaredist.tables.driver_support import release_of_ptx

_CHECK = b" is too old; it is version "
"""The text of the check, between the name of the library and its version."""
_BLOCK = 1 << 20
_TEXT_LIMIT = 300
"""Bytes of the end of a block that may begin a text."""


class RefusedLibrary(NamedTuple):
    """A library that a file refuses because it is too old."""

    user: ProgramFile
    soname: str
    package: Distribution
    """The installed package with the library."""
    cuda: str
    """The CUDA minor of the user's build."""
    first: WheelVersion | None
    """The first known version of the package for this minor."""


def refused_libraries(libraries: LoadedLibraries, data: AuditData) -> Iterator[RefusedLibrary]:
    """Yield the libraries that modules load for a file, although it refuses them.

    Raises `ReadError`.
    """
    files = libraries.files
    for user in files.elf_files:
        cuda = None if user in files.nvidia_files else _minor_of_build(user, data.drivers)
        if cuda is None:
            continue
        for soname, library in libraries.preloads.before(user).items():
            package = files.owners.of(library.file)
            if package is None or soname in user.binary.needed:
                continue
            known = [each for each in data.catalog.wheels(package.project) if _is_of_cuda(each)]
            installed = [each for each in known if str(wheel_version(each)) == package.version]
            is_older = installed and all(_is_before(each, cuda) for each in installed)
            if is_older and _checks(user, soname):
                later = (wheel_version(each) for each in known if not _is_before(each, cuda))
                first = min(filter(None, later), default=None)
                yield RefusedLibrary(user, soname, package, cuda, first)


def _is_of_cuda(library: KnownLibrary) -> bool:
    """Check if a library is in the toolkit itself, whose releases are those of CUDA."""
    return library.redist == "cuda"


def _is_before(library: KnownLibrary, minor: str) -> bool:
    """Check if a library is of an earlier minor of the same CUDA major."""
    release, least = Version.parse(library.label.line), Version.parse(minor)
    return release.components[0] == least.components[0] and release < least


def _minor_of_build(file: ProgramFile, policy: DriverPolicy) -> str | None:
    """Return the CUDA minor whose compiler wrote the newest PTX of a file, None without PTX."""
    images = file.binary.images
    versions = [Version.parse(text) for text in images.ptx.values()] if images else []
    return release_of_ptx(max(versions), policy) if versions else None


def _checks(file: ProgramFile, soname: str) -> bool:
    """Check if a file composes a library's name, and checks its version. Raises `ReadError`."""
    missing = {f"{stem_of(soname)}.so.\0".encode(), _CHECK}
    end = b""
    with ReadingFrom(file.path), Path(file.path).open("rb") as stream:
        while missing and (block := stream.read(_BLOCK)):
            data = end + block
            missing = {text for text in missing if text not in data}
            end = data[-_TEXT_LIMIT:]
    return not missing
