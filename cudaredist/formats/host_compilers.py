"""Model of the host compilers of a package set."""

from typing import Literal

from pydantic import Field

from cudaredist.formats.base import OwnModel, optional


class HostRange(OwnModel):
    """The accepted versions of a host compiler. Null means no limit."""

    min: int | None
    max: int | None

    def accepts(self, major: int) -> bool:
        """Check if a version is in the range."""
        return (self.min is None or self.min <= major) and (self.max is None or major <= self.max)


class HostGcc(HostRange):
    """The selected GCC."""

    default: int | None = Field(description="The distribution's GCC. Null: not specified")
    selected: int | None
    uses_default: bool


class HostGlibc(OwnModel):
    """The newest glibc that nvcc compiles with."""

    newest: str = Field(
        description="Without `clashes`: the newest known glibc, so later ones may work too"
    )
    clashes: tuple[str, ...] = Field(description="Functions that the next glibc declares otherwise")


class HostCompiler(OwnModel):
    """The host compilers. Null means that nvcc accepts no version."""

    gcc: HostGcc | None
    clang: HostRange | None
    msvc: HostRange | None = Field(description="Values of _MSC_VER")
    cxx_runtime: Literal["default", "selected"] = Field(
        description="The compiler that provides libstdc++: the newer one"
    )
    glibc: HostGlibc | None = optional("The newest glibc on Linux. Absent: unknown")
