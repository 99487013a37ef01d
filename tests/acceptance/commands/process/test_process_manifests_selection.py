"""Tests of selecting archives, and of --check."""

import json
from pathlib import Path

import pytest
from conftest import Run
from support.patching import Patch
from support.processing import FEATURES, archives_read, entry, features
from support.releases import Files, publish, put, release
from support.running import expect_error, expect_output, report
from support.server import FaultServer

from cudaredist.features.derive import RULES

RULES_LINE = f'"rules": {RULES}'.encode()

# -- selection


@pytest.mark.parametrize(
    ("options", "examined"),
    [
        (["--platform", "linux-sbsa"], 2),
        (["--package", "cuda_cccl"], 2),
        (["--package", "cuda_cccl", "--platform", "linux-sbsa"], 1),
    ],
)
def test_filtered_run_adds_features_and_keeps_others(
    cuda_archives: FaultServer, process: Run, options: list[str], examined: int
) -> None:
    result = expect_output(process(*options, "--json"), 0)
    assert report(result)["manifests"][0]["examined"] == examined
    assert archives_read(cuda_archives) == examined
    left_out = entry("cuda_cudart", "linux-x86_64")
    assert left_out["status"] == "not-examined"
    assert left_out["reason"] == f"excluded by {options[0]}"
    assert process().exit_code == 0
    full = FEATURES.read_bytes()
    assert archives_read(cuda_archives) == 5
    process(*options)
    assert FEATURES.read_bytes() == full


def test_filtered_run_restores_unselected_features_from_cache(
    cuda_archives: FaultServer, process: Run
) -> None:
    process()
    full = FEATURES.read_bytes()
    for broken in (full[:-3], b"", full.replace(RULES_LINE, b'"rules": 0')):
        FEATURES.write_bytes(broken)
        assert process("--package", "cuda_cccl").exit_code == 0
        assert FEATURES.read_bytes() == full


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ((b'"packages"', b'"package"'), 5, "not a valid feature file"),
        ((RULES_LINE, b'"rules": 99'), 5, "made by rules version 99"),
        ((RULES_LINE, b'"rules": 0'), 5, "rules"),
    ],
)
def test_filtered_run_keeps_unreadable_feature_file(
    cuda_archives: FaultServer, process: Run, change: tuple[bytes, bytes], code: int, words: str
) -> None:
    process()
    changed = FEATURES.read_bytes().replace(*change)
    FEATURES.write_bytes(changed)
    expect_error(process("--package", "cuda_cccl", "--cache-dir", "other"), code, words)
    assert FEATURES.read_bytes() == changed
    assert process("--cache-dir", "third").exit_code == 0


def test_feature_file_of_older_rules_is_rebuilt(
    cuda_archives: FaultServer, process: Run, monkeypatch: pytest.MonkeyPatch, patch: Patch
) -> None:
    process()
    old = FEATURES.read_bytes()
    patch("cudaredist.commands.process.feature_file.RULES", RULES + 1)
    monkeypatch.setattr("cudaredist.commands.process.feature_run.FILES_KIND", "files/later")
    result = process("--package", "cuda_cccl", "--cache-dir", "other")
    assert result.exit_code == 3
    assert "made by older rules" in result.stderr
    assert FEATURES.read_bytes() == old
    requests = cuda_archives.requests.copy()
    assert process().exit_code == 0
    assert cuda_archives.requests == requests
    assert features()["rules"] == RULES + 1


def test_unselected_manifest_gets_no_feature_file(
    cuda_archives: FaultServer, process: Run, run: Run
) -> None:
    publish(
        cuda_archives, release("9.1.0", {"cudnn": {"linux-x86_64": {"LICENSE": b"x"}}}), "cudnn"
    )
    assert process("--package", "cuda_cccl").exit_code == 0
    assert not Path("data/features/cudnn").exists()
    kinds = [f["kind"] for f in report(run("check", "--offline", "--json"))["findings"]]
    assert kinds.count("no-features") == 1


