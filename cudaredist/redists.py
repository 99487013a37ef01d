"""The catalogue of NVIDIA's redistributables: names, folders and peculiarities.

To add a redistributable, add an alphabetical entry. This module contains only data.
"""

from collections.abc import Iterable
from typing import NamedTuple

from cudaredist.errors import find_name

CUDA = "cuda"
"""The name of CUDA. Its release identifies a package set."""

NVIDIA_BASE = "https://developer.download.nvidia.com"
"""The root of NVIDIA's server, which contains `compute/<redist>/redist/`."""

NVIDIA_PREVIEWS = "https://packages.nvidia.com/bin-archive"
"""The root of NVIDIA's second server, with `release/<redist>/releases.json` and `pool/`.

`HttpSource` reads these folders from it if its address is `NVIDIA_BASE`.
"""


class Redist(NamedTuple):
    """A redistributable product: a series of manifests in one folder of a source."""

    name: str
    """The name used in commands and in `data/`."""

    title: str
    """NVIDIA's name of the product."""

    packages: tuple[str, ...] = ()
    """Expected packages of a manifest, if there are only a few. Empty for CUDA."""

    folders: tuple[str, ...] = ()
    """Folders with manifests, relative to a source's root, the main one first.

    If empty, `compute/<name>/redist`. A label in several folders is read from the first.
    """

    archive_base: str | None = None
    """The root of another source with the archives. Default: the manifests' source."""

    archives: tuple[str, ...] = ()
    """Base folders of `relative_path`. Default: the folders of the manifests."""

    handwritten: bool = False
    """Whether packagers write the manifests instead of NVIDIA."""

    products: tuple[str, ...] = ()
    """Values of `release_product` for this redist, in addition to its name."""

    @property
    def manifest_folders(self) -> tuple[str, ...]:
        """The folders with manifests, relative to a source's root."""
        return self.folders or (f"compute/{self.name}/redist",)

    @property
    def preview_folder(self) -> str:
        """The folder with manifests of early-access releases."""
        return f"release/{self.name}/redist"

    @property
    def archive_folders(self) -> tuple[str, ...]:
        """The base folders of archives' paths, relative to a source's root."""
        return self.archives or self.manifest_folders

    def accepts_product(self, product: str) -> bool:
        """Check if a `release_product` belongs to this redist."""
        return product == self.name or product in self.products


_CATALOGUE = (
    # libcal, included until 0.4.0, has its own version.
    Redist(
        name="cublasmp",
        title="cuBLASMp",
        packages=("libcublasmp", "libcal"),
        products=("cublasmp-v0-1",),
    ),
    # Manifests before 11.4.2 have the early form: no hashes, drivers only.
    # linux-aarch64 (Jetson) is absent from 12.3 and from 13.0 on.
    # 13.3 renamed cuda_cccl to cccl.
    Redist(name="cuda", title="CUDA Toolkit"),
    # Labels of 8.x exist with three numbers and, older, with four and no variants.
    # 9.27.0 has a flat and a nested archive for one platform.
    Redist(name="cudnn", title="cuDNN", packages=("cudnn", "cudnn_samples", "cudnn_jit")),
    Redist(name="cudss", title="cuDSS", packages=("libcudss",)),
    Redist(name="cufftmp", title="cuFFTMp", packages=("libcufftmp",)),
    # 23.03.0 has libraries for two CUDA majors in one archive.
    Redist(name="cuquantum", title="cuQuantum", packages=("cuquantum",)),
    Redist(name="cusolvermp", title="cuSOLVERMp", packages=("libcusolvermp",)),
    # Flat until 0.7.1, nested from 0.8.0.
    Redist(name="cusparselt", title="cuSPARSELt", packages=("libcusparse_lt",)),
    # Flat until 2.2.0, with one folder of libraries per CUDA version.
    Redist(name="cutensor", title="cuTENSOR", packages=("libcutensor",)),
    # Labels include the toolkit: 2.29.2-cuda12.9.
    # Two manifests have the same path with different bytes, so only the hash identifies an archive.
    Redist(
        name="nccl",
        title="NCCL",
        packages=("nccl",),
        products=("nccl-nccl-stable-cuda-12", "nccl-nccl-stable-cuda-13"),
    ),
    Redist(name="nppplus", title="NPP+", packages=("libnpp_plus",)),
    Redist(name="nvcomp", title="nvCOMP", packages=("nvcomp",)),
    # Some early manifests have an unusual form.
    Redist(name="nvidia-driver", title="NVIDIA driver"),
    Redist(
        name="nvidia-hpc-benchmarks",
        title="NVIDIA HPC Benchmarks",
        packages=("nvidia_hpc_benchmarks_openmpi", "nvidia_hpc_benchmarks_mpich"),
    ),
    Redist(name="nvjpeg2000", title="nvJPEG2000", packages=("libnvjpeg_2k",)),
    # CPU libraries for linux-sbsa only. Labels have two numbers.
    Redist(name="nvpl", title="NVIDIA Performance Libraries"),
    # Older releases are in another folder.
    Redist(
        name="nvshmem",
        title="NVSHMEM",
        packages=("libnvshmem", "nvshmem_python"),
        folders=("compute/nvshmem/redist", "compute/redist/nvshmem"),
    ),
    Redist(name="nvtiff", title="nvTIFF", packages=("libnvtiff",)),
    # NVIDIA publishes no manifests. Packagers write them, starting with 10.0.0.
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
    """Return the redistributable with a name.

    `own` has the names of the user's own redistributables. Raises `UnknownNameError`, which
    suggests similar names.
    """
    known = {other: Redist(name=other, title=other) for other in own} | REDISTS
    return find_name("redistributable", name, known)
