"""Tests of the check command: findings, output and exit codes."""

import functools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, SAMPLE, Run
from support import server as faults
from support.factory import feature_document, manifest
from support.running import expect_error, expect_output, held, snapshot
from support.server import FaultServer

from cudaredist.formats.registry import read_own_file
from cudaredist.jsontext import canonical_json
from cudaredist.primitives import sha256_of

LABELS = ("12.9.0", "12.9.1")
FOLDER = "/compute/cuda/redist/"


@pytest.fixture
def cuda(server: FaultServer, run: Run) -> FaultServer:
    """Serve two releases of CUDA that are also in a complete data folder."""
    server.add_manifests("cuda", {label: manifest(label) for label in LABELS})
    run("download-manifests", "--base-url", server.url, "--version", "all")
    for label in LABELS:
        write_features(label)
    write_tables(*LABELS)
    return server


def write(path: str, document: object) -> Path:
    place = Path("data") / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(canonical_json(document))
    return place


def write_features(of: str, **changes: object) -> Path:
    sha256 = sha256_of(held(of).read_bytes()) if held(of).exists() else "a" * 64
    document = feature_document(of) | {"manifest_sha256": sha256} | changes
    return write(f"features/cuda/feature_{of}.json", document)


def write_tables(*labels: str) -> None:
    source = {"channel": "redist", "package": "cuda_nvcc", "archive_sha256": "a" * 64}
    source |= {"path": "bin/ptxas", "file_sha256": "b" * 64}
    releases = {
        label: {
            "nvcc": "12.9.86",
            "source": {**source, "version": "12.9.86"},
            "compilers": {"icx": {"status": "refused"}},
        }
        for label in labels
    }
    write("nvcc_compat.json", {"schema_version": 1, "releases": releases})
    write(
        "gpus.json",
        {"schema_version": 1, "capabilities": {}, "sources": dict.fromkeys(labels, source)},
    )


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


def check(run: Run, server: FaultServer | None, *options: str) -> Any:
    source = ["--offline"] if server is None else ["--base-url", server.url, "--retries", "0"]
    result = run("check", "--json", *source, *options)
    document = json.loads(result.stdout)
    assert document["exit_code"] == result.exit_code
    return document


def kinds(document: Any) -> list[tuple[str, str | None]]:
    return [(f["kind"], f["release"]) for f in document["findings"]]


def lines(document: Any) -> dict[str, Any]:
    return {line["line"]: line for line in document["lines"]}


def test_check_of_complete_data_exits_0(run: Run, cuda: FaultServer) -> None:
    document = check(run, cuda)
    assert (document["exit_code"], document["findings"]) == (0, [])
    assert lines(document)["12.9"]["status"] == "current"


@pytest.mark.parametrize(
    ("driver", "exit_code", "words"),
    [
        ("575.57.08", 0, None),
        ("525.60.13", 0, None),
        ("525", 0, None),
        ("520.61.05", 1, "525.60.13 is the lowest for its major"),
    ],
)
def test_local_cuda_releases_run_on_required_driver(
    run: Run, cuda: FaultServer, driver: str, exit_code: int, words: str | None
) -> None:
    document = check(run, cuda, "--require-driver", driver)
    found = [f for f in document["findings"] if f["kind"] == "driver"]
    assert (document["exit_code"], [f["release"] for f in found]) == (
        exit_code,
        [] if words is None else list(LABELS),
    )
    assert all(words in f["message"] for f in found if words)
    none = check(run, None, "--require-driver", driver, "--redist", "cudnn")
    assert "driver" not in {kind for kind, _ in kinds(none)}


