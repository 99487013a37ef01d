"""Tests of coverage: images that run on a GPU, and shares of files and packages.

The rules are those of NVIDIA's CUDA programming guide: "Binary compatibility" (SASS of the same
major number, not between Tegra and desktop), "PTX compatibility" (any later capability),
"Architecture-specific features" (`a`: that capability only) and "Family-specific features" (`f`:
later ones of the family).
"""

from functools import cache

import pytest
from conftest import REPOSITORY
from support.set_inputs import image_sizes

from cudaredist.formats.coverage import Coverage
from cudaredist.formats.features import FileCode
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import Gpus
from cudaredist.primitives import parse_label
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.coverage import CoverageRules, cuda_major_of, describe_coverage


@cache
def gpus() -> Gpus:
    return read_own_file((REPOSITORY / "data/gpus.json").read_bytes(), Gpus)


@cache
def rules() -> CoverageRules:
    return CoverageRules(gpus())


def code(text: str, **unpacked: int) -> FileCode:
    """Return a file from its modules, such as `sm_70 sm_80: 5, compute_75: 2`."""
    pairs = (part.split(": ") for part in text.split(", "))
    modules = {images: int(count) for images, count in pairs}
    sizes = unpacked or image_sizes(modules)
    return FileCode(output="lib", modules=modules, bytes={}, unpacked=sizes)


def cover(capability: str, *files: FileCode) -> Coverage:
    return rules().cover(files, [capability])[capability]


@pytest.mark.parametrize(
    ("image", "names", "way"),
    [
        # Binary compatibility: the same capability, or an earlier minor of the same major.
        ("sm_80", "8.0 8.6 8.9", "native"),
        ("sm_70", "7.5", "native"),
        ("sm_100", "10.3", "native"),
        ("sm_120", "12.1", "native"),
        ("sm_86", "8.0", None),
        ("sm_75", "7.0", None),
        ("sm_80", "9.0", None),
        ("sm_70", "8.0", None),
        ("sm_100", "12.0", None),
        ("sm_90", "10.0", None),
        # Tegra: binaries are compatible neither with desktop parts nor with other Tegra parts.
        ("sm_87", "8.7", "native"),
        ("sm_80", "8.7", None),
        ("sm_86", "8.7", None),
        ("sm_87", "8.9 8.8", None),
        ("sm_70", "7.2", None),
        ("sm_72", "7.5", None),
        ("sm_60", "6.2", None),
        ("sm_110", "11.0", "native"),
        ("sm_100", "10.1", None),
        # The old and new numbers of Thor are different binary targets.
        ("sm_101", "11.0", None),
        ("sm_101", "10.1", "native"),
        # DGX Spark is an ARM system, but not a Tegra part.
        ("sm_121", "12.1", "native"),
        # a: that capability only.
        ("sm_90a", "9.0", "native"),
        ("sm_100a", "10.0", "native"),
        ("sm_100a", "10.3", None),
        ("sm_120a", "12.1", None),
        # f: later ones of the family.
        ("sm_100f", "10.0 10.3 10.7", "native"),
        ("sm_103f", "10.0", None),
        ("sm_103f", "10.7", "native"),
        ("sm_120f", "12.1", "native"),
        ("sm_100f", "11.0 10.1 12.0", None),
        ("sm_110f", "11.0", "native"),
        # PTX compatibility: the same or any later capability, Tegra or not.
        ("compute_50", "5.0 12.1", "ptx"),
        ("compute_75", "8.7", "ptx"),
        ("compute_101", "11.0", "ptx"),
        ("compute_90", "10.0", "ptx"),
        ("compute_75", "7.0", None),
        ("compute_120", "11.0 10.3", None),
        ("compute_90a", "9.0", "ptx"),
        ("compute_90a", "10.0", None),
        ("compute_100f", "10.3", "ptx"),
        ("compute_120f", "12.0", "ptx"),
        ("compute_120f", "10.3", None),
        ("compute_100f", "10.1", None),
        # LTO code: like PTX, but for a linker.
        ("lto_75", "7.5 9.0", "lto"),
        ("lto_90", "8.9", None),
        # A GPU that is not in the table, and invalid architecture names.
        ("sm_200", "20.3", "native"),
        ("sm_5", "5.0", None),
        ("odd", "5.0", None),
    ],
)
def test_image_runs_on_gpu_by_compatibility_rules(image: str, names: str, way: str | None) -> None:
    assert {rules().way(image, Capability.parse(name)) for name in names.split()} == {way}