def test_report_distinguishes_excluded_archives_with_same_hash(
    server: FaultServer, process: Run
) -> None:
    files: Files = {"include/x.h": b"//"}
    one = release("12.9.0", {"cuda_cccl": {"linux-x86_64": files}})
    document = json.loads(one["redistrib_12.9.0.json"])
    document["release_label"] = "12.9.1"
    document["cccl"] = document.pop("cuda_cccl")
    publish(server, one | {"redistrib_12.9.1.json": json.dumps(document).encode()})
    result = report(process("--package", "cccl", "--json"))
    assert [(a["package"], a["status"]) for a in result["archives"]] == [
        ("cuda_cccl", "skipped"),
        ("cccl", "examined"),
    ]
    assert result["fetched_bytes"] == sum(len(d) for p, d in one.items() if p.endswith(".xz"))


@pytest.mark.parametrize(
    ("option", "name", "hint"),
    [
        ("--package", "cuda_cudrt", "cuda_cudart"),
        ("--platform", "linux-x86-64", "linux-x86_64"),
        ("--variant", "cuda12", "no selected archive has a variant"),
    ],
)
def test_unknown_names_exit_2_with_suggestion(
    cuda_archives: FaultServer, process: Run, option: str, name: str, hint: str
) -> None:
    expect_error(process(option, name), 2, hint)
    assert not FEATURES.exists()


def test_max_download_selects_smallest_archives(cuda_archives: FaultServer, process: Run) -> None:
    sizes = sorted(
        len(data) for path, data in cuda_archives.files.items() if not path.endswith(".json")
    )
    result = expect_output(process("--max-download", sum(sizes[:2]), "--json"), 3)
    assert archives_read(cuda_archives) == 2
    reasons = {a["reason"] for a in report(result)["archives"]}
    assert reasons == {None, "beyond --max-download"}
    printed = process("--max-download", 1).stdout
    assert printed.splitlines()[-1].startswith("skipped: ")
    assert printed.endswith(" beyond --max-download\n")


@pytest.mark.parametrize("text", ["", "5 apples", "-1", "1e9", "GB"])
def test_invalid_sizes_exit_2(cuda_archives: FaultServer, process: Run, text: str) -> None:
    assert process("--max-download", text).exit_code == 2


def test_download_size_is_printed_first(cuda_archives: FaultServer, process: Run) -> None:
    total = sum(
        len(data) for path, data in cuda_archives.files.items() if not path.endswith(".json")
    )
    assert process().stderr == f"5 archives to read, {total / 1000:.1f} kB; 0 B already known\n"
    assert process().stderr == (f"0 archives to read, 0 B; {total / 1000:.1f} kB already known\n")


def test_missing_manifests_suggest_download(run: Run) -> None:
    for _ in range(2):
        expect_error(run("process-manifests"), 2, "run `cudaredist download-manifests`")
        assert not list(Path().rglob("*.json"))
        Path("data/manifests").mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize("options", [["--data-dir", "typo"], ["https://localhost/x", "typo"]])
def test_missing_folder_exits_2_and_is_not_created(run: Run, options: list[str]) -> None:
    expect_error(
        run("process-manifests", *options), 2, "in typo", "run `cudaredist download-manifests"
    )
    assert not Path("typo").exists()


def test_broken_manifest_does_not_block_others(cuda_archives: FaultServer, process: Run) -> None:
    put(Path("data/manifests/cuda"), {"redistrib_12.9.0.json": b"{broken"})
    for options in ((), ("--package", "cuda_cccl")):
        assert process(*options).exit_code == 5
    assert FEATURES.exists()


def test_strict_rejects_manifest_with_warnings(cuda_archives: FaultServer, process: Run) -> None:
    path = Path("data/manifests/cuda/redistrib_12.9.1.json")
    document = json.loads(path.read_bytes())
    document["cuda_cccl"]["odd"] = "unknown"
    path.write_text(json.dumps(document))
    result = process("--check")
    assert "warning: cuda 12.9.1: cuda_cccl.odd" in result.stderr
    assert process("--strict").exit_code == 5


# -- runs without writes


def test_check_reads_no_archive(cuda_archives: FaultServer, process: Run) -> None:
    result = expect_output(process("--check", "--json"), 1)
    assert report(result)["manifests"][0]["status"] == "would-write"
    assert {a["status"] for a in report(result)["archives"]} == {"would-examine"}
    assert archives_read(cuda_archives) == 0
    assert not FEATURES.exists()
    process()
    assert process("--check").exit_code == 0
    FEATURES.write_bytes(FEATURES.read_bytes() + b"\n")
    assert process("--check").exit_code == 1