@pytest.mark.parametrize(
    ("glibc", "exit_code", "words"),
    [
        ("2.40", 0, None),
        ("2.41", 1, "nvcc compiles with glibc up to 2.40, not with 2.41"),
        ("2.45", 1, "nvcc compiles with glibc up to 2.40, not with 2.45"),
    ],
)
def test_check_reports_releases_whose_nvcc_clashes_with_required_glibc(
    run: Run, cuda: FaultServer, glibc: str, exit_code: int, words: str | None
) -> None:
    shutil.copy(REPOSITORY / "data/nvcc_compat.json", "data/nvcc_compat.json")
    document = check(run, cuda, "--require-glibc", glibc)
    found = [(f["release"], f["message"]) for f in document["findings"] if f["kind"] == "glibc"]
    assert (document["exit_code"], found) == (
        exit_code,
        [] if words is None else [(label, words) for label in LABELS],
    )
    none = check(run, None, "--require-glibc", glibc, "--redist", "cudnn")
    assert "glibc" not in {kind for kind, _ in kinds(none)}


def test_check_with_unknown_newest_glibc_exits_3(run: Run, cuda: FaultServer) -> None:
    """The table of the data folder has no glibc."""
    document = check(run, cuda, "--require-glibc", "2.40")
    messages = {f["message"] for f in document["findings"] if f["kind"] == "glibc"}
    assert document["exit_code"] == 3
    assert messages == {"whether nvcc compiles with glibc 2.40 is unknown"}


def test_check_refuses_glibc_that_is_not_a_version(run: Run, cuda: FaultServer) -> None:
    result = run("check", "--offline", "--require-glibc", "2.x")
    expect_error(result, 2, "--require-glibc 2.x: expected numbers separated by dots")


def test_unknown_driver_requirement_of_a_release_exits_3(run: Run, cuda: FaultServer) -> None:
    policy = Path("data/policy/drivers.json")
    policy.parent.mkdir()
    document = json.loads((REPOSITORY / "data/policy/drivers.json").read_bytes())
    document |= {"releases": {}, "lowest": {}}
    policy.write_bytes(canonical_json(document))
    document = check(run, cuda, "--require-driver", "575.57.08")
    assert document["exit_code"] == 3
    assert "are unknown" in document["findings"][0]["message"]


def test_newer_release_of_local_line_is_stale(run: Run, cuda: FaultServer) -> None:
    cuda.add_manifests("cuda", {x: manifest(x) for x in (*LABELS, "12.9.2", "12.9.10")})
    document = check(run, cuda)
    assert document["exit_code"] == 1
    assert kinds(document) == [("stale", "12.9.10")]
    assert lines(document)["12.9"]["missing"] == ["12.9.2", "12.9.10"]


def test_newer_line_is_stale_and_older_line_is_optional(run: Run, cuda: FaultServer) -> None:
    cuda.add_manifests("cuda", {x: manifest(x) for x in ("12.8.1", *LABELS, "13.0.0")})
    document = check(run, cuda)
    assert kinds(document) == [("stale", "13.0.0")]
    assert {name: line["status"] for name, line in lines(document).items()} == {
        "12.8": "not-held",
        "12.9": "current",
        "13.0": "new",
    }


def test_platforms_missing_from_newer_release_are_reported(run: Run, cuda: FaultServer) -> None:
    newer = manifest("12.9.2", platforms=("linux-x86_64", "linux-riscv64"))
    cuda.add_manifests("cuda", {**{x: manifest(x) for x in LABELS}, "12.9.2": newer})
    (finding,) = check(run, cuda)["findings"]
    assert finding["details"] == [
        "missing: 12.9.2",
        "12.9.2 lacks linux-sbsa, which 12.9.1 has",
        "12.9.2 adds linux-riscv64",
    ]


def test_platforms_lost_between_local_releases_are_a_note(run: Run) -> None:
    run("download-manifests", "--base-url", SAMPLE, "--redist", "cudnn", "--version", "all")
    document = check(run, None)
    assert ("platform-lost", "8.9.6") in kinds(document)
    note = document["findings"][-1]
    assert note["exit_code"] == 0
    assert note["message"] == "has no linux-aarch64; the newest release with it is 8.9.5"


def rebuild(server: FaultServer) -> None:
    server.files[f"{FOLDER}redistrib_12.9.0.json"] = manifest("12.9.0", salt="rebuilt")


def rebuild_manifest_read_from_copy(server: FaultServer) -> None:
    record = json.loads(Path("data/lock.json").read_bytes())
    record["redists"]["cuda"]["12.9.0"]["as_read"] = True
    Path("data/lock.json").write_bytes(canonical_json(record))
    rebuild(server)


