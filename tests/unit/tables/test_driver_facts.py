"""Tests of driver facts: releases, compatibility packages and GPUs, with the shipped policy."""

import json
import re

import pytest
from conftest import REAL_MANIFESTS, REPOSITORY

from cudaredist.errors import UnknownNameError
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.tables import Gpus
from cudaredist.primitives import Version, label_of_manifest_name
from cudaredist.tables.driver_support import (
    Support,
    System,
    parse_driver,
    ptx_support,
    release_of_ptx,
    support_of,
)
from cudaredist.tables.explain_driver import driver_answer, explain_driver, gpu_facts

POLICY = DriverPolicy.model_validate_json((REPOSITORY / "data/policy/drivers.json").read_bytes())
GPUS = Gpus.model_validate_json((REPOSITORY / "data/gpus.json").read_bytes())
DRIVERS = {
    label_of_manifest_name(path.name): version
    for path in sorted((REAL_MANIFESTS / "compute/cuda/redist").glob("redistrib_*.json"))
    if (version := json.loads(path.read_bytes()).get("nvidia_driver", {}).get("version"))
}


@pytest.mark.parametrize(
    ("driver", "cuda", "system", "support"),
    [
        ("580.95.05", "13.0.2", "linux", "native"),
        ("580.82.07", "13.0.2", "linux", "minor"),
        ("580.95", "13.0.2", "linux", "native"),
        ("580", "13.0.2", "linux", "native"),
        ("580.95.05", "13.3.1", "linux", "minor"),
        ("575.57.08", "13.0.0", "linux", "none"),
        ("570.26", "12.8.0", "linux", "native"),
        ("570.25", "12.8.0", "linux", "minor"),
        ("610.43.02", "11.0.2", "linux", "native"),
        ("525.60.12", "12.9.1", "linux", "none"),
        ("450.51.05", "11.0.2", "linux", "native"),
        ("450.51.06", "11.8.0", "linux", "none"),
        ("576.57", "12.9.1", "windows", "native"),
        ("576.56", "12.9.1", "windows", "minor"),
        ("527.41", "12.0.0", "windows", "native"),
        ("527.41", "12.0.1", "windows", "none"),
        # No source states a driver of these releases: those before and after are the bounds.
        ("616.10", "13.3.1", "windows", "some"),
        ("545.23.08", "12.3.2", "linux", "some"),
        ("525.60.13", "12.3.2", "linux", "minor"),
        ("600", "12.3.2", "linux", "native"),
        ("600", "13.0.3", "linux", "native"),
        ("600", "13.1.2", "linux", "native"),
        ("610.43.02", "14.0.0", "linux", "unknown"),
    ],
)
def test_driver_supports_release(driver: str, cuda: str, system: System, support: Support) -> None:
    assert support_of(Version.parse(driver), Version.parse(cuda), system, POLICY) == support


@pytest.mark.parametrize(
    ("driver", "ptx", "system", "support"),
    [
        ("580.65.06", "9.0", "linux", "native"),
        ("580", "9.0", "linux", "native"),
        ("580.65.06", "9.1", "linux", "none"),
        ("580.65.06", "9.5", "linux", "none"),
        ("575.57.08", "9.0", "linux", "none"),
        ("530.30.02", "8.1", "linux", "native"),
        ("525.60.13", "8.1", "linux", "none"),
        ("555.42.02", "8.5", "linux", "native"),
        ("610.43.02", "9.3", "linux", "native"),
        ("610.43.02", "9.5", "linux", "unknown"),
        ("576.57", "8.8", "windows", "native"),
        ("571.96", "8.8", "windows", "none"),
    ],
)
def test_driver_compiles_ptx_of_its_release(
    driver: str, ptx: str, system: System, support: Support
) -> None:
    version = Version.parse(ptx)
    assert ptx_support(Version.parse(driver), version, system, POLICY) == support


@pytest.mark.parametrize(
    ("ptx", "release"),
    [("8.1", "12.1"), ("8.5", "12.5"), ("8.7", "12.8"), ("9.0", "13.0"), ("9.3", "13.3")],
)
def test_ptx_version_has_its_first_release(ptx: str, release: str) -> None:
    assert release_of_ptx(Version.parse(ptx), POLICY) == release
    assert POLICY.ptx[release].version == ptx


def test_version_of_ptx_after_the_last_release_is_unknown() -> None:
    assert release_of_ptx(Version.parse("99.0"), POLICY) is None


@pytest.mark.parametrize(
    ("branch", "packages", "dropped", "kept"),
    [
        ("470", (), (), ("Kepler", "Maxwell", "Pascal", "Volta")),
        ("570", ("12.9", "13.0", "13.1", "13.2", "13.3", "13.4"), ("Kepler",), None),
        ("575", (), ("Kepler",), ("Maxwell", "Pascal", "Volta")),
        ("580", ("13.1", "13.2", "13.3", "13.4"), ("Kepler",), ("Maxwell", "Pascal", "Volta")),
        ("590", ("13.2", "13.3", "13.4"), ("Kepler", "Maxwell", "Pascal", "Volta"), ()),
    ],
)
def test_branch_has_packages_and_gpus(
    branch: str, packages: tuple[str, ...], dropped: tuple[str, ...], kept: tuple[str, ...] | None
) -> None:
    facts = {fact.name: fact for fact in explain_driver(branch, POLICY)[-1].facts}
    assert facts["driver.forward"].value == (packages or None)
    assert ("the end of its life" in facts["driver.forward"].statement) is not bool(packages)
    families = {
        name: tuple(str(item).split()[0] for item in fact.value or ())  # type: ignore[union-attr]
        for name, fact in facts.items()
    }
    assert families.get("driver.dropped", ()) == dropped
    assert kept is None or families.get("driver.supported", ()) == kept


