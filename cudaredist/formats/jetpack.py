"""Model of `policy/jetpack.json`: the releases of JetPack and their CUDA."""

from pydantic import Field

from cudaredist.formats.base import CudaMinor, OwnFile, Reasoned, VersionText
from cudaredist.formats.tables import PlainCapability


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


class JetsonCompat(Reasoned):
    """The newest compat package that runs on a generation of L4T."""

    version: VersionText | None = Field(description="Of cuda_compat. Null: none runs")
    cuda: CudaMinor | None = Field(description="The newest CUDA with it")


class JetPackPolicy(OwnFile):
    """`policy/jetpack.json`: the contents of JetPack releases, and compat packages for them."""

    releases: dict[VersionText, JetPackRelease] = Field(description="By release of JetPack")
    compat: dict[str, JetsonCompat] = Field(
        description="By major of L4T. A generation without an entry is unknown"
    )

    def compat_of(self, l4t: str) -> JetsonCompat | None:
        """Return the compat package for a release of L4T, None if it is unknown."""
        return self.compat.get(l4t.partition(".")[0])
