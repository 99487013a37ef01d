"""Tests of the reader of bulletins, and of the states of packages and drivers."""

import pytest
from support.bulletins import HOSTILE, POLICY, TOOLKIT, bulletin, cve_record, known, read

from cudaredist.errors import ContentError
from cudaredist.formats.advisories import AdvisoryPolicy
from cudaredist.primitives import Version, parse_label
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.known_vulnerabilities import known_vulnerabilities
from cudaredist.tables.advisories.products import is_undecided, product_called
from cudaredist.tables.advisories.states import KnownVulnerabilities
from cudaredist.tables.advisories.version_texts import numbers_of, read_versions

SHIPPED = Store(shipped_data())
CVE = "CVE-2030-1000"


def state(
    vulnerabilities: KnownVulnerabilities,
    package: str,
    label: str,
    platform: str | None = "linux-x86_64",
    redist: str = "cuda",
) -> tuple[str, str | None] | None:
    """Return the only state of a package, and the fixed version."""
    states = vulnerabilities.of_package(redist, package, parse_label(label), platform)
    return (states[0].state, states[0].fixed) if states else None


@pytest.mark.parametrize(
    ("affected", "fixed", "states"),
    [
        ("All versions prior to 11.8", "11.8", {"11.7.1": "a", "11.8.0": "f"}),
        (
            "All versions prior to CUDA Toolkit 11.6 Update 2",
            "11.6 Update 2",
            {"11.6.1": "a", "11.6.2": "f"},
        ),
        (
            "All versions prior to CUDA Toolkit v12.4",
            "CUDA Toolkit v12.4U1",
            {"12.3.2": "a", "12.4.0": "?", "12.4.1": "f"},
        ),
        (
            "All versions up to and including CUDA Toolkit 12.6U1",
            "CUDA Toolkit 12.6U2",
            {"12.6.0": "a", "12.6.1": "a", "12.6.2": "f", "12.6.3": "f"},
        ),
        (
            "All versions up to CUDA Toolkit 12.8",
            "CUDA Toolkit 12.8",
            {"12.6.3": "a", "12.8.0": "f"},
        ),
        ("v0 - v10.16.1", "v11.0", {"10.16.1": "a", "10.16.2": "?", "11.0.0": "f"}),
        ("0.0 to 4.5.2", "4.5.3", {"4.5.2": "a", "4.5.3": "f"}),
        (
            "All versions prior to nvJPEG2000 v0.7.x",
            "nvJPEG2000 v0.7.x",
            {"0.6.9": "a", "0.7.0": "f"},
        ),
        ("0.8.0", "0.8.1", {"0.7.0": "?", "0.8.0": "a", "0.8.1": "f"}),
        ("Some versions", "13.1", {"13.0.0": "?"}),
        ("All versions prior to 13.0 and 12.9", "a later one", {"12.0.0": "?", "13.5.0": "?"}),
    ],
)
def test_stated_versions_have_one_meaning(
    affected: str, fixed: str, states: dict[str, str]
) -> None:
    row = "Linux", "NVIDIA CUDA Toolkit", affected, fixed
    short = {"affected": "a", "fixed": "f", "unknown": "?"}
    one = known(row)
    found = {label: short[one.of_release("cuda", parse_label(label))[CVE]] for label in states}
    assert found == states


def test_driver_texts_of_vgpu_releases_are_inclusive() -> None:
    text = "535.154.02(All versions up to and including vGPU 16.3)"
    versions = read_versions([text], ["535.161.05(vGPU 16.4)"], "9001", POLICY)
    assert versions.affected[0].contains(numbers_of(Version.parse("535.154.02")))
    assert not versions.affected[0].contains(numbers_of(Version.parse("535.161.05")))
    assert [fixed.text for fixed in versions.fixed] == ["535.161.05"]
    assert not versions.unreadable