def publish_page_instead_of_manifest(server: FaultServer) -> None:
    manifests = {label: manifest(label) for label in LABELS}
    server.add_manifests("cuda", {**manifests, "12.9.2": b"<html>"})


@pytest.mark.parametrize(
    ("change", "code", "expected"),
    [
        (rebuild, 4, [("changed-upstream", "12.9.0")]),
        (rebuild_manifest_read_from_copy, 1, [("copy-differs", "12.9.0")]),
        (lambda _: append(held()), 4, [("edited-locally", "12.9.1"), ("stale-features", "12.9.1")]),
        (lambda s: s.misbehave(FOLDER, faults.status(503)), 3, [("unreachable", None)]),
        (publish_page_instead_of_manifest, 5, [("invalid", "12.9.2"), ("stale", "12.9.2")]),
    ],
    ids=[
        "changed upstream",
        "differs from copy",
        "edited locally",
        "unreachable",
        "invalid newer manifest",
    ],
)
def test_difference_from_upstream_is_reported_with_exit_code(
    run: Run,
    cuda: FaultServer,
    change: Callable[[FaultServer], None],
    code: int,
    expected: list[tuple[str, str | None]],
) -> None:
    change(cuda)
    document = check(run, cuda)
    assert (document["exit_code"], kinds(document)) == (code, expected)
    if change is rebuild:
        assert "sha256" in document["findings"][0]["details"][0]
    is_unreachable = ("unreachable", None) in expected
    assert (lines(document)["12.9"]["status"] == "unknown") == is_unreachable


def test_several_findings_exit_with_worst_code(run: Run, cuda: FaultServer) -> None:
    cuda.add_manifests("cuda", {x: manifest(x) for x in (*LABELS, "12.9.2")})
    cuda.misbehave(f"{FOLDER}redistrib_12.9.0.json", faults.status(503))
    assert check(run, cuda)["exit_code"] == 3
    cuda.files[f"{FOLDER}redistrib_12.9.1.json"] = manifest("12.9.1", salt="rebuilt")
    document = check(run, cuda)
    assert document["exit_code"] == 4
    assert kinds(document) == [
        ("unreachable", "12.9.0"),
        ("changed-upstream", "12.9.1"),
        ("stale", "12.9.2"),
    ]


def test_unlisted_manifest_is_a_finding_until_recorded(run: Run, cuda: FaultServer) -> None:
    cuda.add_manifests("cuda", {"12.9.1": manifest("12.9.1")})
    document = check(run, cuda)
    assert (document["exit_code"], kinds(document)) == (1, [("gone", "12.9.0")])
    run("download-manifests", "--base-url", cuda.url)
    document = check(run, cuda)
    assert (document["exit_code"], kinds(document)) == (0, [("gone", "12.9.0")])


def test_offline_check_sends_no_request(run: Run, cuda: FaultServer) -> None:
    requests = sum(cuda.requests.values())
    document = check(run, None)
    assert (document["exit_code"], document["offline"]) == (0, True)
    assert lines(document)["12.9"]["upstream"] is None
    assert sum(cuda.requests.values()) == requests


def test_second_check_sends_conditional_requests(run: Run, cuda: FaultServer) -> None:
    check(run, cuda)
    requests = [headers for path, headers in cuda.headers if path.endswith(".json")]
    assert all("If-None-Match" in headers for headers in requests[-2:])


STALE = "stale-features"
LEGACY = '{"x": {"linux-x86_64": {"outputs": {"lib": true}}}}'


