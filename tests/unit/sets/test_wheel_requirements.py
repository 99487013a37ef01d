"""Tests of what wheels require by Requires-Dist, and of policy's requirements on packages."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Run
from packaging.specifiers import SpecifierSet
from support.package_sets import example_set
from support.running import expect_output

from cudaredist.commands.build.report import BuildReport, SetOutcome
from cudaredist.commands.build.text import build_text
from cudaredist.formats.packageset import Diagnostic
from cudaredist.formats.policy import Requirement, RequirementPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.primitives import parse_label
from cudaredist.sets.bounds import is_within
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.wheel_projects import package_of_project
from cudaredist.wheels import lower_bound
from tools.wheel_requirements import PACKAGES, pinned_wheels


@pytest.fixture(scope="module")
def policy() -> RequirementPolicy:
    return read_own_file(Store(shipped_data()).read_policy("requirements"), RequirementPolicy)


def test_policy_has_requirements_of_all_pinned_wheels(policy: RequirementPolicy) -> None:
    pinned: dict[str, set[str]] = {}
    for wheel in pinned_wheels(Store(shipped_data(), "wheels")):
        pinned.setdefault(wheel.project, set()).add(str(wheel.version))
    assert pinned == {project: {*builds} for project, builds in policy.wheels.items()}


def contradictions(policy: RequirementPolicy, entry: Requirement) -> Iterator[str]:
    """Yield the wheels whose lowest accepted version of a package breaks a requirement."""
    for project, builds in policy.wheels.items():
        of_package = builds if package_of_project(project) == entry.package else {}
        for build, required in of_package.items():
            release = parse_label(".".join(build.split(".")[:3]))
            for other, text in required.items():
                bounds = (entry.needs_packages or {}).get(package_of_project(other))
                lowest = lower_bound(SpecifierSet(text))
                if bounds is None or lowest is None or not is_within(release, entry.releases):
                    continue
                if not is_within(parse_label(lowest), bounds):
                    yield f"{project} {build} accepts {other} {lowest}"


def test_requirements_of_policy_agree_with_pinned_wheels(policy: RequirementPolicy) -> None:
    entries = [entry for entry in policy.requirements if entry.needs_packages]
    assert {entry.package for entry in entries} - {"tensorrt"} <= PACKAGES
    found = {entry.reason: list(contradictions(policy, entry)) for entry in entries}
    assert {reason: texts for reason, texts in found.items() if texts} == {}


def doubtful(run: Run, *options: str) -> list[str]:
    arguments = ("build", "--cuda", "13.0.3", "--platform", "linux-x86_64", "--json", *options)
    diagnostics = json.loads(run(*arguments).stdout)["diagnostics"]
    return [
        each["text"]
        for each in diagnostics
        if each["code"] == "doubtful-version" and each["subject"] == "libcusolvermp"
    ]


def test_build_accepts_versions_in_requires_dist(run: Run) -> None:
    assert doubtful(run) == []


def test_build_warns_about_other_version_with_pin(run: Run) -> None:
    (text,) = doubtful(run, "--redist", "cublasmp=0.9.1")
    assert text.startswith("the wheel of libcusolvermp 0.9.1.9318.post1 requires nvidia-cublasmp-")
    assert text.endswith("; to select a version that fits, add `--redist cublasmp=0.10.0`")


NOTE = {"level": "note", "code": "later-cuda", "subject": "nccl", "text": "built for CUDA 13.4"}


def test_explain_set_prints_notes(run: Run) -> None:
    Path("set.json").write_bytes(example_set(diagnostics=[NOTE]).canonical())
    result = expect_output(run("explain", "set", "set.json"), 0)
    assert "note: nccl: built for CUDA 13.4" in result.stdout.splitlines()


def test_verbose_build_prints_notes() -> None:
    outcome = SetOutcome(
        cuda="13.0.3",
        platform="linux-x86_64",
        status="written",
        diagnostics=(Diagnostic.model_validate(NOTE),),
        exit_code=0,
    )
    report = BuildReport(output="build", sets=(outcome,), skipped=(), index=None, exit_code=0)
    line = "    note: nccl: built for CUDA 13.4"
    assert line in list(build_text(report, with_notes=True))
    assert line not in list(build_text(report))
