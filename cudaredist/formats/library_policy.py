"""Model of the policy of libraries."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from cudaredist.formats.base import Reasoned, optional
from cudaredist.formats.field_types import CapabilityName, InnerPath
from cudaredist.formats.set_policy import Bounds, SetPolicy
from cudaredist.formats.specifier import Specifier

Owner = Literal[
    "glibc", "gcc", "driver", "jetson", "distribution", "windows", "msvc", "python", "unknown"
]


class External(Reasoned):
    """Libraries outside package sets, and their providers."""

    owner: Owner
    provider: str | None = optional("The distribution's package with them")
    names: tuple[str, ...] = Field(
        description="Sonames. `*` matches any characters. DLL names ignore case"
    )
    packages: tuple[str, ...] = optional(
        "Packages of NVIDIA with a copy of the libraries, for special cases", ()
    )
    symbols: tuple[str, ...] = optional(
        "Beginnings of the symbols that the libraries export, with `*` and `[A-Z]`", ()
    )


class Distribution(Reasoned):
    """A distribution, with its libraries that names with `*` in `external` match."""

    is_complete: bool = Field(
        description="Whether it has no other such libraries. If not, others are unknown"
    )
    is_old: bool = Field(description="Whether a newer release of the distribution is listed")
    sonames: dict[str, str] = Field(description="The distribution's package, by soname")


class LoadedLibrary(Reasoned):
    """A library that another one loads at run time.

    The loading file does not list it as needed.
    """

    package: str
    versions: Bounds = Field(default=Bounds(), description="Versions of the package")
    by: str = Field(description="Name of the loading library, without `.so`")
    loads: str = Field(description="Name of the loaded library, without `.so`")
    is_optional: bool = Field(
        default=False, description="Most functions work without the loaded library"
    )


class OptionalLibrary(Reasoned):
    """Libraries that packages open at run time, and can do without."""

    packages: tuple[str, ...] = Field(description="Packages. `*` matches any characters")
    names: tuple[str, ...] = Field(
        description="Names in the data of their files. `*` matches any characters. DLL names "
        "ignore case"
    )


class Dependency(Reasoned):
    """A dependency that is not in the files' lists of libraries."""

    package: str
    cuda: Bounds = Field(default=Bounds())
    needs: str
    kind: Literal["header", "runtime"]


class Preload(Reasoned):
    """Libraries of NVIDIA's wheels that a Python package loads before its own files."""

    projects: tuple[str, ...] = Field(description="The projects of the package")
    module: InnerPath = Field(description="Path below site-packages of the file that loads them")
    function: str = Field(description="A name in that file. Absent from versions that load nothing")
    names: tuple[str, ...] = Field(description="Names of files. `*` matches any characters")
    is_optional: bool = optional("Whether the package can be imported without them", default=False)
    is_called: bool = optional(
        "Whether the package does not call the function itself, so that programs must call it",
        default=False,
    )


class Build(Reasoned):
    """Releases of a Python package that are built for one CUDA major."""

    project: str
    cuda: int = Field(description="The CUDA major")
    versions: Specifier = Field(description="The releases, such as `>=1.21,<1.27`")
    extras: tuple[str, ...] = optional("Extras that require the wheels of NVIDIA", ())
    replaces: tuple[str, ...] = optional("Projects with the builds for other CUDA majors", ())


class Companion(Reasoned):
    """A Python package whose releases have the major and minor version of another package."""

    project: str
    follows: str = Field(description="The project of the other package")


class LibraryPolicy(SetPolicy):
    """`policy/libraries.json`: external, loaded and optional libraries, and dependencies."""

    external: tuple[External, ...]
    distributions: dict[str, Distribution] = optional(
        "Distributions by name. A library that only a name with `*` in `external` matches must be "
        "in one of them. Absent: any such library exists",
        {},
    )
    loaded: tuple[LoadedLibrary, ...]
    optional_libraries: tuple[OptionalLibrary, ...] = optional(
        "Opened libraries that are not required", ()
    )
    preloads: tuple[Preload, ...] = optional("Libraries that Python packages load", ())
    builds: tuple[Build, ...] = optional("Releases of Python packages for one CUDA major", ())
    companions: tuple[Companion, ...] = optional(
        "Python packages that require the same version of another one", ()
    )
    dependencies: tuple[Dependency, ...]
    compat_run_path: tuple["CompatRunPath", ...]

    def named_packages(self) -> Iterator[str]:
        """Yield the packages that the policy names."""
        for dependency in self.dependencies:
            yield from (dependency.package, dependency.needs)
        yield from (entry.package for entry in self.loaded)
        yield from (entry.package for entry in self.compat_run_path)


class CompatRunPath(Reasoned):
    """A platform where a compatibility package precedes the driver."""

    package: str
    platform: str
    only_capabilities: tuple[CapabilityName, ...] | None = optional(
        "Limits it to sets for only these capabilities. Absent: no limit"
    )