change_features = functools.partial(write_features, "12.9.1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "kind", "code"),
    [
        pytest.param(lambda: held().unlink(), "missing-file", 1, id="manifest lost"),
        pytest.param(lambda: held().write_bytes(b"{"), "invalid", 4, id="manifest broken"),
        pytest.param(lambda: lock().unlink(), "unrecorded", 1, id="lock lost"),
        pytest.param(lambda: lock().write_bytes(b"{}"), "invalid", 5, id="lock broken"),
        pytest.param(lambda: append(lock()), "not-canonical", 1, id="lock form"),
        pytest.param(lambda: feature().unlink(), "no-features", 1, id="features lost"),
        pytest.param(lambda: feature().write_bytes(b"[]"), "invalid", 5, id="features broken"),
        pytest.param(lambda: change_features(manifest_sha256="a" * 64), STALE, 1, id="stale"),
        pytest.param(lambda: change_features(label="12.9.0"), STALE, 1, id="of another"),
        pytest.param(lambda: feature().write_text(LEGACY), "legacy-features", 0, id="legacy"),
        pytest.param(lambda: write_features("12.8.0"), "orphan-features", 1, id="orphan"),
        pytest.param(lambda: write_tables("12.9.0"), "table-lacks", 1, id="table lacks one"),
        pytest.param(lambda: Path("data/gpus.json").unlink(), "table-missing", 1, id="no table"),
        pytest.param(lambda: write("gpus.json", {"x": 1}), "invalid", 5, id="table broken"),
    ],
)
def test_damaged_data_is_reported_offline(
    run: Run, cuda: FaultServer, damage: Callable[[], object], kind: str, code: int
) -> None:
    damage()
    document = check(run, None, "--no-shipped-data")
    assert document["exit_code"] == code
    assert kind in {findings for findings, _ in kinds(document)}