WHOLE = "sm_70 sm_80 sm_90 compute_90: 412"


@pytest.mark.parametrize(
    ("capability", "files", "expected"),
    [
        ("8.0", [code(WHOLE)], "native 412 of 412 modules"),
        ("9.0a", [code(WHOLE)], "native 412 of 412 modules"),
        ("10.0f", [code(WHOLE)], "ptx 412 of 412 modules"),
        ("5.0", [code(WHOLE)], "none: 0 of 1 files, 0 of 412 modules"),
        # The best image of a module counts, and each module once.
        ("7.0", [code("sm_70*3 sm_75 compute_50: 5")], "native 5 of 5 modules"),
        # Kernels for other GPUs do not make a file partial.
        ("8.0", [code("sm_80: 20, sm_90a: 300")], "native 20 of 300 modules"),
        ("7.5", [code("sm_70: 310, compute_75: 7190")], "native 310, ptx 7,190 of 7,500 modules"),
        # cuTENSOR 2.8 has one leftover module with PTX for 5.0, which is not support.
        (
            "7.0",
            [code("compute_50: 1, sm_75: 200, sm_80: 347, sm_90: 398")],
            "partial: 0 of 1 files, ptx 1 of 399 modules",
        ),
        ("7.0", [code("sm_70: 2, sm_80: 100")], "native 2 of 100 modules"),
        ("7.0", [code("sm_70: 1, sm_80: 100")], "partial: 0 of 1 files, native 1 of 100 modules"),
        # PTX for all modules and leftover SASS: the file runs with PTX.
        (
            "12.0",
            [code("compute_75: 900, sm_120: 1, sm_80: 900")],
            "ptx: native 1, ptx 900 of 1,800 modules",
        ),
        ("8.0", [code("lto_75: 34")], "lto 34 of 34 modules"),
        ("8.0", [code("lto_75: 1, lto_90: 97")], "partial: 0 of 1 files, lto 1 of 98 modules"),
        ("7.0", [code("lto_75: 34")], "none: 0 of 1 files, 0 of 34 modules"),
        # LTO code for callbacks next to SASS is not needed to run.
        ("8.0", [code("lto_75: 6573, sm_80: 350")], "native 350 of 350 modules"),
        # Several files: the weakest one decides, and one without code makes a package partial.
        ("10.0", [code("sm_100: 5"), code("compute_90: 7")], "ptx: native 5, ptx 7 of 12 modules"),
        (
            "7.0",
            [code("sm_70: 349, sm_80: 1179"), *[code("sm_75: 20")] * 5],
            "partial: 1 of 6 files, native 349 of 1,279 modules",
        ),
        ("7.0", [code("sm_75: 3"), code("sm_80: 4")], "none: 0 of 2 files, 0 of 7 modules"),
        # nvcc adds an empty image to libraries without kernels: libnppc, libcufftw.
        ("9.0", [code("sm_52: 1", sm_52=872)], "host-only"),
        ("9.0", [code("sm_75: 1", sm_75=1888), code("sm_90: 3")], "native 3 of 3 modules"),
        ("9.0", [code("sm_75: 1", sm_75=4096)], "none: 0 of 1 files, 0 of 1 modules"),
        ("9.0", [code("compute_75 sm_75: 1", compute_75=56, sm_75=1464)], "host-only"),
        # Empty images for Windows, and since sm_100, are larger.
        ("9.0", [code("compute_52 sm_52: 1", compute_52=82, sm_52=872)], "host-only"),
        ("9.0", [code("sm_100: 1", sm_100=2248)], "host-only"),
        # The smallest kernels in PTX and for a linker are smaller than empty images of a GPU.
        ("9.0", [code("compute_80: 1", compute_80=913)], "ptx 1 of 1 modules"),
        ("9.0", [code("compute_80: 1", compute_80=93)], "ptx 1 of 1 modules"),
        ("9.0", [code("lto_90: 1", lto_90=1600)], "host-only"),
        ("9.0", [code("lto_90: 1", lto_90=1972)], "lto 1 of 1 modules"),
        ("9.0", [], "host-only"),
        # cutensorMp 2.4 has three modules without a kernel.
        ("9.0", [code("compute_52 sm_52: 2, sm_52: 1", compute_52=136, sm_52=2120)], "host-only"),
        # cuTENSOR 2.2 has modules for 6.0, but the images are empty: bytes count as well.
        (
            "6.0",
            [code("sm_60 sm_70: 8, sm_70: 177", sm_60=10_176, sm_70=106_334_120)],
            "partial: 0 of 1 files, native 8 of 185 modules",
        ),
        # A file of kernels for new GPUs has little for others, and the package supports them.
        (
            "7.5",
            [code("sm_75 sm_80: 600"), code("sm_75 sm_80: 1, sm_80: 99")],
            "native 601 of 700 modules",
        ),
        # The other file of such a package without any code for a GPU makes it partial.
        (
            "7.5",
            [code("sm_75 sm_80: 600"), code("sm_80: 100")],
            "partial: 1 of 2 files, native 600 of 700 modules",
        ),
    ],
)
def test_coverage_of_files_is_share_of_modules(
    capability: str, files: list[FileCode], expected: str
) -> None:
    coverage = cover(capability, *files)
    assert describe_coverage(coverage) == expected
    assert expected.startswith(coverage.value) or coverage.value in {"native", "ptx", "lto"}


