"""Model of the policy of drivers."""

from pydantic import Field

from cudaredist.formats.base import OwnModel, Reasoned, optional
from cudaredist.formats.field_types import VersionText
from cudaredist.formats.set_policy import SetPolicy


class LowestDriver(Reasoned):
    """The lowest driver that runs programs of a CUDA major."""

    version: VersionText = Field(description="On Linux")
    windows: VersionText | None = optional("On Windows; absent: no source states it")


class ReleaseDrivers(OwnModel):
    """The lowest drivers with all features of a CUDA release."""

    linux: VersionText | None = optional("Absent: no source states it")
    windows: VersionText | None = optional("Absent: no source states it")
    reference: str = Field(description="The document that states them")


class ReleasePtx(OwnModel):
    """The newest version of PTX that a compiler writes. Drivers compile that of their CUDA."""

    version: VersionText
    reference: str = Field(description="The document, or the library of the release with such PTX")


class ForwardCompatibility(Reasoned):
    """Driver branches that run a newer CUDA minor with its package `cuda_compat`."""

    branches: tuple[str, ...]


class LastBranch(Reasoned):
    """The last driver branch for a GPU architecture."""

    branch: str


class DriverPolicy(SetPolicy):
    """`policy/drivers.json`: the drivers for CUDA releases and GPUs, as NVIDIA documents them."""

    lowest: dict[str, LowestDriver] = Field(description="By CUDA major")
    releases: dict[str, ReleaseDrivers] = optional("By CUDA release", {})
    forward: dict[str, ForwardCompatibility] = optional("By CUDA minor", {})
    last_branches: dict[str, LastBranch] = optional("By GPU architecture", {})
    ptx: dict[str, ReleasePtx] = optional("By CUDA minor", {})
    clang_ptx: dict[str, ReleasePtx] = optional(
        "The newest PTX that releases of Clang write, by major", {}
    )