def test_second_check_reads_only_changed_files(
    run: Run, cuda: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check(run, None)["findings"] == []
    read: list[bytes] = []

    def counted(data: bytes, model: Any) -> Any:
        read.append(data)
        return read_own_file(data, model)

    monkeypatch.setattr("cudaredist.commands.check.checked_files.read_own_file", counted)
    assert check(run, None)["findings"] == []
    assert read == []
    changed = write_features("12.9.1", rules=1)
    assert kinds(check(run, None)) == [("stale-features", "12.9.1")]
    assert read == [changed.read_bytes()]


def test_check_finds_a_changed_byte_in_a_file_with_the_same_size_and_time(
    run: Run, cuda: FaultServer
) -> None:
    assert check(run, None)["findings"] == []
    path = Path("data/features/cuda/feature_12.9.1.json")
    before, data = path.stat(), path.read_bytes()
    path.write_bytes(data.replace(b"{", b"[", 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert kinds(check(run, None)) == [("invalid", None)]
    path.write_bytes(data)
    assert check(run, None)["findings"] == []


def test_shipped_tables_complete_missing_local_tables(run: Run, cuda: FaultServer) -> None:
    Path("data/gpus.json").unlink()
    found = [check(run, None, *flags)["findings"] for flags in ((), ("--no-shipped-data",))]
    both, only_local = ([one for one in each if one["path"] == "gpus.json"] for each in found)
    assert (both, [one["kind"] for one in only_local]) == ([], ["table-missing"])


def test_unreadable_manifest_is_reported_once(run: Run, cuda: FaultServer) -> None:
    held().unlink()
    held().mkdir()
    document = check(run, cuda)
    assert document["exit_code"] == 3
    findings = kinds(document)
    assert ("unreadable", "12.9.1") in findings
    assert not {kind for kind, _ in findings} & {"missing-file", "stale", "unreachable"}


@pytest.mark.parametrize("is_folder", [True, False])
def test_unreadable_lock_is_the_only_finding(
    run: Run,
    cuda: FaultServer,
    is_folder: bool,  # noqa: FBT001 - a column of the table
) -> None:
    lock().unlink()
    if is_folder:
        lock().mkdir()
    else:
        lock().write_bytes(b"{")
    document = check(run, cuda)
    assert len(document["findings"]) == 1
    assert document["exit_code"] == (3 if is_folder else 5)


def lock() -> Path:
    return Path("data/lock.json")


def feature() -> Path:
    return Path("data/features/cuda/feature_12.9.1.json")


def test_feature_file_with_legacy_name_is_read(run: Run, cuda: FaultServer) -> None:
    feature().rename(feature().with_name("redistrib_features_12.9.1.json"))
    assert check(run, cuda)["exit_code"] == 0


def test_empty_data_folder_exits_1(run: Run) -> None:
    Path("data/manifests").mkdir(parents=True)
    document = check(run, None, "--data-dir", "data")
    assert (document["exit_code"], kinds(document)) == (1, [("nothing-held", None)])


@pytest.mark.slow
def test_check_without_data_folder_reads_shipped_data(run: Run) -> None:
    shipped = run("check", "--offline", "--json")
    named = run("check", "--offline", "--json", "--data-dir", REPOSITORY / "data")
    assert shipped.stdout == named.stdout
    assert shipped.exit_code == named.exit_code


def test_missing_data_folder_exits_2(run: Run) -> None:
    result = run("check", "--offline", "--redist", "nccl", "--data-dir", "nowhere")
    expect_error(result, 2, "nowhere: no such folder")


def test_redist_missing_upstream_exits_3(run: Run, cuda: FaultServer) -> None:
    cuda.add_manifests("nvpl", {"24.7": manifest("24.7", "nvpl")})
    run("download-manifests", "--base-url", cuda.url)
    for path in (f"/compute/nvpl/redist/{name}" for name in ("", "redistrib_24.7.json")):
        del cuda.files[path]
    document = check(run, cuda, "--redist", "nvpl")
    assert document["exit_code"] == 3
    assert ("absent", None) in kinds(document)


def test_handwritten_manifest_missing_upstream_is_a_note(
    run: Run, cuda: FaultServer, tmp_path: Path
) -> None:
    folder = tmp_path / "own" / "handwritten" / "tensorrt"
    folder.mkdir(parents=True)
    (folder / "redistrib_10.9.0.json").write_bytes(manifest("10.9.0", "tensorrt"))
    run("download-manifests", "--base-url", tmp_path / "own", "--redist", "tensorrt")
    document = check(run, cuda, "--redist", "tensorrt")
    assert document["exit_code"] == 1, (
        "a missing feature file is a finding, a missing upstream folder is a note"
    )
    assert ("absent", None) in kinds(document)


def test_orphan_features_and_unknown_folders_are_reported(run: Run, cuda: FaultServer) -> None:
    write("features/cudnn/feature_9.0.0.json", {})
    Path("data/manifests/cudda").mkdir()
    Path("data/manifests/cudda/redistrib_1.2.json").write_bytes(b"{}")
    findings = kinds(check(run, None))
    assert ("invalid", None) in findings
    assert ("orphan-features", "9.0.0") in findings
    assert ("unknown-redist", None) in findings


def test_selected_redist_with_many_releases_is_one_finding(run: Run, cuda: FaultServer) -> None:
    labels = ("1.0.0", "1.1.0", "1.2.0")
    cuda.add_manifests("cudss", {x: manifest(x, "cudss") for x in labels})
    stale = [f for f in check(run, cuda, "--redist", "cudss")["findings"] if f["kind"] == "stale"]
    assert [finding["release"] for finding in stale] == ["1.2.0"]


def test_github_annotations_beyond_limit_are_counted(run: Run, cuda: FaultServer) -> None:
    for n in range(20):
        write(f"features/cuda/feature_1.2.{n}.json", {"schema_version": 1, f"n{n}": n})
    result = run("check", "--base-url", cuda.url, "--format", "github")
    errors = [line for line in result.stdout.splitlines() if line.startswith("::error ")]
    assert len(errors) == 10
    assert errors[-1] == "::error title=cudaredist::and 11 more"


# -- output formats


@pytest.fixture
def stale(run: Run, cuda: FaultServer) -> FaultServer:
    """Create data with a stale line, a lost platform and missing features."""
    feature().unlink()
    newer = manifest("12.9.2", platforms=("linux-x86_64",))
    cuda.add_manifests("cuda", {**{x: manifest(x) for x in LABELS}, "12.9.2": newer})
    return cuda


def test_text_report_lists_lines_and_findings(run: Run, stale: FaultServer) -> None:
    result = expect_output(run("check", "--base-url", stale.url), 1)
    assert result.stdout.splitlines() == [
        "2 findings, 0 notes: exit 1, findings",
        "",
        "redist  line  local   upstream  state  missing",
        "cuda    12.9  12.9.1  12.9.2    stale  12.9.2",
        "",
        "no-features: cuda 12.9.1: no feature file",
        f"    hint: run `cudaredist process-manifests --base-url {stale.url}`",
        "",
        "stale: cuda 12.9.2: line 12.9: 12.9.1 local, 12.9.2 upstream",
        "    missing: 12.9.2",
        "    12.9.2 lacks linux-sbsa, which 12.9.1 has",
        f"    hint: run `cudaredist download-manifests --base-url {stale.url} --redist cuda "
        "--version 12.9.2`",
    ]


def test_markdown_report_has_table_and_findings(run: Run, stale: FaultServer) -> None:
    result = run("check", "--base-url", stale.url, "--format", "markdown")
    assert "| cuda | 12.9 | 12.9.1 | 12.9.2 | stale | 12.9.2 |" in result.stdout
    assert "- **stale** cuda 12.9.2: line 12.9: 12.9.1 local, 12.9.2 upstream" in result.stdout
    assert "linux-sbsa, which 12.9.1 has" in result.stdout


def test_github_format_writes_summary_and_outputs(
    run: Run, stale: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, outputs = tmp_path / "summary", tmp_path / "outputs"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_OUTPUT", str(outputs))
    result = run("check", "--base-url", stale.url, "--format", "github")
    assert result.stdout.splitlines() == [
        "::warning title=cuda 12.9.1,file=data/features/cuda/feature_12.9.1.json::no feature file",
        "::warning title=cuda 12.9.2::line 12.9: 12.9.1 local, 12.9.2 upstream%0A"
        "missing: 12.9.2%0A12.9.2 lacks linux-sbsa, which 12.9.1 has",
    ]
    assert summary.read_text().startswith("## cudaredist check: findings\n")
    assert outputs.read_text().splitlines() == [
        "exit_code=1",
        "stale=true",
        "unreachable=false",
        "findings=true",
        "integrity=false",
        'newer=["cuda 12.9.2"]',
    ]


def test_check_writes_nothing(run: Run, stale: FaultServer) -> None:
    before = snapshot(Path())
    for form in ("text", "github"):
        assert run("check", "--base-url", stale.url, "--format", form).exit_code == 1
    assert snapshot(Path()) == before


def test_default_channel_is_the_local_one(run: Run, server: FaultServer) -> None:
    wheels = "using --channel wheels of the data shipped with cudaredist\n"
    both = "using NVIDIA's archives and wheels of the data shipped with cudaredist\n"
    for call, note in (
        ("check --offline --redist cuda --all", wheels),
        ("versions --offline", both),
        ("build --cuda 13.0 --platform linux-x86_64 --check", wheels),
    ):
        result = run(*call.split())
        assert "cuda" in result.stdout
        assert result.stderr.startswith(note)
    # A base URL or a channel option selects the channel, and so do local manifests of both.
    assert "nothing-held" in run("check", "--offline", "--channel", "redist").stdout
    assert "nothing-held" in run("check", "--base-url", server.url).stdout
    shutil.copytree(REPOSITORY / "data/manifests/wheels/nccl", "data/manifests/wheels/nccl")
    assert run("versions", "--offline").stderr == "using --channel wheels of data\n"
    server.add_manifests("cuda", {"12.9.1": manifest()})
    run("download-manifests", "--base-url", server.url)
    result = run("versions", "--offline")
    assert ("12.9.1" in result.stdout, "nccl" in result.stdout) == (True, True)
    assert result.stderr == "using NVIDIA's archives and wheels of data\n"
    assert run("check", "--offline").stderr.startswith("using --channel redist of data\n")


@pytest.mark.parametrize("has_lock", [True, False])
def test_one_more_line_feed_is_no_change(run: Run, cuda: FaultServer, *, has_lock: bool) -> None:
    held().write_bytes(held().read_bytes() + b"\n")
    if not has_lock:
        Path("data/lock.json").unlink()
    kinds = {finding["kind"] for finding in check(run, cuda)["findings"]}
    assert not kinds & {"edited-locally", "changed-upstream"}
    result = run("download-manifests", "--base-url", cuda.url, "--version", "12.9.1")
    expect_output(result, 0, "unchanged")
