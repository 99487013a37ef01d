"""The catalogue of NVIDIA's redistributables: what each is called, where it lies, what is odd.

To add one, add an alphabetical entry. Nothing here is logic, and nothing is fetched.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from cudaredist.errors import find_name

CUDA = "cuda"
"""The name of CUDA itself, whose release identifies a package set."""

NVIDIA_BASE = "https://developer.download.nvidia.com"
"""The folder that holds `compute/<redist>/redist/` on NVIDIA's own server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redist:
    """One redistributable product: a series of manifests in one folder under a source's root."""

    name: str
    """The name used in commands and in `data/`."""

    title: str
    """What NVIDIA calls the product."""

    packages: tuple[str, ...] = ()
    """Packages to be expected in a manifest, where they are few; empty for CUDA itself."""

    folders: tuple[str, ...] = ()
    """Folders under a source's root that hold manifests, main one first.

    Where empty, the usual one: `compute/<name>/redist`. A label that lies in several folders is
    taken from the first.
    """

    archive_base: str | None = None
    """Where NVIDIA has the archives if not beside the manifest: the root of another source."""

    archives: tuple[str, ...] = ()
    """Folders under a source's root that `relative_path` is added to; else those of manifests."""

    handwritten: bool = False
    """Whether packagers, not NVIDIA, write the manifests."""

    products: tuple[str, ...] = ()
    """Values of `release_product` that stand for this redist besides its name."""

    @property
    def manifest_folders(self) -> tuple[str, ...]:
        """The folders to look in, each relative to a source's root."""
        return self.folders or (f"compute/{self.name}/redist",)

    @property
    def archive_folders(self) -> tuple[str, ...]:
        """The folders that archives' paths are relative to, each under a source's root."""
        return self.archives or self.manifest_folders

    def accepts_product(self, product: str) -> bool:
        """Say whether a manifest's `release_product` may stand in this redist's manifests."""
        return product == self.name or product in self.products


_CATALOGUE = (
    # libcal, to 0.4.0, has a version of its own.
    Redist(
        name="cublasmp",
        title="cuBLASMp",
        packages=("libcublasmp", "libcal"),
        products=("cublasmp-v0-1",),
    ),
    # Manifests before 11.4.2 are of the early form: no hashes, drivers only.
    # linux-aarch64 (Jetson) is absent from 12.3 and from 13.0 on.
    # 13.3 renamed cuda_cccl to cccl.
    Redist(name="cuda", title="CUDA Toolkit"),
    # Labels of 8.x exist with three numbers and, older, with four and no variants.
    # 9.27.0 holds a flat and a nested archive in one platform.
    Redist(name="cudnn", title="cuDNN", packages=("cudnn", "cudnn_samples", "cudnn_jit")),
    Redist(name="cudss", title="cuDSS", packages=("libcudss",)),
    # 23.03.0 holds libraries for two CUDA majors in one archive.
    Redist(name="cuquantum", title="cuQuantum", packages=("cuquantum",)),
    Redist(name="cusolvermp", title="cuSOLVERMp", packages=("libcusolvermp",)),
    # Flat to 0.7.1, nested from 0.8.0.
    Redist(name="cusparselt", title="cuSPARSELt", packages=("libcusparse_lt",)),
    # Flat to 2.2.0, with one folder of libraries per CUDA version.
    Redist(name="cutensor", title="cuTENSOR", packages=("libcutensor",)),
    # Labels name the toolkit too: 2.29.2-cuda12.9.
    # Two manifests claim one path with different bytes, so identity is the hash.
    Redist(
        name="nccl",
        title="NCCL",
        packages=("nccl",),
        products=("nccl-nccl-stable-cuda-12", "nccl-nccl-stable-cuda-13"),
    ),
    Redist(name="nppplus", title="NPP+", packages=("libnpp_plus",)),
    Redist(name="nvcomp", title="nvCOMP", packages=("nvcomp",)),
    # Some of the earlier manifests do not follow the usual form.
    Redist(name="nvidia-driver", title="NVIDIA driver"),
    Redist(
        name="nvidia-hpc-benchmarks",
        title="NVIDIA HPC Benchmarks",
        packages=("nvidia_hpc_benchmarks_openmpi", "nvidia_hpc_benchmarks_mpich"),
    ),
    Redist(name="nvjpeg2000", title="nvJPEG2000", packages=("libnvjpeg_2k",)),
    # CPU libraries for linux-sbsa only; labels of two numbers.
    Redist(name="nvpl", title="NVIDIA Performance Libraries"),
    # Older releases lie in a folder of their own.
    Redist(
        name="nvshmem",
        title="NVSHMEM",
        packages=("libnvshmem", "nvshmem_python"),
        folders=("compute/nvshmem/redist", "compute/redist/nvshmem"),
    ),
    Redist(name="nvtiff", title="nvTIFF", packages=("libnvtiff",)),
    # NVIDIA publishes no manifest: packagers write them, from 10.0.0 on.
    # 8.6.1 has neither size nor md5.
    Redist(
        name="tensorrt",
        title="TensorRT",
        packages=("tensorrt",),
        folders=("handwritten/tensorrt",),
        archive_base="https://developer.nvidia.com",
        archives=("downloads/compute/machine-learning", "compute/machine-learning"),
        handwritten=True,
    ),
)

REDISTS: dict[str, Redist] = {redist.name: redist for redist in _CATALOGUE}
"""Every redistributable by name, in alphabetical order."""


def find_redist(name: str, own: Iterable[str] = ()) -> Redist:
    """Return the entry of that name, in the catalogue or a user's own.

    Raises `UnknownNameError`, which suggests the nearest, if there is none.
    """
    known = {other: Redist(name=other, title=other) for other in own} | REDISTS
    return find_name("redistributable", name, known)