@pytest.mark.parametrize(
    ("capability", "text", "release", "expected"),
    [
        ("8.7", "sm_80: 5", "13.2.0", "native 5 of 5 modules for other GPUs"),
        ("8.7", "sm_80: 5", "13.1.0", "unknown (only code for other GPUs)"),
        ("8.7", "sm_80: 5", None, "unknown (only code for other GPUs)"),
        # Code of its own, PTX, and code that no GPU of the architecture runs.
        ("8.7", "sm_80 sm_87: 5", "12.9.0", "native 5 of 5 modules"),
        ("8.7", "sm_80 compute_80: 5", None, "ptx 5 of 5 modules"),
        ("8.7", "sm_90: 5", "13.2.0", "none: 0 of 1 files, 0 of 5 modules"),
        # Policy states nothing about other Tegra parts.
        ("7.2", "sm_70: 5", "12.2.0", "none: 0 of 1 files, 0 of 5 modules"),
        ("8.8", "sm_80: 5", "13.2.0", "none: 0 of 1 files, 0 of 5 modules"),
    ],
)
def test_orin_may_run_code_for_other_gpus(
    capability: str, text: str, release: str | None, expected: str
) -> None:
    label = None if release is None else parse_label(release)
    coverage = rules().cover([code(text)], [capability], release=label)[capability]
    assert describe_coverage(coverage) == expected


@pytest.mark.parametrize(
    ("capability", "cuda", "expected"),
    [
        # CUDA 13 removed GPUs before 7.5, CUDA 12 those before 5.0: code for them is left over.
        ("7.0", None, "native 34 of 171 modules"),
        ("7.0", 12, "native 34 of 171 modules"),
        ("7.0", 13, "none"),
        ("7.2", 13, "none"),
        ("7.5", 13, "native 171 of 171 modules"),
        ("3.5", 11, "native 34 of 171 modules"),
        ("3.5", 12, "none"),
        # CUDA 13 calls 10.1 by another name.
        ("10.1", 12, "native 171 of 171 modules"),
        ("10.1", 13, "none"),
        ("11.0", 13, "none: 0 of 1 files, 0 of 171 modules"),
    ],
)
def test_package_for_cuda_major_covers_only_gpus_of_major(
    capability: str, cuda: int | None, expected: str
) -> None:
    files = [code("sm_35 sm_70 sm_75 sm_101: 34, sm_75 sm_101: 137")]
    coverage = rules().cover(files, [capability], cuda)[capability]
    assert describe_coverage(coverage) == expected
    assert rules().cover([], [capability], cuda)[capability].value == "host-only"


@pytest.mark.parametrize(
    ("redist", "label", "variant", "major"),
    [
        ("cuda", "13.0.2", None, 13),
        ("cudnn", "9.12.0", "cuda13", 13),
        ("cutensor", "2.2.0", "cuda11", 11),
        ("nccl", "2.31.2-cuda13.3", None, 13),
        ("cudnn", "8.5.0", None, None),
    ],
)
def test_cuda_major_of_archive_is_in_its_names(
    redist: str, label: str, variant: str | None, major: int | None
) -> None:
    assert cuda_major_of(redist, parse_label(label), variant) == major


def test_ptx_runs_on_gpus_measured_in_table() -> None:
    for name, entry in gpus().capabilities.items():
        image = f"compute_{name.replace('.', '')}"
        coverage = [str(gpu) for gpu in rules().capabilities if rules().way(image, gpu)]
        assert coverage == list(entry.runs_on), name
