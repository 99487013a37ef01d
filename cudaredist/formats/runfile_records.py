"""Model of the records of runfile installers."""

import re
from typing import NamedTuple, Self

from pydantic import Field, model_validator

from cudaredist.formats.base import OwnFile, OwnModel
from cudaredist.formats.field_types import Count, HexSha256, Label
from cudaredist.primitives import sri_of
from cudaredist.words import shown

_NAME = re.compile(
    r"cuda_(?P<release>(?:0|[1-9][0-9]{0,5})(?:\.(?:0|[1-9][0-9]{0,5})){2})(?:_(?P<driver>[0-9]+(?:\.[0-9]+)+))?"
    r"_linux(?:_(?P<machine>sbsa|ppc64le))?\.run"
)


URL_PATTERN = r"^https?://[^\x00-\x20\x7f/?#@]+(/[^\x00-\x20\x7f?#]*)?$"
"""An address without credentials and query, which may contain a token."""


class RunfileName(NamedTuple):
    """The parts of a runfile's name, as in `cuda_12.9.1_575.57.08_linux.run`."""

    release: str
    driver: str | None
    platform: str

    @classmethod
    def parse(cls, name: str) -> "RunfileName | None":
        """Return the parts of a name in NVIDIA's form, None for another name."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        return cls(match["release"], match["driver"], f"linux-{match['machine'] or 'x86_64'}")

    @property
    def text(self) -> str | None:
        """The name in NVIDIA's form, None if the platform has no runfiles."""
        machine = self.platform.removeprefix("linux-")
        suffix = "" if machine == "x86_64" else f"_{machine}"
        driver = "" if self.driver is None else f"_{self.driver}"
        name = f"cuda_{self.release}{driver}_linux{suffix}.run"
        return name if RunfileName.parse(name) == self else None


class Runfile(OwnModel):
    """One runfile installer of CUDA."""

    name: str = Field(description="Such as cuda_12.9.1_575.57.08_linux.run")
    url: str | None = Field(
        pattern=URL_PATTERN, description="Null: unknown, because a local file was added"
    )
    size: Count = Field(description="Bytes")
    sha256: HexSha256
    sri: str = Field(description="The same hash as Nix and browsers write it")
    md5: str = Field(pattern=r"^[0-9a-f]{32}$", description="As on NVIDIA's page of MD5 sums")
    driver: str | None = Field(
        description="Version of the driver inside. Null: not in the file's name"
    )

    @model_validator(mode="after")
    def _check_sri(self) -> Self:
        if self.sri != sri_of(self.sha256):
            raise ValueError(f"{self.sri} is not the hash {self.sha256}")
        return self


class Runfiles(OwnFile):
    """`runfiles.json`: the runfile installers of CUDA, by release and platform."""

    runfiles: dict[Label, dict[str, Runfile]]

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for release, by_platform in self.runfiles.items():
            for platform, runfile in by_platform.items():
                if RunfileName.parse(runfile.name) != (release, runfile.driver, platform):
                    raise ValueError(
                        f"{shown(runfile.name)} is not the runfile of CUDA {release} for "
                        f"{shown(platform)} with driver {runfile.driver}"
                    )
        return self
