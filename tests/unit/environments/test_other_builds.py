"""Tests of audit: other builds of packages for the CUDA major of an environment."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.binaries import elf
from support.environments import install, library
from support.programs import audit_data, known

from cudaredist.environments.audit_program import audit_report
from cudaredist.environments.read_program import ProgramReader
from cudaredist.formats.library_policy import Build
from cudaredist.programs.program import AuditRequirements
from cudaredist.programs.report import AuditFinding
from cudaredist.store.cache import Cache

RUNTIMES = {
    11: ("11.8.0", "nvidia-cuda-runtime-cu11"),
    12: ("12.4.1", "nvidia-cuda-runtime-cu12"),
    13: ("13.0.0", "nvidia-cuda-runtime"),
}
LIBRARIES = [
    known(f"libcudart.so.{major}", label, "cuda_cudart", project)
    for major, (label, project) in RUNTIMES.items()
]
MOONCAKE = Build(
    project="mooncake-cuda13",
    replaces=("mooncake",),
    cuda=13,
    versions=">=0.3",
    reason="it has another name",
    reference="its wheels",
)


def put_runtime(site: Path, major: int) -> None:
    label, project = RUNTIMES[major]
    soname = f"libcudart.so.{major}"
    install(site, project, f"{label}.7", {f"nvidia/cu{major}/lib/{soname}": library(soname)})


def findings(site: Path, builds: Sequence[Build] = ()) -> list[AuditFinding]:
    """Return the findings that count."""
    data = audit_data(LIBRARIES)
    policy = data.policy.model_copy(update={"builds": tuple(builds)})
    reader = ProgramReader(cache=Cache(site.with_suffix(".cache")), paths=[site])
    report = audit_report(reader.read_all(), data._replace(policy=policy), AuditRequirements())
    return [finding for finding in report.findings if finding.exit_code]


def user(major: int) -> bytes:
    return elf(needed=[f"libcudart.so.{major}"])


def test_package_with_another_name_for_a_major_is_replaced(tmp_path: Path) -> None:
    put_runtime(tmp_path, 13)
    install(tmp_path, "mooncake", "0.3.13", {"mooncake/engine.so": user(12)})
    (finding,) = findings(tmp_path, [MOONCAKE])
    words = "mooncake 0.3.13 is built for CUDA 12, and the environment has CUDA 13"
    assert words in finding.message
    assert finding.hint == "pip uninstall --yes mooncake && pip install 'mooncake-cuda13>=0.3'"


@pytest.mark.parametrize("releases", [(118, 121, 126), (121, 126)])
def test_package_with_older_files_only_has_a_later_version(
    tmp_path: Path, releases: tuple[int, ...]
) -> None:
    put_runtime(tmp_path, 13)
    files = {f"bnb/lib_cuda{release}.so": user(release // 10) for release in releases}
    install(tmp_path, "bitsandbytes", "0.45.0", files)
    (finding,) = findings(tmp_path)
    assert finding.hint == "pip install 'bitsandbytes>0.45.0'"


def test_packages_that_need_one_library_have_all_of_their_builds(tmp_path: Path) -> None:
    put_runtime(tmp_path, 13)
    install(tmp_path, "mooncake", "0.3.13", {"mooncake/engine.so": user(12)})
    install(tmp_path, "other", "1.0", {"other/a.so": user(12)})
    (finding,) = findings(tmp_path, [MOONCAKE])
    assert finding.hint == "pip install 'nvidia-cuda-runtime-cu12>=12.4.1.7'"
    other = MOONCAKE.model_copy(update={"project": "other", "replaces": (), "versions": ">=2"})
    (finding,) = findings(tmp_path, [MOONCAKE, other])
    words = "pip uninstall --yes mooncake && pip install 'mooncake-cuda13>=0.3' 'other>=2'"
    assert finding.hint == words
