"""Model of the policy of wheels."""

from typing import Any

from pydantic import Field, field_validator

from cudaredist.formats.base import OwnFile, Reasoned
from cudaredist.formats.field_types import VersionText
from cudaredist.wheel_projects import FAMILIES


class WheelRelease(Reasoned):
    """The wheels of a release, instead of those that would be selected."""

    versions: dict[str, VersionText] = Field(description="Version of the wheel by package")


class WheelPolicy(OwnFile):
    """`policy/wheels.json`: the wheels of releases, such as those with wrong metapackages."""

    metapackages: dict[str, dict[VersionText, WheelRelease]] = Field(
        description="By redistributable and release. Without a metapackage, such as for nccl, the "
        "default is the newest build of its wheel"
    )

    @field_validator("metapackages")
    @classmethod
    def _have_wheels(cls, releases: dict[str, Any]) -> dict[str, Any]:
        unknown = sorted(releases.keys() - FAMILIES.keys())
        if unknown:
            names = ", ".join(FAMILIES)
            raise ValueError(f"{unknown[0]} has no wheels. Redistributables with wheels: {names}")
        return releases
