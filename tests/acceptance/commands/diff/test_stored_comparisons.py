"""Tests of diff: the reports in the cache, which are as good as new ones."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from support.patching import Patch

from cudaredist.commands.diff.report import (
    ApiChange,
    ApiCount,
    ApiDiffReport,
    Delta,
    DiffReport,
    FileChange,
    Move,
    PackageDelta,
    RunPathChange,
    VulnerabilityChange,
)
from cudaredist.commands.diff.stored_report import stored_report
from cudaredist.store.cache import Cache

SHIPPED = REPOSITORY / "data"
OLD, NEW = "2.28.9", "2.29.7"
SIDES = (f"nccl@{OLD}", f"nccl@{NEW}")
COMPARE = "cudaredist.commands.diff.diff_releases.compare_releases"
COMPARE_APIS = "cudaredist.commands.diff.api_changes.compare_apis"
PARAMETERS = pytest.mark.parametrize(
    ("command", "function"), [(("diff",), COMPARE), (("diff", "--api"), COMPARE_APIS)]
)


@pytest.fixture
def diff(run: Run, patch: Patch, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command with two releases of NCCL, whose files count as older than two seconds."""
    patch("cudaredist.store.documents._SETTLED_NS", -(10**12))
    monkeypatch.setenv("CUDAREDIST_CACHE_DIR", str(Path("cache").absolute()))
    for label in (OLD, NEW):
        for name in ("manifests/wheels/nccl/redistrib", "features/wheels/nccl/feature"):
            copy(f"{name}_{label}.json")
    for name in ("gpus", "nvcc_compat", "advisories", "api/nccl", "symbols/libnccl.so.2"):
        copy(f"{name}.json")
    return lambda *call: run(*call, "--data-dir", "data", "--no-shipped-data")


def copy(name: str) -> None:
    path = Path("data", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(SHIPPED / name, path)


@PARAMETERS
def test_same_comparison_is_read_from_the_cache(
    diff: Run, patch: Patch, command: tuple[str, ...], function: str
) -> None:
    calls = patch.count(function)
    forms = [(), ("--json",), ("--all",), ("--format", "markdown")]
    first = [diff(*command, *SIDES, *form).stdout for form in forms]
    assert calls.number == 1
    assert [diff(*command, *SIDES, *form).stdout for form in forms] == first
    shutil.rmtree("cache/folders")
    assert [diff(*command, *SIDES, *form).stdout for form in forms] == first
    assert calls.number == 2


@PARAMETERS
def test_changed_data_is_compared_again(
    diff: Run, patch: Patch, command: tuple[str, ...], function: str
) -> None:
    calls = patch.count(function)
    first = diff(*command, *SIDES).stdout
    path = Path("data/features/wheels/nccl", f"feature_{NEW}.json")
    path.write_bytes(path.read_bytes().replace(b'"libnccl.so.2"', b'"libnccl.so.9"'))
    second = diff(*command, *SIDES).stdout
    assert calls.number == 2
    assert ("+libnccl.so.9" in second) is (command == ("diff",))
    assert (second == first) is (command != ("diff",))


def test_other_options_are_compared_apart(diff: Run, patch: Patch) -> None:
    calls = patch.count(COMPARE)
    for sides in (SIDES, SIDES[::-1], (*SIDES, "--platform", "linux-sbsa")):
        assert diff("diff", *sides).stdout == diff("diff", *sides).stdout
    assert calls.number == 3


def test_release_without_feature_file_is_compared_each_time(diff: Run, patch: Patch) -> None:
    """Its files are those of the cached archives, whose change has no sign."""
    Path("data/features/wheels/nccl", f"feature_{NEW}.json").unlink()
    calls = patch.count(COMPARE)
    assert diff("diff", *SIDES).stdout == diff("diff", *SIDES).stdout
    assert calls.number == 2


def test_cache_that_cannot_be_written_has_no_further_warning(
    diff: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("file").touch()
    monkeypatch.setenv("CUDAREDIST_CACHE_DIR", str(Path("file/cache").absolute()))
    Path("temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(Path("temporary").absolute()))
    assert "warning: the index is in" in diff("diff", *SIDES).stderr
    assert "warning" not in diff("diff", *SIDES).stderr


def test_all_parts_of_a_report_are_stored(tmp_path: Path) -> None:
    delta = Delta(field="sonames", places=("linux-x86_64",), added=("a.so.2",), gone=("a.so.1",))
    count = ApiCount(status="removed", kind="function", count=2)
    change = ApiChange(
        status="changed",
        kind="function",
        name="f",
        header="f.h",
        package="p",
        old="void f(int)",
        new="void f(long)",
        advice=None,
    )
    vulnerability = VulnerabilityChange(
        cve="CVE-2025-23339",
        score=3.0,
        components=("nvdisasm",),
        packages=("p",),
        old="affected",
        new="fixed",
    )
    reports = (
        DiffReport(
            old="a",
            new="b",
            packages=(PackageDelta(package="p", status="changed", parts=("q",), deltas=(delta,)),),
            platforms=delta,
            moves=(Move(old="p", new="q", equal=("x/y",)),),
            files=(FileChange(status="gone", kind="headers", package="p", old="x.h", files=1),),
            run_paths=(RunPathChange(package="p", old=("$ORIGIN",), new=(), files=("p",)),),
            tables=(delta,),
            vulnerabilities=(vulnerability,),
            api=(count,),
            equal=1,
            notes=("a note",),
        ),
        ApiDiffReport(old="a", new="b", counts=(count,), changes=(change,)),
    )
    cache = Cache(tmp_path / "cache")
    for key, report in enumerate(reports):
        kind: type[Any] = type(report)
        first = stored_report(kind, f"{key:064}", cache, partial(reports.__getitem__, key))
        stored = stored_report(kind, f"{key:064}", cache, lambda: pytest.fail("not stored"))
        assert first == stored == report
        # Parts that are equal have equal hashes, unlike lists.
        assert hash(stored) == hash(report)
