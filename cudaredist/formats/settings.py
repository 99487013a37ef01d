"""Model of the configuration file of a project."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, field_validator, model_validator

from cudaredist.formats.base import OwnModel
from cudaredist.formats.names import Channel
from cudaredist.hints import redacted

DEFAULT_NAME = "default"
"""The name of sets whose attribute and file have no name."""
CONFIGURATION = "configuration"
"""The name for `schema`."""

AuditFindingKind: TypeAlias = Literal[
    "missing-library",
    "damaged-file",
    "requirement",
    "shared-file",
    "changed-file",
    "missing-symbols",
    "mixed-cuda",
    "duplicate-library",
    "unlinked-library",
    "run-path",
    "library-path",
    "undeclared",
    "declared",
    "gpu",
    "glibc",
    "cuda",
    "driver",
    "bundled",
    "vulnerability",
    "unknown-vulnerability",
    "api",
    "unknown",
]


class _Settings(OwnModel):
    """Settings with the names of options."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))


class IgnoredFinding(_Settings):
    """Findings of `audit` that do not count."""

    kind: AuditFindingKind
    contains: str = Field("", description="Part of the message, such as a path or library")
    reason: str = Field(description="Why it does not count", pattern=r"\S")

    def matches(self, kind: AuditFindingKind, message: str) -> bool:
        """Check if a finding of a kind is ignored, by its message."""
        return self.kind == kind and self.contains in message

    def __str__(self) -> str:
        """Return the entry as text."""
        return f"{self.kind}{f' ({self.contains})' if self.contains else ''}: {self.reason}"


class AuditSettings(_Settings):
    """The requirements of `audit`."""

    require_gpu: list[str] | None = Field(None, description="GPUs that must run the program")
    require_cuda: str | None = Field(None, description="CUDA release that must have its symbols")
    require_glibc: str | None = Field(None, description="Newest glibc that it may require")
    no_bundled: bool = Field(default=False, description="Whether copies of libraries are findings")
    advisories: bool = Field(
        default=False, description="Whether known vulnerabilities are findings"
    )
    ignore: list[IgnoredFinding] = Field([], description="Findings that do not count")

    @model_validator(mode="before")
    @classmethod
    def _take_former_names(cls, values: Any) -> Any:  # noqa: ANN401 - not validated yet
        """Accept the names of settings before they were renamed, for one release."""
        former = {"cuda": "require-cuda", "max-glibc": "require-glibc"}
        if not isinstance(values, dict):
            return values
        return {former.get(name, name): value for name, value in values.items()}


class DeclaredSet(_Settings):
    """Package sets that a distribution maintains: CUDA releases on platforms."""

    name: str = Field(
        DEFAULT_NAME,
        description="Name, part of the attribute and of the file's name, except `default`",
        pattern=r"^[a-z][a-z0-9_]*$",
    )
    cuda: Annotated[list[str], Field(min_length=1)] = Field(
        description="Releases, or lines such as `12.9` for the newest local patch"
    )
    platforms: Annotated[list[str], Field(min_length=1)] = Field(
        description="Platforms, such as linux-x86_64"
    )
    capabilities: list[str] = Field([], description="Capabilities or GPUs. Empty: the default")
    gpus: list[str] = Field([], description="More capabilities or GPUs, in the words of `--gpu`")
    forward_compat: bool | None = Field(None, description="Whether to embed PTX for newer GPUs")
    overlays: list[str] = Field([], description="Overlays, relative to this file")
    redist: dict[str, str] = Field({}, description="Releases by redistributable. Default: newest")
    also: list[str] = Field([], description="Additional releases, such as `cudnn=8.9.7`")
    default_gcc: int | None = Field(None, description="Preferred GCC, used if nvcc accepts it")
    available_gcc: list[int] = Field([], description="Other GCCs to choose from. Empty: any")
    aliases: dict[str, str] = Field(
        {},
        description="Release or line by alias of the set, such as cudaPackages_13",
    )
    allow: list[str] = Field([], description="Releases that policy calls broken, by name")
    allow_missing_features: bool = Field(
        default=False, description="Whether to accept archives with unknown outputs and libraries"
    )


class Configuration(_Settings):
    """The table `tool.cudaredist` of `pyproject.toml`, or the file `cudaredist.toml`."""

    data_dir: str | None = Field(None, description="Data folder, relative to this file")
    cache_dir: str | None = Field(None, description="Cache folder, relative to this file")
    channel: Channel | None = Field(None, description="NVIDIA's archives or NVIDIA's wheels")
    base_url: list[str] | None = Field(
        None, description="Servers and folders of manifests, without credentials"
    )
    jobs: Annotated[int, Field(ge=1, le=256)] | None = Field(
        None, description="Simultaneous downloads or archives"
    )
    retries: Annotated[int, Field(ge=0, le=20)] | None = Field(
        None, description="Retries after a transient failure"
    )
    timeout: Annotated[float, Field(ge=0.1, le=3600)] | None = Field(
        None, description="Seconds until a request times out"
    )
    audit: AuditSettings = AuditSettings()
    sets: list[DeclaredSet] = Field([], description="Package sets of a distribution")
    sets_folder: str = Field("build", description="Folder of these sets, relative to this file")
    alias_fallback: bool = Field(
        default=False,
        description="Whether an alias such as cudaPackages_13 follows to the newest local minor if "
        "policy's minor is not local",
    )

    @field_validator("base_url")
    @classmethod
    def _without_credentials(cls, addresses: list[str] | None) -> list[str] | None:
        if any(_has_query(one) or redacted(one) != one for one in addresses or ()):
            raise ValueError(
                "addresses cannot contain credentials or a query; set CUDAREDIST_BASE_URL instead"
            )
        return addresses


def _has_query(address: str) -> bool:
    """Check if an address has a query or fragment."""
    path = address.partition("://")[2]
    return "?" in path or "#" in path
