"""Tests of the bump command."""

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from conftest import Run
from support import server as faults
from support.bumps import FIVE, TWO, cuda, product, publish
from support.headers import host_config
from support.patching import Patch, patching
from support.ptxas import PROFILES_12_9, ptxas
from support.releases import Packages, release
from support.running import expect_error, expect_output, report, snapshot, succeed
from support.server import FaultServer
from support.small_sets import library
from support.wheels import put_wheel
from typer.testing import Result

from cudaredist.commands.bump.bump_data import Bump
from cudaredist.commands.bump.report import BumpedRelease, BumpReport
from cudaredist.commands.bump.text import commit_message, with_entries
from cudaredist.commands.diff.report import DiffReport, PackageDelta
from cudaredist.formats.packageset import PackageSet
from cudaredist.jsontext import canonical_json
from cudaredist.sets.invariants.documents import Broken, Invariant, Violation, check_run

DATA = Path("data")


def archive_of(server: FaultServer, part: str) -> str:
    (path,) = (path for path in server.files if part in path)
    return path


@pytest.fixture
def bump(run: Run, server: FaultServer) -> Run:
    """Run bump against the server."""
    return lambda *more: run(
        *("bump", "--base-url", server.url, "--retries", 0, "-q", "-j", 2), *more
    )


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder and a cache with one release of each redistributable."""
    root = tmp_path_factory.mktemp("seed")
    with FaultServer() as server:
        for redist, (old, _) in FIVE.items():
            publish(server, redist, old)
        names = [word for name in FIVE for word in ("--redist", name)]
        folders = ("--data-dir", root / "data", "--cache-dir", root / "cache")
        succeed("bump", "-q", "--base-url", server.url, *folders, *names)
    return root


@pytest.fixture
def up_to_date(server: FaultServer, bump: Run, seed: Path) -> FaultServer:
    """Serve one release of each redistributable, all of them in the data folder."""
    for redist, (old, _) in FIVE.items():
        publish(server, redist, old)
    shutil.copytree(seed / "data", DATA)
    shutil.copytree(seed / "cache", os.environ["CUDAREDIST_CACHE_DIR"])
    return server


@pytest.fixture
def newer(up_to_date: FaultServer) -> FaultServer:
    """Serve a newer release of each redistributable."""
    for redist, labels in FIVE.items():
        publish(up_to_date, redist, *labels)
    return up_to_date


@pytest.fixture
def two_newer(up_to_date: FaultServer) -> FaultServer:
    """Serve a newer release of two redistributables."""
    for redist in TWO:
        publish(up_to_date, redist, *FIVE[redist])
    return up_to_date


def statuses(result: Result) -> dict[str, str]:
    return {entry["redist"]: entry["status"] for entry in report(result)["releases"]}


def assert_consistent(run: Run, server: FaultServer, *allowed: str) -> None:
    """Assert that `check` reports no findings except the allowed kinds."""
    document = json.loads(run("check", "--base-url", server.url, "--retries", 0, "--json").stdout)
    kinds = {f["kind"] for f in document["findings"] if f["exit_code"]}
    assert kinds <= set(allowed), document["findings"]


# -- complete runs


def test_bump_updates_five_redistributables(newer: FaultServer, bump: Run, run: Run) -> None:
    result = expect_output(bump("--format", "commit-message"), 0)
    for redist, (_, new) in FIVE.items():
        assert (DATA / f"manifests/{redist}/redistrib_{new}.json").exists()
        assert (DATA / f"features/{redist}/feature_{new}.json").exists()
    assert "12.9.1" in json.loads((DATA / "nvcc_compat.json").read_bytes())["releases"]
    assert "12.9.1" in json.loads((DATA / "gpus.json").read_bytes())["sources"]
    assert_consistent(run, newer)
    subject, blank, *lines = result.stdout.splitlines()
    assert subject == "cuda redistributables: 5 new releases of 5 products"
    assert blank == ""
    assert lines[:5] == [f"{name}: {old} -> {new}" for name, (old, new) in FIVE.items()]
    assert "cuda@12.9.0 -> cuda@12.9.1" in lines
    assert "  cuda_profiler_api 12.9.1.5 (linux-sbsa, linux-x86_64)" in lines
    assert not Path("build").exists()


def test_second_bump_changes_no_file(two_newer: FaultServer, bump: Run) -> None:
    assert bump().exit_code == 0
    before = snapshot(DATA)
    two_newer.requests.clear()
    result = bump()
    assert (result.exit_code, result.stdout) == (0, "nothing is new\n")
    assert snapshot(DATA) == before
    assert not [path for path in two_newer.requests if path.endswith((".json", ".xz"))]


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        ((), "nothing is new\n"),
        (
            (
                "--format",
                "commit-message",
            ),
            "",
        ),
        (("--format", "nixpkgs-commit"), "[]\n"),
        (("--format", "markdown"), "## Nothing is new\n"),
        (("--check",), "nothing is new\n"),
    ],
)
def test_bump_without_changes_reports_nothing_new_in_each_format(
    up_to_date: FaultServer, bump: Run, options: tuple[str, ...], printed: str
) -> None:
    Path("message").write_text("as it was")
    files = ("--write-commit-message", "message", "--changelog", "CHANGELOG.md")
    result = bump(*options, *files)
    assert (result.exit_code, result.stdout) == (0, printed)
    assert Path("message").read_text() == "as it was"
    assert not Path("CHANGELOG.md").exists()


def test_bump_without_shipped_data_builds_sets_from_local_tables_only(
    newer: FaultServer, bump: Run
) -> None:
    (DATA / "gpus.json").unlink()
    expect_error(bump("--redist", "cudnn", "--no-shipped-data"), 3, "gpus.json: no such table")
    assert "gpus.json" not in bump("--redist", "cudnn").stderr


def test_check_reports_planned_bumps_and_writes_nothing(newer: FaultServer, bump: Run) -> None:
    before = snapshot(DATA)
    newer.requests.clear()
    result = bump("--check", "--write-commit-message", "m", "--changelog", "c", "--json")
    assert result.exit_code == 1
    assert statuses(result) == dict.fromkeys(FIVE, "would-bump")
    assert snapshot(DATA) == before
    assert not Path("m").exists()
    assert not Path("c").exists()
    assert not [path for path in newer.requests if not path.endswith("/redist/")]
    lines = [line.split() for line in bump("--check").stdout.splitlines()]
    assert ["nccl", "2.27.3-cuda12.9", "->", "2.27.5-cuda12.9", "would", "bump"] in lines


def test_bump_check_without_data_folder_reads_base_url(run: Run, server: FaultServer) -> None:
    publish(server, "cuda", FIVE["cuda"][0])
    call = ("bump", "--check", "--base-url", server.url)
    expect_output(run(*call, "--redist", "cuda"), 1, f"cuda  none -> {FIVE['cuda'][0]}  would bump")
    expect_error(run(*call), 2, "no local manifests for --channel redist in the shipped data")


def test_commit_message_of_one_change_has_subject_and_diff(
    up_to_date: FaultServer, bump: Run, run: Run
) -> None:
    publish(up_to_date, "cuda", *FIVE["cuda"])
    result = expect_output(bump("--write-commit-message", "message"), 0)
    message = Path("message").read_text()
    assert message.startswith("cuda: 12.9.0 -> 12.9.1\n\ncuda@12.9.0 -> cuda@12.9.1\nadded:\n")
    diffed = run("diff", "cuda@12.9.0", "cuda@12.9.1").stdout
    # The tables of APIs are shipped data, and `bump` compares the data in the folder.
    compared = diffed.replace("API:\n  10 functions added\n", "")
    assert message.endswith(compared)
    assert compared in result.stdout


def test_bump_updates_outdated_line_and_adds_new_line(up_to_date: FaultServer, bump: Run) -> None:
    publish(
        up_to_date, "cuda", "11.8.0", "12.8.0", "12.8.1", "12.9.0", "12.9.1", "13.0.0", "13.0.1"
    )
    result = bump("--json")
    assert [(r["old"], r["new"]) for r in report(result)["releases"]] == [
        ("12.9.0", "12.9.1"),
        ("12.9.0", "13.0.1"),
    ]
    assert bump("--format", "commit-message", "--version", "12.8.1").stdout == (
        "cuda: init at 12.8.1\n"
    )


@pytest.mark.parametrize("label", ["9.10.2", "9.10", "9"])
def test_version_option_selects_label_and_rejects_unknown_label(
    two_newer: FaultServer, bump: Run, label: str
) -> None:
    result = bump("--version", label, "--json")
    assert statuses(result) == {"cudnn": "bumped"}
    assert [release["new"] for release in report(result)["releases"]] == ["9.10.2"]
    result = bump("--version", "7.7.7")
    assert result.exit_code == 3
    assert "none of the selected redistributables lists 7.7.7" in result.stderr
    assert "newest upstream: cuda 12.9.0" in result.stderr


def test_no_process_downloads_manifests_only(two_newer: FaultServer, bump: Run, run: Run) -> None:
    before = set(snapshot(DATA))
    result = expect_output(bump("--no-process", "--json"), 0)
    assert statuses(result) == dict.fromkeys(TWO, "bumped")
    added = set(snapshot(DATA)) - before
    assert {Path(path).parts[0] for path in added} == {"manifests"}
    assert not two_newer.count("12.9.1.5-archive.tar.xz")
    assert_consistent(run, two_newer, "no-features")
    assert bump("--no-process").stdout == "nothing is new\n"


def test_bump_after_no_process_creates_features(newer: FaultServer, bump: Run, run: Run) -> None:
    bump("--no-process")
    result = bump("--json")
    assert statuses(result) == dict.fromkeys(FIVE, "bumped")
    assert [r["old"] for r in report(result)["releases"]] == [old for old, _ in FIVE.values()]
    assert_consistent(run, newer)


def test_bump_after_no_process_creates_features_of_new_line(
    up_to_date: FaultServer, bump: Run
) -> None:
    publish(up_to_date, "cuda", "12.9.0", "13.0.2")
    bump("--no-process")
    assert not (DATA / "features/cuda/feature_13.0.2.json").exists()
    result = expect_output(bump("--json"), 0)
    assert statuses(result) == {"cuda": "bumped"}
    assert (DATA / "features/cuda/feature_13.0.2.json").exists()


def test_bump_leaves_older_line_without_features(up_to_date: FaultServer, bump: Run) -> None:
    """Nobody inspected its line, and the inspected ones are newer."""
    publish(up_to_date, "cuda", "12.8.1", "12.9.0")
    result = expect_output(bump("--version", "12.8.1", "--no-process", "--json"), 0)
    assert statuses(result) == {"cuda": "bumped"}
    assert bump().stdout == "nothing is new\n"
    assert not (DATA / "features/cuda/feature_12.8.1.json").exists()


def test_output_option_writes_validated_package_sets(
    newer: FaultServer, bump: Run, run: Run
) -> None:
    result = expect_output(bump("--output", "sets", "--json"), 0)
    sets = report(result)["sets"]
    assert [entry["path"] for entry in sets] == [
        f"sets/{platform}/cuda-12.9.1.json" for platform in ("linux-sbsa", "linux-x86_64")
    ]
    expect_output(run("build", "--output", "sets", "--check"), 0)
    shutil.rmtree("sets")
    again = bump("--output", "sets")
    assert "nothing is new" in again.stdout
    assert Path("sets/index.json").exists()


def test_bump_without_output_puts_no_package_set_on_disk(
    newer: FaultServer, bump: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patch: Patch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    documents: list[Path] = []

    def check(sets: Sequence[PackageSet]) -> list[list[Violation]]:
        documents.extend(tmp_path.rglob("cuda-*.json"))
        return check_run(sets)

    patch("cudaredist.commands.validate.validate_files.check_run", check)
    result = expect_output(bump("--json"), 0)
    assert [entry["path"] for entry in report(result)["sets"]] == [None, None]
    assert not documents


def test_bump_reports_broken_invariants_as_validate_does(
    newer: FaultServer, bump: Run, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken: Invariant[PackageSet, Broken] = Invariant(
        "Never holds.", lambda package_set: [("x", package_set.cuda.release)]
    )
    monkeypatch.setattr("cudaredist.sets.invariants.documents.SET_INVARIANTS", {"I99": broken})
    result = expect_output(bump("--output", "sets", "--json"), 1)
    sets = report(result)["sets"]
    problems = [entry["problems"] for entry in sets]
    assert problems == [["I99 x: 12.9.1"]] * 2
    validated = report(run("validate", "--json", *(entry["path"] for entry in sets)))
    assert [entry["problems"] for entry in validated["files"]] == problems


def test_temporary_files_next_to_commit_message_are_removed(newer: FaultServer, bump: Run) -> None:
    Path(".message.0123456789ab.tmp").touch()
    assert bump("--write-commit-message", "message").exit_code == 0
    assert not list(Path().glob(".message*"))


# -- machine-readable output


def test_nixpkgs_commit_format_lists_commits(newer: FaultServer, bump: Run) -> None:
    commits = json.loads(bump("--format", "nixpkgs-commit").stdout)
    assert [sorted(commit) for commit in commits] == [
        ["attrPath", "commitBody", "commitMessage", "files", "newVersion", "oldVersion"]
    ] * 5
    first = commits[0]
    assert first["attrPath"] == "cudaPackages_12_9"
    assert (first["oldVersion"], first["newVersion"]) == ("12.9.0", "12.9.1")
    assert first["commitMessage"] == "cudaPackages_12_9: 12.9.0 -> 12.9.1"
    assert first["commitBody"].startswith("cuda@12.9.0 -> cuda@12.9.1\n")
    assert first["files"] == [
        "data/features/cuda/feature_12.9.1.json",
        "data/gpus.json",
        "data/lock.json",
        "data/manifests/cuda/redistrib_12.9.1.json",
        "data/nvcc_compat.json",
    ]
    assert all(Path(file).exists() for commit in commits for file in commit["files"])
    assert commits[1]["attrPath"] == "cudaPackages.cudnn"


def test_github_format_writes_output_and_summary(
    two_newer: FaultServer, bump: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_OUTPUT", "output")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary")
    result = bump("--format", "github", "--redist", "cudnn")
    assert result.stdout == "::notice title=cudnn::cudnn: 9.10.1 -> 9.10.2\n"
    output = Path("output").read_text()
    single, _, rest = output.partition("body<<")
    assert single.splitlines() == [
        "exit_code=0",
        "changed=true",
        "title=cudnn: 9.10.1 -> 9.10.2",
        'newer=["cudnn 9.10.2"]',
    ]
    end, *lines = rest.splitlines()
    assert lines[-1] == end
    assert end not in lines[:-1]
    assert Path("summary").read_text() == "\n".join(lines[:-1]) + "\n"
    assert "| cudnn | 9.10.1 | 9.10.2 | bumped |" in lines


def test_changelog_gets_one_line_per_release(two_newer: FaultServer, bump: Run) -> None:
    Path("CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n### Data\n\n- nccl: 2.27.3-cuda12.9 -> "
        "2.27.5-cuda12.9\n\n## [0.1.0]\n\n### Data\n\n- old\n"
    )
    assert bump("--changelog", "CHANGELOG.md").exit_code == 0
    assert Path("CHANGELOG.md").read_text() == (
        "# Changelog\n\n## [Unreleased]\n\n### Data\n\n"
        "- nccl: 2.27.3-cuda12.9 -> 2.27.5-cuda12.9\n"
        "- cudnn: 9.10.1 -> 9.10.2\n"
        "\n## [0.1.0]\n\n### Data\n\n- old\n"
    )


@pytest.mark.parametrize("kind", [0o444, 0o755, 0o600, "link"])
def test_written_files_keep_modes_and_links(
    two_newer: FaultServer, bump: Run, kind: int | Literal["link"]
) -> None:
    files = [Path("CHANGELOG.md"), Path("message"), DATA / "lock.json"]
    Path("CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n")
    Path("message").write_text("old")
    before = {path: path.read_bytes() for path in files}
    for path in files:
        if kind == "link":
            path.rename(f"real-{path.name}")
            path.symlink_to(Path(f"real-{path.name}").absolute())
        else:
            path.chmod(kind)
    options = ("--changelog", "CHANGELOG.md", "--write-commit-message", "message")
    assert bump("--no-process", *options).exit_code == 0
    for path in files:
        assert path.read_bytes() != before[path]
        assert path.is_symlink() == (kind == "link")
        assert kind == "link" or stat.S_IMODE(path.stat().st_mode) == kind


BUMPED = BumpReport(
    releases=(BumpedRelease(redist="cuda", old=None, new="13.0.2", status="bumped"),),
    errors=(),
    exit_code=0,
)
ENTRY = "### Data\n\n- cuda: init at 13.0.2\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, f"# Changelog\n\n## [Unreleased]\n\n{ENTRY}"),
        ("# C\n", f"# C\n\n## [Unreleased]\n\n{ENTRY}"),
        ("# C\n\n## [1.0]\n", f"# C\n\n## [Unreleased]\n\n{ENTRY}\n## [1.0]\n"),
        (
            "## Unreleased\n\n### Fixed\n\n- x\n\n## 1.0\n",
            f"## Unreleased\n\n### Fixed\n\n- x\n\n{ENTRY}\n## 1.0\n",
        ),
        (
            "## [Unreleased]\n\n### Data\n\n### Fixed\n\n- x\n",
            f"## [Unreleased]\n\n{ENTRY}\n### Fixed\n\n- x\n",
        ),
        ("## [Unreleased]\r\n", "## [Unreleased]\r\n\r\n" + ENTRY.replace("\n", "\r\n")),
    ],
)
def test_changelog_entry_is_inserted_once(before: str | None, after: str) -> None:
    assert with_entries(before, BUMPED) == after
    assert with_entries(after, BUMPED) == after


def test_control_characters_in_names_are_escaped() -> None:
    new = PackageDelta(package="x\ny\x1b[31m", status="added")
    diff = DiffReport(old="a", new="b", packages=(new,), platforms=None, tables=(), equal=0)
    odd = BUMPED.releases[0].model_copy(update={"diff": diff})
    message = commit_message(BUMPED.model_copy(update={"releases": (odd,)}))
    assert r"  x\ny\x1b[31m" in message.splitlines()


# -- failures


def test_bump_without_server_exits_3_and_changes_nothing(two_newer: FaultServer, bump: Run) -> None:
    before = snapshot(DATA)
    for redist in FIVE:
        two_newer.misbehave(f"/compute/{redist}/redist/", faults.status(503))
    result = bump("--format", "commit-message")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "503" in result.stderr
    assert snapshot(DATA) == before
    assert "no release was added" in bump().stdout
    assert bump("--format", "markdown").stdout.startswith("## No release was added")
    two_newer.behave()
    assert bump().exit_code == 0


def test_unreachable_redist_does_not_block_others(two_newer: FaultServer, bump: Run) -> None:
    two_newer.misbehave("/compute/nccl/redist/redistrib_2.27.5-cuda12.9.json", faults.status(500))
    result = expect_output(bump("--json"), 3)
    assert statuses(result) == dict.fromkeys(TWO, "bumped") | {"nccl": "failed"}
    two_newer.behave()
    assert statuses(bump("--json")) == {"nccl": "bumped"}


def test_local_redist_missing_upstream_exits_3(two_newer: FaultServer, bump: Run) -> None:
    del two_newer.files["/compute/nccl/redist/"]
    result = expect_output(bump("--json"), 3)
    assert statuses(result) == dict.fromkeys(set(TWO) - {"nccl"}, "bumped")


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        pytest.param(lambda data: b"X" + data[1:], 4, id="wrong hash"),
        pytest.param(None, 3, id="missing"),
    ],
)
def test_unavailable_archive_fails_and_next_run_completes(
    two_newer: FaultServer, bump: Run, run: Run, spoil: Any, code: int
) -> None:
    path = archive_of(two_newer, "cudnn-linux-sbsa-9.10.2.5")
    whole = two_newer.files.pop(path)
    if spoil is not None:
        two_newer.files[path] = spoil(whole)
    result = expect_output(bump("--write-commit-message", "message", "--json"), code)
    assert statuses(result) == dict.fromkeys(TWO, "bumped") | {"cudnn": "incomplete"}
    assert "cudnn 9.10.2 is incomplete" in Path("message").read_text()
    assert "cudnn 9.10.2 cudnn linux-sbsa cuda12: " in result.stderr
    assert_consistent(run, two_newer)
    two_newer.files[path] = whole
    two_newer.requests.clear()
    again = expect_output(bump("--format", "commit-message"), 0)
    assert again.stdout.startswith("cudnn: 9.10.1 -> 9.10.2\n\n")
    assert "incomplete" not in again.stdout
    assert two_newer.count(".tar.xz") == 1


def publish_cuda(server: FaultServer, label: str, packages: Packages) -> None:
    """Serve CUDA 12.9.0 and one newer release."""
    server.add_releases("cuda", product("cuda", "12.9.0"), release(label, packages))


def test_bump_accepts_and_reports_lower_bounds_of_new_release(
    up_to_date: FaultServer, bump: Run
) -> None:
    publish_cuda(up_to_date, "13.0.2", cuda("13.0.2", gcc=13, icc="refused"))
    result = expect_output(bump("--write-commit-message", "message"), 0)
    table = json.loads((DATA / "nvcc_compat.json").read_bytes())["releases"]["13.0.2"]
    assert table["compilers"]["icc"]["status"] == "refused"
    message = Path("message").read_text()
    for finding in (
        "nvcc_compat.json: 13.0.2: gcc max was 14 in 12.9.0 and is 13",
        "nvcc_compat.json: 13.0.2: icc status was range in 12.9.0 and is refused",
    ):
        assert f"to review: {finding}\n" in result.stdout
        assert f"{finding}\n" in message


def test_findings_of_successful_bump_are_warnings(up_to_date: FaultServer, run: Run) -> None:
    publish_cuda(up_to_date, "13.0.2", cuda("13.0.2", gcc=13))
    options = ("--base-url", up_to_date.url, "--retries", 0, "--format", "nixpkgs-commit")
    result = run("bump", *options)
    assert result.exit_code == 0, result.output
    assert "warning: nvcc_compat.json: 13.0.2: gcc max was 14" in result.stderr
    assert "error:" not in result.stderr


def test_bump_does_not_write_changed_bounds_of_listed_release(
    up_to_date: FaultServer, bump: Run
) -> None:
    publish_cuda(up_to_date, "12.9.1", cuda("12.9.1"))
    path = DATA / "nvcc_compat.json"
    table = json.loads(path.read_bytes())
    other = json.loads(json.dumps(table["releases"]["12.9.0"]))
    other["compilers"]["gcc"]["max"] = 15
    other["source"]["archive_sha256"] = "0" * 64
    path.write_bytes(canonical_json({**table, "releases": {**table["releases"], "12.9.1": other}}))
    expect_output(bump(), 1, "CUDA 12.9.1 was not written")
    local = json.loads(path.read_bytes())["releases"]["12.9.1"]["compilers"]
    assert local["gcc"]["max"] == 15


def test_nixpkgs_commit_of_new_minor_starts_with_init(up_to_date: FaultServer, bump: Run) -> None:
    publish_cuda(up_to_date, "13.0.2", cuda("13.0.2"))
    (commit,) = json.loads(bump("--format", "nixpkgs-commit").stdout)
    assert commit["commitMessage"] == "cudaPackages_13_0: init at 13.0.2"
    assert (commit["oldVersion"], commit["newVersion"]) == ("", "13.0.2")
    assert commit["commitBody"].startswith("cuda@12.9.0 -> cuda@13.0.2\n")


# -- interruptions


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["_download", "_examine", "_update_tables", "_build_sets"])
def test_interrupted_bump_is_completed_by_next_run(
    up_to_date: FaultServer, bump: Run, run: Run, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """Other tests kill the process at any moment."""
    publish(up_to_date, "cuda", *FIVE["cuda"])

    def end(*_: object) -> None:
        raise ZeroDivisionError

    with patching() as patch:
        patch(Bump, stage, end)
        assert bump().exit_code == 70
    assert statuses(bump("--check", "--json")) == {"cuda": "would-bump"}
    result = expect_output(bump("--format", "commit-message"), 0)
    assert result.stdout.startswith("cuda: 12.9.0 -> 12.9.1\n")
    assert_consistent(run, up_to_date)
    assert bump("--format", "commit-message").stdout == ""


def test_unwritten_commit_message_is_written_by_next_run(
    two_newer: FaultServer, bump: Run, run: Run
) -> None:
    Path("message").mkdir()
    assert bump("--write-commit-message", "message").exit_code == 3
    Path("message").rmdir()
    two_newer.requests.clear()
    assert statuses(bump("--redist", "nccl", "--json")) == {"nccl": "bumped"}
    assert bump("--write-commit-message", "message").exit_code == 0
    message = Path("message").read_text()
    assert message.startswith("cudnn: 9.10.1 -> 9.10.2\n\ncudnn@9.10.1 -> cudnn@9.10.2\n")
    assert not two_newer.count(".xz")
    assert bump().stdout == "nothing is new\n"
    assert not list(DATA.rglob(".*"))


def test_older_line_is_added_after_newer_line(up_to_date: FaultServer, bump: Run, run: Run) -> None:
    publish(up_to_date, "cuda", "12.9.0", "13.0.1", "13.1.0")
    slow = "/compute/cuda/redist/redistrib_13.0.1.json"
    up_to_date.misbehave(slow, faults.status(500))
    Path("message").mkdir()
    # As if the run was killed between the newer and the older line.
    assert bump("--write-commit-message", "message", "--no-process").exit_code == 3
    up_to_date.behave()
    result = bump("--no-process", "--json")
    assert [(r["old"], r["new"]) for r in report(result)["releases"]] == [
        ("12.9.0", "13.0.1"),
        ("12.9.0", "13.1.0"),
    ]


def test_manifest_without_lock_entry_is_processed_again(
    two_newer: FaultServer, bump: Run, run: Run
) -> None:
    """As after a power failure between writing the manifest and the lock."""
    lock = DATA / "lock.json"
    recorded = lock.read_bytes()
    bump("--no-process")
    lock.write_bytes(recorded)
    result = expect_output(bump("--no-process", "--json"), 0)
    assert statuses(result) == dict.fromkeys(TWO, "bumped")
    assert_consistent(run, two_newer, "no-features")


# -- calls


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "no local manifests"),
        (("--redist", "cudn"), "did you mean"),
    ],
)
def test_invalid_options_exit_2(
    bump: Run, options: tuple[str, ...], message: str, server: FaultServer
) -> None:
    (DATA / "manifests").mkdir(parents=True)
    expect_error(bump(*options), 2, message)


def test_bump_of_wheel_channel_writes_features_and_tables(run: Run, pip_folder: Path) -> None:
    """Run from the package index to validated sets."""
    nvcc = {
        "nvidia/cuda_nvcc/bin/ptxas": ptxas(PROFILES_12_9),
        "nvidia/cuda_nvcc/bin/nvcc": b"nvcc",
        "nvidia/cuda_nvcc/include/crt/host_config.h": host_config(gcc=14, clang=19),
    }
    runtime = {
        "nvidia/cuda_runtime/lib/libcudart.so.12": library("x86_64", "libcudart.so.12"),
        "nvidia/cuda_runtime/include/cuda_runtime.h": b"//",
    }
    bump = ("bump", "--channel", "wheels", "--no-shipped-data", "-q")

    def put(label: str, number: str) -> None:
        needs = [f"nvidia-cuda-{name}-cu12=={number}.*" for name in ("nvcc", "runtime")]
        put_wheel(pip_folder, "cuda-toolkit", label, requires=needs)
        for name, files in (("nvcc", nvcc), ("runtime", runtime)):
            put_wheel(
                pip_folder, f"nvidia-cuda-{name}-cu12", number, files, tag="manylinux2014_x86_64"
            )

    put("12.9.0", "12.9.70")
    assert run(*bump, "--redist", "cuda").exit_code == 0
    put("12.9.1", "12.9.79")
    (DATA / "manifests/wheels/.lock.json.0123456789ab.tmp").write_text("as a killed run leaves it")
    result = expect_output(run(*bump, "--json"), 0)
    assert statuses(result) == {"cuda": "bumped"}
    assert not list(DATA.rglob(".*"))
    assert (DATA / "features/wheels/cuda/feature_12.9.1.json").exists()
    assert "12.9.1" in json.loads((DATA / "gpus.json").read_bytes())["sources"]
    assert report(result)["releases"][0]["files"][0] == "features/wheels/cuda/feature_12.9.1.json"
    assert run(*bump).stdout == "nothing is new\n"


def test_bump_adds_releases_to_tables_of_symbols(
    two_newer: FaultServer, bump: Run, run: Run
) -> None:
    assert run("update-symbols", "--base-url", two_newer.url, "-q").exit_code == 0
    result = expect_output(bump("--json"), 0)
    table = json.loads((DATA / "symbols/nccl.so.1.json").read_bytes())
    assert all(set(FIVE["nccl"]) == set(one["releases"]) for one in table["providers"])
    (files,) = [one["files"] for one in report(result)["releases"] if one["redist"] == "nccl"]
    assert "symbols/nccl.so.1.json" in files
