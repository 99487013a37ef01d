"""Tests of the drivers for a CUDA release."""

from dataclasses import replace

import pytest
from support.set_inputs import build, cuda, set_data_of

from cudaredist.formats.driver_policy import DriverPolicy, LowestDriver, ReleaseDrivers, ReleasePtx
from cudaredist.formats.packageset import DriverVersion, SetDriver
from cudaredist.primitives import Version, parse_label
from cudaredist.tables.release_drivers import driver_facts

LINUX, WINDOWS, PUBLISHED = "linux-x86_64", "windows-x86_64", "575.57.08"
POLICY = DriverPolicy(
    schema_version=1,
    lowest={"12": LowestDriver(version="525", reason="so it is written", reference="Guide")},
)


@pytest.mark.parametrize(
    ("label", "platform", "platforms", "published", "native", "lowest"),
    [
        pytest.param("12.9.1", LINUX, (LINUX,), PUBLISHED, PUBLISHED, "525.60.13", id="all"),
        pytest.param("12.9.1", LINUX, (), None, PUBLISHED, "525.60.13", id="not in the manifest"),
        pytest.param(
            *("12.9.1", LINUX, ("linux-sbsa",), None, PUBLISHED, "525.60.13"),
            id="for another platform",
        ),
        pytest.param("13.0.2", LINUX, (LINUX,), PUBLISHED, "580.95.05", "580", id="another major"),
        pytest.param("12.9.1", WINDOWS, (WINDOWS,), PUBLISHED, "576.57", "528.33", id="Windows"),
        pytest.param("13.0.2", WINDOWS, (WINDOWS,), PUBLISHED, None, "580", id="unknown"),
    ],
)
def test_package_set_states_drivers_of_release(
    label: str,
    platform: str,
    platforms: tuple[str, ...],
    published: str | None,
    native: str | None,
    lowest: str,
) -> None:
    packages = {"nvidia_driver": platforms} if platforms else {}
    release = cuda(label, [platform], packages=packages)._replace(
        versions={"nvidia_driver": "575.57.08"}
    )
    package_set = build(set_data_of(release), label, platform)
    source = f"nvidia_driver in redistrib_{label}.json"
    assert package_set.driver == SetDriver(
        published=DriverVersion(version=published, source=source) if published else None,
        native=DriverVersion(version=native, source="policy/drivers.json") if native else None,
        lowest=DriverVersion(version=lowest, source="policy/drivers.json"),
    )


def test_several_drivers_of_a_manifest_are_not_confused() -> None:
    label = parse_label("12.9.1")
    platforms = ("linux-sbsa", "linux-x86_64")
    data = set_data_of(cuda("12.9.1", packages={"nvidia_driver": platforms}))
    manifest = data.manifests["cuda"][label]
    driver = manifest.packages["nvidia_driver"]
    first, second = map(Version.parse, ("575.57.08", "575.60.01"))
    sbsa, x86 = sorted(
        (archive._replace(version=first) for archive in driver.archives), key=lambda a: a.platform
    )
    archives = (sbsa, x86, x86._replace(version=second))
    driver = driver._replace(versions=(first, second), archives=archives)
    changed = replace(manifest, packages={**manifest.packages, "nvidia_driver": driver})
    data = replace(data, manifests={**data.manifests, "cuda": {label: changed}})
    made = {platform: build(data, "12.9.1", platform).driver for platform in platforms}
    published = {p: one.published and one.published.version for p, one in made.items() if one}
    assert published == {"linux-sbsa": "575.57.08", "linux-x86_64": None}
    statements = [fact.statement for fact in driver_facts({label: (driver,)}, "10.2", POLICY)]
    assert statements == [
        "published with CUDA 12.9.1: driver 575.57.08 (linux-sbsa, linux-x86_64)",
        "published with CUDA 12.9.1: driver 575.60.01 (linux-x86_64)",
    ]


def test_package_set_without_policy_has_no_lowest_driver() -> None:
    changes = {"lowest": {"12": None}, "releases": {"12.9.1": None}}
    data = set_data_of(cuda(), policies={"drivers": changes})
    package_set = build(data)
    assert package_set.driver == SetDriver(published=None, lowest=None)


def test_driver_facts_name_manifest_and_document() -> None:
    packages = {"nvidia_driver": ("linux-sbsa", "linux-x86_64"), "cuda_compat": ("linux-x86_64",)}
    versions = {"nvidia_driver": "575.57.08", "cuda_compat": "12.9.40580548"}
    release = cuda(packages=packages)._replace(versions=versions)
    manifests = {parse_label("12.9.1"): release.held.manifest.packages}
    facts = {fact.name: fact for fact in driver_facts(manifests, "12.9", POLICY)}
    assert facts.keys() == {"driver.nvidia_driver", "driver.cuda_compat", "driver.lowest"}
    driver = facts["driver.nvidia_driver"]
    assert driver.statement == (
        "published with CUDA 12.9.1: driver 575.57.08 (linux-sbsa, linux-x86_64)"
    )
    assert (driver.basis, driver.source) == ("derived", "redistrib_12.9.1.json")
    lowest = facts["driver.lowest"]
    assert (lowest.value, lowest.basis) == ("525", "documented")
    assert lowest.source == "Guide (policy/drivers.json)"


def test_driver_facts_state_release_on_both_systems() -> None:
    release = ReleaseDrivers(linux="575.57.08", windows="576.57", reference="Notes")
    policy = POLICY.model_copy(update={"releases": {"12.9.1": release, "12.8.0": release}})
    native, _ = driver_facts({}, "12.9", policy)
    assert native.statement == (
        "lowest driver with all features of CUDA 12.9.1: 575.57.08 on Linux, 576.57 on Windows"
    )
    assert (native.value, native.source) == ("575.57.08", "Notes (policy/drivers.json)")


def test_driver_facts_state_ptx_version_of_release() -> None:
    ptx = ReleasePtx(version="8.8", reference="PTX images in a library")
    policy = POLICY.model_copy(update={"ptx": {"12.9": ptx}, "lowest": {}})
    (fact,) = driver_facts({}, "12.9", policy)
    assert (fact.name, fact.value) == ("driver.ptx", "8.8")
    assert fact.statement.startswith("PTX 8.8: older drivers")
    assert fact.source == "PTX images in a library (policy/drivers.json)"


def test_driver_facts_without_source_are_absent() -> None:
    manifests = {parse_label("10.2.0"): cuda("10.2.0").held.manifest.packages}
    assert list(driver_facts(manifests, "10.2", POLICY)) == []
