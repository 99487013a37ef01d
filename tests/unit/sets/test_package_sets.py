"""Tests of platforms, archives, releases and names of sets (build-rules 1 and 2)."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest
from conftest import REPOSITORY
from support.set_inputs import (
    JETSON,
    LINUX,
    SBSA,
    WINDOWS,
    Release,
    archive_of,
    build,
    cuda,
    library,
    outline,
    package,
    rule,
    set_data_of,
    texts,
)

from cudaredist.commands.build.build_sets import skipped_releases
from cudaredist.errors import UnknownNameError, UsageError
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Platform, Version
from cudaredist.sets.inputs import InputManifest
from cudaredist.sets.invariants.documents import check_run
from cudaredist.sets.platforms import (
    UNSUPPORTED,
    Absence,
    platform_of_system,
    select_archive,
)
from cudaredist.sets.version_choice import find_cuda, newest_patches
from cudaredist.store.selection import ALL

DATA = set_data_of(
    *(cuda(label, (LINUX, SBSA, JETSON)) for label in ("11.4.4", "12.0.1", "12.2.2", "12.6.3")),
    *(cuda(label, (LINUX, SBSA, JETSON, WINDOWS)) for label in ("12.9.0", "12.9.1")),
    *(cuda(label, (LINUX, SBSA, WINDOWS)) for label in ("13.0.2", "13.2.0", "13.3.0")),
)
FIXTURES = REPOSITORY / "tests/fixtures" / "manifests"


# -- platforms: sections 1.1 and 1.2


@pytest.mark.parametrize(
    ("system", "cuda_label", "choices", "platform"),
    [
        ("aarch64-linux", "12.6.3", ["8.7"], JETSON),
        ("aarch64-linux", "12.6.3", ["8.0 8.9", ""], SBSA),
        ("aarch64-linux", "12.9.1", ["8.7", "8.7 10.1"], JETSON),
        ("aarch64-linux", "12.9.1", ["10.1", "10.1a"], SBSA),
        ("aarch64-linux", "13.0.2", ["11.0", "8.7"], SBSA),
        ("aarch64-linux", "13.2.0", ["8.7 11.0"], SBSA),
        ("aarch64-linux", "13.2.0", ["7.2"], JETSON),
        ("aarch64-linux", "12.0.1", ["7.2"], JETSON),
        ("x86_64-linux", "12.6.3", ["8.7", "9.0", ""], LINUX),
        ("powerpc64le-linux", "12.6.3", ["8.7", "9.0", ""], "linux-ppc64le"),
        ("x86_64-windows", "12.6.3", ["8.7", "9.0", ""], WINDOWS),
        ("x86_64-darwin", "12.6.3", ["8.7", "9.0", ""], UNSUPPORTED),
        ("riscv64-linux", "12.6.3", ["8.7", "9.0", ""], UNSUPPORTED),
        ("", "12.6.3", ["8.7", "9.0", ""], UNSUPPORTED),
    ],
)
def test_platform_depends_on_system_and_arm_platform_on_capabilities_and_cuda(
    system: str, cuda_label: str, choices: Sequence[str], platform: str
) -> None:
    label = Version.parse(cuda_label)
    for names in choices:
        assert platform_of_system(system, names.split(), label, DATA) == platform


def test_set_describes_its_platform() -> None:
    platform = build(DATA, "12.6.3", system="aarch64-linux", capabilities=("8.7",)).platform
    described = (JETSON, "aarch64-linux", "aarch64-multiplatform", 183, True)
    assert tuple(platform.model_dump().values()) == described
    assert build(DATA, platform=WINDOWS).platform.elf_machine is None
    assert build(DATA, platform=SBSA).platform.nix_system == "aarch64-linux"


def test_unknown_architecture_is_a_valid_platform() -> None:
    new = "linux-riscv64"
    data = set_data_of(
        cuda(platforms=(LINUX, new), driver_assistant=["linux-all"]),
        Release("cudnn", "9.1.0", {"cudnn": [f"{LINUX}/cuda12", f"{new}/cuda12"]}),
        Release("cutensor", "2.3.0", {"libcutensor": [f"{LINUX}/cuda12"]}),
    )
    result = build(data, platform=new)
    assert tuple(result.platform.model_dump().values()) == (new, None, None, None, False)
    assert result.packages["cudnn"].status == "available"
    assert result.packages["libcutensor"].status == "unsupported"
    assert archive_of(data, "driver_assistant", platform=new).platform == "linux-all"


def test_unknown_system_is_refused_unless_hollow_is_allowed() -> None:
    with pytest.raises(UnknownNameError, match="'x86-64-linux'") as raised:
        build(DATA, system="x86-64-linux")
    assert "did you mean x86_64-linux" in (raised.value.hint or "")
    data = set_data_of(
        cuda(nsight_vse=[WINDOWS]), Release("cudnn", "9.1.0", {"cudnn_samples": ["source"]})
    )
    result = build(data, system="riscv64-linux", allow_hollow=True)
    assert result.platform.redist_system == UNSUPPORTED
    assert {entry.status for entry in result.packages.values()} == {"unsupported", "withheld"}
    assert all(entry.archive is None for entry in result.packages.values()), "not even sources"
    codes = {result.packages[name].reasons[0].code for name in ("cuda_nvcc", "nsight_vse")}
    assert codes == {"platform-not-published"}


@pytest.mark.parametrize("name", ["linux-x86-64", "linux_x86_64", "source", "linux-all", "../x"])
def test_unknown_platform_is_refused(name: str) -> None:
    for allow_hollow in (False, True):
        with pytest.raises(UnknownNameError, match="no platform is called"):
            build(DATA, platform=name, allow_hollow=allow_hollow)


def test_unpublished_platform_is_refused() -> None:
    with pytest.raises(UsageError, match=r"CUDA 13\.0\.2 is not published for") as raised:
        build(DATA, "13.0.2", JETSON)
    assert raised.value.hint == f"published: {SBSA}, {LINUX}, {WINDOWS}"


# -- archives: section 1.3


def of(*places: str, **more: object) -> "Release":
    return Release("r", "1.2.3", {"p": places}, more=more)


NOT_FOR_PLATFORM, NOT_FOR_CUDA = "platform-not-published", "variant-not-published"


@pytest.mark.parametrize(
    ("places", "platform", "cuda_label", "expected"),
    [
        ("source linux-all LINUX", LINUX, "12.9.1", "source"),
        ("linux-all LINUX", LINUX, "12.9.1", "linux-all"),
        ("linux-all WINDOWS", WINDOWS, "12.9.1", "WINDOWS"),
        ("linux-all", WINDOWS, "12.9.1", NOT_FOR_PLATFORM),
        ("LINUX", SBSA, "12.9.1", NOT_FOR_PLATFORM),
        ("JETSON", SBSA, "12.9.1", NOT_FOR_PLATFORM),
        ("LINUX", LINUX, "12.9.1", "LINUX"),
        # A variant for a patch is preferred to one for a minor, and that to one for a major.
        ("LINUX/cuda12.9.1 LINUX/cuda12.9 LINUX/cuda12", LINUX, "12.9.1", "LINUX/cuda12.9.1"),
        ("LINUX/cuda12.9.1 LINUX/cuda12.9 LINUX/cuda12", LINUX, "12.9.0", "LINUX/cuda12.9"),
        ("LINUX/cuda12.9 LINUX/cuda12", LINUX, "12.6.3", "LINUX/cuda12"),
        ("LINUX/cuda12.9", LINUX, "12.6.3", NOT_FOR_CUDA),
        ("LINUX/cuda12.9.0", LINUX, "12.9.1", NOT_FOR_CUDA),
        ("LINUX/cuda11 SBSA/cuda12", LINUX, "12.9.1", NOT_FOR_CUDA),
        ("LINUX/cuda1 LINUX/cuda120", LINUX, "12.0.1", NOT_FOR_CUDA),
        # Next to variants, a flat archive is not used.
        ("LINUX LINUX/cuda13", LINUX, "13.3.0", "LINUX/cuda13"),
        ("LINUX LINUX/cuda13", LINUX, "12.9.1", NOT_FOR_CUDA),
        ("source/cuda12 source/cuda13 LINUX/cuda12", SBSA, "13.3.0", "source/cuda13"),
        ("source/cuda13", LINUX, "12.9.1", NOT_FOR_CUDA),
        ("source LINUX/cuda13", LINUX, "12.9.1", "source"),
    ],
)
def test_archive_is_selected_by_platform_and_variant(
    places: str, platform: Platform, cuda_label: str, expected: str
) -> None:
    names = {"LINUX": LINUX, "SBSA": SBSA, "JETSON": JETSON, "WINDOWS": WINDOWS}
    for name, value in names.items():
        places, expected = places.replace(name, value), expected.replace(name, value)
    published = of(*places.split()).held.packages["p"]
    selected = select_archive(published, platform, Version.parse(cuda_label))
    if isinstance(selected, Absence):
        assert selected.code == expected
        assert selected.text.startswith("p ")
    else:
        variant = f"/{selected.variant}" if selected.variant else ""
        assert f"{selected.platform}{variant}" == expected


@pytest.mark.parametrize(
    ("place", "declared", "selected"),
    [(LINUX, ["12"], "variant-not-published"), (f"{LINUX}/cuda12", None, "cuda12")],
)
def test_declared_and_published_variants_may_differ(
    place: str, declared: list[str] | None, selected: str
) -> None:
    published = of(place, cuda_variant=declared).held.packages["p"]
    selection = select_archive(published, LINUX, Version.parse("12.9.1"))
    assert selected == (selection.code if isinstance(selection, Absence) else selection.variant)


# -- releases of CUDA: section 2.1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("12.9.0", "12.9.0"), ("12.9", "12.9.1"), ("13.0", "13.0.2"), ("12", "12.9.1")],
)
def test_find_cuda_accepts_label_or_prefix(text: str, expected: str) -> None:
    assert str(find_cuda(text, DATA)) == expected


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("12.7", "the nearest local releases: 12.6.3, 12.2.2, 12.9.0"),
        ("12.9.7", "the nearest local releases: 12.9.1, 12.9.0, 13.0.2"),
        ("14.0.0", "the nearest local releases: 13.3.0, 13.2.0"),
        ("10.2", "the nearest local release: 11.4.4"),
        ("14", "the nearest local releases: 13.3.0, 13.2.0"),
        ("twelve", f"local releases: {', '.join(map(str, DATA.cuda_labels))}"),
    ],
)
def test_missing_release_suggests_nearest(text: str, hint: str) -> None:
    with pytest.raises(UsageError, match="no local manifest of CUDA") as raised:
        find_cuda(text, DATA)
    assert raised.value.hint == hint


def test_early_manifests_are_skipped() -> None:
    label = Version.parse("11.2.0")
    early = read_manifest((FIXTURES / "early.json").read_bytes(), label=label)
    early_input = InputManifest("cuda", label, early, "0" * 64, is_overlay=False, packages={})
    modern = cuda().held
    data = set_data_of(cuda(), manifests={"cuda": {label: early_input, modern.label: modern}})
    assert [str(label) for label in newest_patches(data)] == ["12.9.1"]
    with pytest.raises(UsageError, match="has no hashes") as raised:
        build(data, "11.2.0")
    assert raised.value.hint == "the oldest local release with hashes is 12.9.1"
    with pytest.raises(UsageError, match=r"manifest of CUDA 11\.2\.0 has no hashes"):
        build(data, "11.2")
    (skipped,) = skipped_releases(data, [ALL])
    assert (skipped.cuda, skipped.reason) == (
        "11.2.0",
        "its manifest has no hashes, so no set can be built from it",
    )
    assert skipped_releases(data, []) == ()


def test_build_without_manifests_is_refused() -> None:
    data = set_data_of()
    for call in (lambda: build(data), lambda: newest_patches(data)):
        with pytest.raises(UsageError, match="no local CUDA manifest has hashes"):
            call()


# -- releases of the others: section 2.1


def chosen(releases: Sequence[Release], redist: str, cuda_label: str, platform: str) -> str | None:
    data = set_data_of(cuda(cuda_label, (LINUX, SBSA, JETSON)), *releases)
    return build(data, cuda_label, platform).redists[redist].release


TENSORRT = [
    Release("tensorrt", label, {"tensorrt": places})
    for label, places in {
        "10.7.0": [f"{platform}/cuda12" for platform in (LINUX, SBSA, JETSON)],
        "10.8.0": [f"{LINUX}/cuda12", f"{SBSA}/cuda12"],
        "10.13.0": [f"{LINUX}/cuda12", f"{SBSA}/cuda12"],
        "10.13.3": [f"{LINUX}/cuda12", f"{SBSA}/cuda13"],
        "10.14.1": [f"{LINUX}/cuda12", f"{LINUX}/cuda13"],
    }.items()
]


CUSPARSELT = [
    Release("cusparselt", label, {"libcusparse_lt": [LINUX]})
    for label in ("0.5.2", "0.6.3", "0.7.0", "0.7.1", "0.8.1", "0.9.0", "0.10.0")
]
NCCL = [
    Release("nccl", label, {"nccl": [LINUX]})
    for label in (
        *("2.28.9-cuda12.9", "2.29.2-cuda12.2", "2.29.2-cuda12.4", "2.29.2-cuda12.9"),
        *("2.29.2-cuda13.1", "2.31.2-cuda13.3"),
    )
]
CUDNN = [Release("cudnn", label, {"cudnn": [LINUX]}) for label in ("9.9.0", "9.10.2")]
CUTENSOR = [Release("cutensor", x, {"libcutensor": [LINUX]}) for x in ("0.10.0", "0.9.0")]


@pytest.mark.parametrize(
    ("releases", "cuda_label", "platform", "expected"),
    [
        (TENSORRT, "12.6.3", LINUX, "10.14.1"),
        (TENSORRT, "12.6.3", SBSA, "10.13.0"),
        (TENSORRT, "12.6.3", JETSON, "10.7.0"),
        (TENSORRT, "13.0.2", SBSA, "10.13.3"),
        (TENSORRT, "13.0.2", JETSON, None),
        (TENSORRT, "11.8.0", LINUX, None),
        # Versions are compared as numbers.
        (CUDNN, "12.9.1", LINUX, "9.10.2"),
        (CUTENSOR, "12.9.1", LINUX, "0.10.0"),
        # Policy has constraints.
        (CUSPARSELT, "11.8.0", LINUX, "0.5.2"),
        (CUSPARSELT, "12.0.1", LINUX, "0.6.3"),
        (CUSPARSELT, "12.6.3", LINUX, "0.6.3"),
        (CUSPARSELT, "12.8.1", LINUX, "0.7.1"),
        (CUSPARSELT, "12.9.1", LINUX, "0.8.1"),
        (CUSPARSELT, "13.0.2", LINUX, "0.10.0"),
        # The newest build for the same major and minor, or for a later minor, is selected.
        (NCCL, "12.9.1", LINUX, "2.29.2-cuda12.9"),
        (NCCL, "12.6.3", LINUX, "2.29.2-cuda12.4"),
        (NCCL, "12.0.1", LINUX, "2.29.2-cuda12.2"),
        (NCCL, "13.0.2", LINUX, "2.31.2-cuda13.3"),
        (NCCL, "13.2.0", LINUX, "2.29.2-cuda13.1"),
        (NCCL, "11.8.0", LINUX, None),
    ],
    ids=lambda value: value[0].redist if isinstance(value, list) else None,
)
def test_newest_supported_release_is_selected(
    releases: Sequence[Release], cuda_label: str, platform: str, expected: str | None
) -> None:
    for ordered in (releases, releases[::-1]):
        assert chosen(ordered, releases[0].redist, cuda_label, platform) == expected


def test_newer_releases_are_rejected_with_reasons() -> None:
    data = set_data_of(cuda(), *TENSORRT)
    result = build(data, platform=SBSA).redists["tensorrt"]
    assert result.mode == "auto"
    assert [(item.release, item.reason) for item in result.newer_rejected] == [
        ("10.14.1", f"tensorrt is not published for {SBSA}; published: {LINUX}"),
        ("10.13.3", f"tensorrt for {SBSA} is published for cuda13, not for CUDA 12.9.1"),
    ]
    assert all(item.is_unpublished for item in result.newer_rejected)


def test_release_that_policy_rejects_is_published() -> None:
    result = build(set_data_of(cuda("12.6.3"), *CUSPARSELT), "12.6.3").redists["cusparselt"]
    rejected = {item.release: item.is_unpublished for item in result.newer_rejected}
    assert rejected["0.8.1"] is False


@pytest.mark.parametrize("label", ["0.6.0", "0.6.1", "0.6.2", "0.6.3"])
def test_cusparselt_0_6_is_not_available_for_cuda_11(label: str) -> None:
    released = Release("cusparselt", label, {"libcusparse_lt": [LINUX]})
    for cuda_label in ("11.4.4", "11.8.0"):
        entry = build(set_data_of(cuda(cuda_label), released), cuda_label).packages
        assert entry["libcusparse_lt"].status == "unsupported"
        assert "CUDA 12.0 or newer" in entry["libcusparse_lt"].reasons[0].text


def test_pinned_release_is_kept_with_reasons_against_it() -> None:
    data = set_data_of(
        cuda("12.6.3"),
        *TENSORRT,
        Release("cusparselt", "0.8.1", {"libcusparse_lt": [LINUX]}),
        Release("cusparselt", "0.6.3", {"libcusparse_lt": [LINUX]}),
    )
    pins = {"tensorrt": "10.8.0", "cusparselt": "0.8.1"}
    result = build(data, "12.6.3", pins=pins)
    assert result.redists["tensorrt"].mode == "pinned"
    assert result.redists["tensorrt"].newer_rejected == ()
    assert result.packages["tensorrt"].release == "10.8.0"
    entry = result.packages["libcusparse_lt"]
    assert outline(entry) == ("broken", ["cuda-version-unsupported"])
    assert entry.reasons[0].text == (
        "cuSPARSELt 0.8 needs CUDA 12.9 or newer, but the set is for CUDA 12.6.3"
    )
    assert entry.archive is not None


def test_pinned_release_without_platform_is_unsupported() -> None:
    data = set_data_of(cuda(), *TENSORRT)
    result = package(data, "tensorrt", platform=SBSA, pins={"tensorrt": "10.14.1"})
    assert outline(result) == ("unsupported", ["platform-not-published"])
    assert (result.version, result.release) == ("10.14.1", "10.14.1")
    assert (result.archive, result.outputs, result.platforms) == (None, ("out",), (LINUX,))


@pytest.mark.parametrize(
    ("pins", "error", "hint"),
    [
        ({"tensort": "10.7.0"}, "no local redistributable is called 'tensort'", "tensorrt"),
        ({"tensorrt": "10.9.0"}, "no local manifest of tensorrt '10.9.0'", "10.8.0, 10.7.0"),
    ],
)
def test_unknown_pins_are_refused(pins: dict[str, str], error: str, hint: str) -> None:
    with pytest.raises(UsageError, match=error) as raised:
        build(set_data_of(cuda(), *TENSORRT), pins=pins)
    assert hint in (raised.value.hint or "")


def test_newer_labels_of_same_version_are_explained() -> None:
    result = build(set_data_of(cuda("12.6.3"), *NCCL), "12.6.3").redists["nccl"]
    reasons = {item.release: item.reason for item in result.newer_rejected}
    assert reasons == {
        "2.31.2-cuda13.3": "built for CUDA 13",
        "2.29.2-cuda13.1": "built for CUDA 13",
        "2.29.2-cuda12.9": "built for a CUDA 12 release other than the set's",
    }


def test_nccl_build_for_later_minor_is_noted() -> None:
    result = build(set_data_of(cuda("13.0.2"), cuda("13.2.0"), *NCCL), "13.0.2")
    (text,) = texts(result, "later-cuda")
    assert text == "2.31.2-cuda13.3 is built for CUDA 13.3, newer than the set's CUDA"


def test_archives_with_same_path_and_different_bytes_are_reported() -> None:
    data = set_data_of(cuda("12.9.1"), *NCCL)
    (warning,) = [d for d in build(data, "12.9.1").diagnostics if d.code == "path-clash"]
    assert (warning.level, warning.subject) == ("warning", "nccl")
    assert warning.text.startswith(
        "nccl 2.29.2-cuda12.2, 2.29.2-cuda12.4, 2.29.2-cuda13.1 has a different file at nccl/linux"
    )
    assert texts(build(set_data_of(cuda("12.9.1"), *NCCL[:1])), "path-clash") == []


def test_pin_built_for_another_cuda_is_unsupported() -> None:
    data = set_data_of(cuda("12.6.3"), *NCCL)
    result = package(data, "nccl", cuda="12.6.3", pins={"nccl": "2.29.2-cuda13.1"})
    assert (outline(result), result.archive) == (
        ("unsupported", ["cuda-version-unsupported"]),
        None,
    )
    assert result.reasons[0].text == "built for CUDA 13"


def test_libraries_for_other_cuda_releases_are_refused() -> None:
    folders = {"cuda_versions_in_lib": ("10.2", "11"), "unnested": {"10.2": {}, "11": {}}}
    nested = library("libcutensor.so.1").model_copy(update=folders)
    data = set_data_of(
        cuda(),
        Release("cutensor", "1.7.0", {"libcutensor": [LINUX]}, {"libcutensor": nested}),
        Release("cutensor", "1.6.0", {"libcutensor": [LINUX]}),
    )
    result = build(data).redists["cutensor"]
    assert result.release == "1.6.0"
    assert result.newer_rejected[0].reason == "its libraries are for CUDA 10.2, 11"
    pinned = package(data, "libcutensor", pins={"cutensor": "1.7.0"})
    assert (pinned.status, pinned.archive) == ("unsupported", None)
    assert pinned.reasons[0].source == "cutensor/feature_1.7.0.json"


def test_release_is_selected_by_main_package() -> None:
    """The samples of cuDNN are for every platform and do not make a release usable."""
    releases = [
        Release("cudnn", "9.2.0", {"cudnn": [f"{SBSA}/cuda12"], "cudnn_samples": ["source"]}),
        Release("cudnn", "9.1.0", {"cudnn": [f"{LINUX}/cuda12"]}),
        # Without a main package, any package that is not withheld is sufficient.
        Release("nvpl", "25.5", {"nvpl_blas": [SBSA], "mft": [LINUX]}),
        Release("nvpl", "25.1", {"nvpl_blas": [SBSA], "nvpl_fft": [LINUX]}),
    ]
    assert chosen(releases, "cudnn", "12.9.1", LINUX) == "9.1.0"
    assert chosen(releases, "nvpl", "12.9.1", LINUX) == "25.1"


# -- names: section 2.2


def test_set_names_follow_release() -> None:
    result = {label: build(DATA, label).cuda for label in ("12.6", "12.9.1", "13.2.0", "13.3.0")}
    names = ("12.6.3", "12.6", "12", "cudaPackages_12_6", "cuda12.6", ())
    assert tuple(result["12.6"].model_dump().values()) == names
    assert result["12.9.1"].aliases == ("cudaPackages_12", "cudaPackages")
    assert result["13.2.0"].aliases == ("cudaPackages_13",)
    assert result["13.3.0"].aliases == ()


def test_minor_name_belongs_to_newest_patch() -> None:
    newest, older = (build(DATA, label) for label in ("12.9.1", "12.9.0"))
    assert newest.cuda.attribute == "cudaPackages_12_9"
    assert (older.cuda.attribute, older.cuda.aliases) == ("cudaPackages_12_9_0", ())
    assert check_run([older, newest]) == [[], []]


def test_minor_name_belongs_to_newest_patch_for_platform() -> None:
    data = set_data_of(cuda("12.2.1", (LINUX, WINDOWS)), cuda("12.2.2", (LINUX,)))
    assert build(data, "12.2.1", LINUX).cuda.attribute == "cudaPackages_12_2_1"
    assert build(data, "12.2.1", WINDOWS).cuda.attribute == "cudaPackages_12_2"


def test_equal_set_names_of_two_patches_are_reported() -> None:
    newest, older = (build(DATA, label) for label in ("12.9.1", "12.9.0"))
    names = {"attribute": newest.cuda.attribute, "aliases": newest.cuda.aliases}
    claiming = older.model_copy(update={"cuda": older.cuda.model_copy(update=names)})
    problems, none = check_run([claiming, newest])
    assert [str(problem) for problem in problems] == [
        f"I25 {name}: is also the name of the set for CUDA 12.9.1"
        for name in ("cudaPackages_12_9", "cudaPackages_12", "cudaPackages")
    ]
    assert none == []


def test_renamed_package_keeps_other_name_as_alias() -> None:
    data = set_data_of(
        cuda("13.2.0", cuda_cccl=[LINUX]),
        cuda("13.3.0", cccl=[LINUX]),
        cuda("12.9.1"),
        cuda("13.4.0", cccl=[LINUX], cuda_cccl=[SBSA]),
    )
    for label, real, other in (("13.2.0", "cuda_cccl", "cccl"), ("13.3.0", "cccl", "cuda_cccl")):
        packages = build(data, label).packages
        assert (packages[real].alias_of, packages[other].alias_of) == (None, real)
        assert packages[other].archive == packages[real].archive
        assert packages[other].pname == real
    neither = build(data, "12.9.1").packages
    assert {neither[name].status for name in ("cccl", "cuda_cccl")} == {"unsupported"}
    assert neither["cccl"].alias_of is None
    both = build(data, "13.4.0").packages
    assert [both[name].status for name in ("cccl", "cuda_cccl")] == ["available", "unsupported"]


@pytest.mark.parametrize("platform", [LINUX, SBSA])
@pytest.mark.parametrize(("has_hashes", "real"), [(True, "cccl"), (False, None)])
def test_package_under_both_names_is_an_alias(
    platform: str, real: str | None, *, has_hashes: bool
) -> None:
    release = cuda("13.4.0", cccl=[LINUX]).held
    new = release.packages["cccl"]
    if not has_hashes:
        # Without hashes, the archives cannot be compared.
        new = new._replace(archives=tuple(a._replace(sha256=None) for a in new.archives))
    packages = {**release.packages, "cccl": new, "cuda_cccl": new._replace(name="cuda_cccl")}
    manifests = {"cuda": {release.label: replace(release, packages=packages)}}
    data = set_data_of(manifests=manifests, read_features=lambda *_: None)
    result = build(data, "13.4.0", platform).packages
    assert (result["cccl"].alias_of, result["cuda_cccl"].alias_of) == (None, real)


def test_chained_renames_resolve_to_published_name() -> None:
    renames = {old: rule(to=new, since="13.0") for old, new in itertools.pairwise("abc")}
    names = {"renames": renames}
    for published_name in "abc":
        data = set_data_of(cuda(packages={published_name: [LINUX]}), policies={"names": names})
        packages = build(data).packages
        assert {packages[name].alias_of for name in "abc" if name != published_name} == {
            published_name
        }


def test_aliases_exist_without_package() -> None:
    data = set_data_of(
        cuda("12.9.1"), Release("cusparselt", "0.8.1", {"libcusparse_lt": [f"{LINUX}/cuda12"]})
    )
    aliases = [package(data, "cusparselt", platform=platform) for platform in (LINUX, SBSA)]
    aliases.append(package(set_data_of(cuda()), "cusparselt"))
    assert [(entry.status, entry.alias_of) for entry in aliases] == [
        (status, "libcusparse_lt") for status in ("available", "unsupported", "unsupported")
    ]


def test_every_known_name_has_one_entry_in_every_set() -> None:
    data = set_data_of(
        cuda("12.9.1", cuda_memcheck=[LINUX]),
        cuda("13.0.2", cuda_crt=[LINUX], nsight_vse=[WINDOWS]),
        *TENSORRT,
    )
    sets = [
        build(data, label, platform) for label in ("12.9.1", "13.0.2") for platform in (LINUX, SBSA)
    ]
    names = [list(result.packages) for result in sets]
    assert names == [sorted(names[0])] * 4
    policy = {"cccl", "cusparselt", "mft", "libnvvm", "libcudla", "cuda_gdb", "libcudss", "nccl"}
    assert policy <= set(names[0])
    nowhere = sets[0].packages["libcudss"]
    assert (nowhere.status, nowhere.redist, nowhere.release) == ("unsupported", None, None)
    assert nowhere.reasons[0].text == "no local manifest contains libcudss"


def test_driver_packages_belong_to_cuda() -> None:
    """NVIDIA also publishes them separately, and CUDA 13.4 no longer includes them."""
    data = set_data_of(
        cuda("12.9.1", fabricmanager=[LINUX]),
        cuda("13.4.2"),
        Release("nvidia-driver", "595.45.04", {"fabricmanager": [LINUX], "libnvdrv": [LINUX]}),
    )
    result = build(data).packages
    assert (result["fabricmanager"].redist, result["fabricmanager"].release) == ("cuda", "12.9.1")
    assert result["libnvdrv"].redist == "nvidia-driver"
    assert build(data, "13.4.2").packages["fabricmanager"].status == "unsupported"


def test_package_in_two_redistributables_is_refused() -> None:
    for redist in ("cutensor", "mine"):
        data = set_data_of(
            cuda(),
            Release("cudnn", "9.1.0", {"cudnn": [LINUX]}),
            Release(redist, "9.1.0", {"cudnn": [LINUX]}),
        )
        with pytest.raises(UsageError, match=f"cudnn is in the manifests of cudnn and of {redist}"):
            build(data)
    data = set_data_of(cuda(libx=[LINUX]), Release("mine", "1.2.3", {"libx": [LINUX]}))
    with pytest.raises(UsageError, match="libx is in the manifests of cuda and of mine"):
        build(data)