def test_gpus_with_another_source_have_their_own_fact() -> None:
    volta = POLICY.last_branches["Volta"].model_copy(update={"reference": "another document"})
    policy = POLICY.model_copy(update={"last_branches": POLICY.last_branches | {"Volta": volta}})
    facts = explain_driver("590", policy)[-1].facts
    dropped = [fact for fact in facts if fact.name == "driver.dropped"]
    by_source = {"another document" in fact.source: fact.value for fact in dropped}
    assert by_source == {
        True: ("Volta (until 580)",),
        False: ("Kepler (until 470)", "Maxwell (until 580)", "Pascal (until 580)"),
    }


def test_release_without_stated_driver_has_reason() -> None:
    _, windows, _ = explain_driver("610.43", POLICY)
    some = next(fact for fact in windows.facts if fact.name == "driver.windows.some")
    assert "13.0.2" in (some.value or ())  # type: ignore[operator]
    assert "features of 13.0.0, 13.0.1, 13.0.2" in (some.reason or "")


@pytest.mark.parametrize(
    ("driver", "linux", "windows"),
    [
        (
            "535",
            "Driver 535 on Linux runs CUDA 11.0 to 12.2 with all features; 12.3 to 12.9 with "
            "limited features; 13.0 to 13.4 with cuda_compat; 13.5 with cuda_compat is not "
            "documented.",
            "Driver 535 on Windows runs CUDA 11.0 to 12.1 with all features; 12.2 to 12.9 with "
            "limited features; not 13.0 to 13.5.",
        ),
        (
            "580.82.07",
            "Driver 580.82.07 on Linux runs CUDA 11.0 to 13.0.1 with all features; 13.0.2 to 13.3 "
            "with limited features.",
            "Driver 580.82.07 on Windows runs CUDA 11.0 to 12.9 with all features; 13.0 to 13.3 "
            "(whether with all features is unknown).",
        ),
        (
            "100",
            "Driver 100 on Linux runs no known CUDA release (11.0 to 13.3).",
            "Driver 100 on Windows runs no known CUDA release (11.0 to 13.3).",
        ),
    ],
)
def test_answer_names_ranges_of_releases(driver: str, linux: str, windows: str) -> None:
    newer = map(Version.parse, ("13.4.3", "13.5.0")) if driver == "535" else ()
    assert driver_answer(driver, POLICY, [*newer]).splitlines() == [linux, windows]


def test_releases_of_a_fact_are_ranges_in_words() -> None:
    (native, *_) = explain_driver("535", POLICY)[0].facts
    assert native.statement == "CUDA releases that run with all features: 11.0 to 12.2"
    assert len(native.value or ()) > 20  # type: ignore[arg-type]


def test_release_without_documented_driver_is_listed_by_its_major() -> None:
    releases = [Version.parse(text) for text in ("12.3.2", "13.4.3", "14.0.0")]
    facts = {fact.name: fact for fact in explain_driver("575.57.08", POLICY, releases)[0].facts}
    for support, label in (("native", "12.3.2"), ("none", "13.4.3"), ("unknown", "14.0.0")):
        assert label in (facts[f"driver.linux.{support}"].value or ())  # type: ignore[operator]
    assert "features of 12.3.2, but a later" in (facts["driver.linux.native"].reason or "")


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("abc", "580.95.05"),
        ("58", "580.95.05"),
        ("580.", "did you mean 580?"),
        ("580.95-1", "did you mean 580.95.05?"),
        ("", "580.95.05"),
        ("v580", "did you mean 580?"),
    ],
)
def test_invalid_driver_is_refused(name: str, suggested: str) -> None:
    with pytest.raises(UnknownNameError, match="no driver is called") as refusal:
        parse_driver(name, POLICY)
    assert suggested in (refusal.value.hint or "")


def test_gpu_names_first_driver_and_last_branch() -> None:
    pascal, hopper = (
        {fact.name: fact.value for fact in gpu_facts(GPUS.capabilities[name], POLICY)}
        for name in ("6.0", "9.0a")
    )
    assert pascal["driver.last_branch"] == "580"
    assert hopper == {"driver.first": "525.60.13"}


@pytest.mark.parametrize("name", ["7.2", "8.7", "11.0"])
def test_jetson_has_no_drivers_of_desktops(name: str) -> None:
    assert list(gpu_facts(GPUS.capabilities[name], POLICY)) == []


def test_every_version_has_reference() -> None:
    references = [entry.reference for entry in POLICY.releases.values()]
    references += [entry.reference for entry in POLICY.lowest.values()]
    references += [entry.reference for entry in POLICY.forward.values()]
    assert all(reference.startswith("NVIDIA, ") for reference in references)
    assert all(re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", label) for label in POLICY.releases)


@pytest.mark.real
@pytest.mark.parametrize("label", DRIVERS or [None])
def test_published_driver_is_not_lower_than_documented(label: Version | None) -> None:
    if label is None:
        pytest.skip(f"nothing at {REAL_MANIFESTS}")
    published, release = Version.parse(DRIVERS[label]), POLICY.releases.get(str(label))
    assert published >= Version.parse(POLICY.lowest[str(label.components[0])].version)
    if release is not None and release.linux is not None:
        assert published >= Version.parse(release.linux)
