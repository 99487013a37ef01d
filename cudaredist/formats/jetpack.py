"""Model of `policy/jetpack.json`: the releases of JetPack and their CUDA."""

from pydantic import Field

from cudaredist.formats.base import OwnFile, Reasoned
from cudaredist.formats.field_types import CudaMinor, PlainCapability, VersionText


class JetPackRelease(Reasoned):
    """A release of JetPack, the software of Jetsons."""

    l4t: tuple[VersionText, ...] = Field(
        min_length=1, description="Its releases of Jetson Linux (L4T), the oldest first"
    )
    cuda: CudaMinor
    cudnn: VersionText | None = Field(description="Null: unknown")
    tensorrt: VersionText | None = Field(description="Null: unknown")
    capabilities: tuple[PlainCapability, ...]
    platform: str | None = Field(
        description="The platform of NVIDIA's archives for it. Null: NVIDIA publishes none"
    )

    @property
    def generation(self) -> str:
        """The major of its releases of L4T, such as 36."""
        return self.l4t[-1].partition(".")[0]


class JetsonCompat(Reasoned):
    """A compat package that runs on a generation of L4T."""

    package: str
    version: VersionText | None = Field(description="Null: the source does not state it")
    cuda: CudaMinor = Field(description="The newest CUDA with it")


class JetPackPolicy(OwnFile):
    """`policy/jetpack.json`: the contents of JetPack releases, and compat packages for them."""

    releases: dict[VersionText, JetPackRelease] = Field(description="By release of JetPack")
    compat: dict[str, tuple[JetsonCompat, ...]] = Field(
        description="By major of L4T. Other packages, and generations without an entry, are unknown"
    )

    def compat_of(self, release: JetPackRelease) -> tuple[JetsonCompat, ...]:
        """Return the known compat packages for a release."""
        return self.compat.get(release.generation, ())