def test_toolkit_bulletin_states_nothing_about_other_redistributables() -> None:
    shipped = known_vulnerabilities(SHIPPED)
    for redist, label in {"cudnn": "9.0.0", "nccl": "2.20.5", "cutensor": "2.0.1"}.items():
        assert not shipped.of_package(redist, redist, parse_label(label))
    assert state(known(), "cudnn", "9.0.0", redist="cudnn") is None


def test_bulletin_5596_is_about_nvjpeg2000_not_nvjpeg() -> None:
    shipped = known_vulnerabilities(SHIPPED)
    of_library = shipped.of_package("nvjpeg2000", "libnvjpeg_2k", parse_label("0.8.0"))
    own = {one.cve for one in of_library if one.vulnerability.bulletin == "5596"}
    assert own == {f"CVE-2024-014{digit}" for digit in "2345"}
    assert {one.state for one in of_library if one.cve in own} == {"affected"}
    for label in ("11.8.0", "12.8.0"):
        assert own.isdisjoint(
            one.cve for one in shipped.of_package("cuda", "libnvjpeg", parse_label(label))
        )


def test_component_decides_the_packages() -> None:
    one = known()
    assert state(one, "cuda_cuobjdump", "13.0.2") == ("affected", "13.1.0")
    assert state(one, "cuda_cuobjdump", "13.1.0") == ("fixed", "13.1.0")
    assert state(one, "libcublas", "13.0.2") == ("not-affected", None)
    assert state(one, "cuda_nvcc", "13.0.2") == ("not-affected", None)


def test_bulletin_without_component_gives_unknown() -> None:
    one = known(description="The CUDA Toolkit contains a vulnerability.")
    for package in ("cuda_cuobjdump", "libcublas"):
        assert state(one, package, "13.0.2") == ("unknown", "13.1.0")
        assert state(one, package, "13.1.0") == ("fixed", "13.1.0")


@pytest.mark.parametrize("text", ["nvJPEG2000 has one", "xcuobjdump", "cuobjdump-like"])
def test_component_name_inside_other_word_is_no_component(text: str) -> None:
    assert state(known(description=text), "libnvjpeg", "13.0.2") == ("unknown", "13.1.0")


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("linux-x86_64", {"linux-x86_64"}),
        ("Linux x86_64", {"linux-x86_64"}),
        ("Windows", {"windows-x86_64"}),
        ("Windows, Linux", {"linux-x86_64", "linux-sbsa", "linux-aarch64", "windows-x86_64"}),
        ("Linux sbsa Jetson", {"linux-sbsa", "linux-aarch64"}),
        ("All", {"linux-x86_64", "linux-sbsa", "linux-aarch64", "windows-x86_64"}),
    ],
)
def test_stated_platform_limits_the_affected_ones(platform: str, expected: set[str]) -> None:
    one = known((platform, *TOOLKIT[1:]))
    known_platforms = ("linux-x86_64", "linux-sbsa", "linux-aarch64", "windows-x86_64")
    states = {p: state(one, "cuda_cuobjdump", "13.0.0", p) for p in known_platforms}
    affected = {p for p, found in states.items() if found and found[0] == "affected"}
    assert affected == expected


def test_other_architecture_of_stated_system_is_unknown() -> None:
    one = known(("Linux x86_64", *TOOLKIT[1:]))
    assert state(one, "cuda_cuobjdump", "13.0.0", "linux-sbsa") == ("unknown", None)
    assert state(one, "cuda_cuobjdump", "13.0.0", "windows-x86_64") == ("not-affected", None)


def test_description_for_other_system_than_table_is_unknown_without_decision() -> None:
    one = known(description="The CUDA Toolkit for Windows has a vulnerability in cuobjdump.")
    assert state(one, "cuda_cuobjdump", "13.0.0", "linux-x86_64") == ("unknown", None)
    assert state(one, "cuda_cuobjdump", "13.0.0", "windows-x86_64") == ("affected", "13.1.0")


