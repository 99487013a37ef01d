"""Tests of the catalog of redistributables."""

import pytest

from cudaredist.errors import UnknownNameError
from cudaredist.redists import REDISTS, find_redist


def test_catalog_is_in_alphabetical_order() -> None:
    assert list(REDISTS) == sorted(REDISTS)


def test_catalog_contains_every_known_redist() -> None:
    names = (
        "cublasmp cuda cudnn cudss cufftmp cuquantum cusolvermp cusparselt cutensor nccl nppplus "
        "nvcomp nvidia-driver nvidia-hpc-benchmarks nvjpeg2000 nvpl nvshmem nvtiff tensorrt"
    )
    assert " ".join(REDISTS) == names


@pytest.mark.parametrize("redist", REDISTS.values(), ids=lambda redist: redist.name)
def test_catalog_entries_are_well_formed(redist: object) -> None:
    assert redist.title  # type: ignore[attr-defined]
    for folder in redist.manifest_folders:  # type: ignore[attr-defined]
        assert not folder.startswith("/")
        assert not folder.endswith("/")


def test_redist_has_manifest_folders() -> None:
    assert find_redist("cuda").manifest_folders == ("compute/cuda/redist",)
    assert find_redist("nvshmem").manifest_folders[1] == "compute/redist/nvshmem"
    assert find_redist("tensorrt").manifest_folders == ("handwritten/tensorrt",)


@pytest.mark.parametrize(
    ("redist", "product", "is_accepted"),
    [
        ("cublasmp", "cublasmp-v0-1", True),
        ("nccl", "nccl-nccl-stable-cuda-13", True),
        ("cuda", "cuda", True),
        ("cuda", "cudnn", False),
    ],
)
def test_redist_accepts_its_products(redist: str, product: str, is_accepted: bool) -> None:  # noqa: FBT001 - a column
    assert find_redist(redist).accepts_product(product) is is_accepted


def test_unknown_redist_suggests_nearest() -> None:
    with pytest.raises(UnknownNameError) as raised:
        find_redist("CUDDN")
    assert "did you mean cudnn" in str(raised.value.hint)