@pytest.mark.parametrize(
    ("name", "redist"),
    [
        ("NVIDIA CUDA Toolkit", "cuda"),
        ("CUDA  toolkit", "cuda"),
        ("nvJPEG2000 Library", "nvjpeg2000"),
        ("NVIDIA cuDNN", "cudnn"),
        ("NVIDIA TensorRT", "tensorrt"),
        ("TensorRT-LLM", None),
        ("NVIDIA TensorRT LLM", None),
        ("NVIDIA CV-CUDA", None),
        ("Nsight Graphics", None),
        ("NVIDIA Container Toolkit", None),
        ("NVIDIA DALI", None),
        ("Triton Inference Server", None),
    ],
)
def test_only_exact_product_names_are_ours(name: str, redist: str | None) -> None:
    product = product_called(name, POLICY)
    assert (product and product.redist) == redist


def test_bulletin_of_other_product_has_no_vulnerabilities() -> None:
    document = read(bulletin(rows=[("Linux", "TensorRT-LLM", "0.1", "0.2")]))
    assert not document.vulnerabilities
    assert document.bulletin.unmapped == ("TensorRT-LLM",)


def test_driver_states_depend_on_branch_and_system() -> None:
    one = known(
        ("Linux(R535)", "Tesla", "All driver versions prior to 535.161.07", "535.161.07"),
        ("Linux(R550)", "Tesla", "All driver versions prior to 550.54.14", "550.54.14"),
        ("Linux(R535 vGPU 16)", "Guest driver", "535.1(All versions)", "600.1"),
    )
    drivers = {
        "535.104": "affected",
        "535.161.07": "fixed",
        "550.40": "affected",
        "545.10": "unknown",
        "525.10": "unknown",
        "580.10": "fixed",
    }
    for driver, expected in drivers.items():
        assert [s.state for s in one.of_driver(Version.parse(driver), "linux")] == [expected]
    windows = one.of_driver(Version.parse("535.104"), "windows")
    assert [s.state for s in windows] == ["not-affected"]
    fixed = one.of_driver(Version.parse("535.104"), "linux")[0].fixed
    assert fixed == "535.161.07"


def test_driver_bulletin_is_not_about_packages() -> None:
    one = known(("Linux(R535)", "Tesla", "All driver versions prior to 535.2", "535.2"))
    assert one.redists() == ()


def test_differing_cve_record_is_a_fact() -> None:
    other = ("Windows, Linux", "NVIDIA CUDA Toolkit", "All versions prior to 12.0", "")
    document = read(bulletin(), {CVE: cve_record(CVE, [other])})
    assert document.vulnerabilities[0].differences == ("containers.cna.affected",)
    same = read(bulletin(), {CVE: cve_record(CVE, [TOOLKIT])})
    assert same.vulnerabilities[0].differences == ()


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_bulletin_is_invalid(data: bytes) -> None:
    with pytest.raises(ContentError) as caught:
        read(data)
    assert caught.value.message.replace("\n", "").isprintable()


def test_escape_sequences_in_descriptions_are_not_stored() -> None:
    document = bulletin(description="\x1b[31m in cuobjdump\t")
    document["document"]["title"] = "\x1b]0;title\x07"
    own = read(document).vulnerabilities[0]
    assert [mention.text for mention in own.components] == ["cuobjdump"]
    assert b"\\u001b" not in own.canonical()


def test_shipped_policy_has_a_reason_for_each_decision() -> None:
    assert isinstance(POLICY, AdvisoryPolicy)
    shipped = known_vulnerabilities(SHIPPED)
    relevant = {one.bulletin for one in shipped.advisories.vulnerabilities}
    assert POLICY.reviewed == {
        number: one.sha256
        for number, one in shipped.advisories.bulletins.items()
        if number in relevant
    }
    unreadable = {
        text
        for one in shipped.advisories.vulnerabilities
        for row in one.versions
        for text in read_versions(row.affected, row.fixed, one.bulletin, POLICY).unreadable
    }
    assert not unreadable
    unmapped = {name for one in shipped.advisories.bulletins.values() for name in one.unmapped}
    assert not [name for name in unmapped if is_undecided(name, POLICY)]
