"""The cron job of a distribution: bump, build, check and export of declared sets."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.bumps import publish
from support.running import report, snapshot
from support.server import FaultServer
from support.set_inputs import put_policy, rule

SETS = """
[tool.cudaredist]
channel = "redist"
sets-folder = "sets"

[[tool.cudaredist.sets]]
cuda = ["12.9"]
platforms = ["linux-x86_64", "linux-sbsa"]
overlays = ["ours"]

[[tool.cudaredist.sets]]
name = "hopper"
cuda = ["12.9"]
platforms = ["linux-x86_64"]
capabilities = ["9.0"]
overlays = ["ours"]
"""


@pytest.fixture
def bump(run: Run, server: FaultServer) -> Run:
    """Run bump against the server, in a folder with declared sets and an overlay."""
    publish(server, "cuda", "12.9.0")
    publish(server, "cudnn", "9.10.1")
    Path("pyproject.toml").write_text(SETS)
    put_policy(Path("ours"), "withheld", withheld={"cudnn": rule()})
    Path("data/manifests").mkdir(parents=True)
    call = ("bump", "--base-url", server.url, "--retries", 0, "-q", "-j", 2)

    def invoke(*more: object) -> Any:
        return run(*call, *more)

    result = invoke("--redist", "cuda", "--redist", "cudnn")
    assert result.exit_code == 0, result.output
    return invoke


def statuses(folder: str) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): json.loads(path.read_text())["packages"]["cudnn"][
            "status"
        ]
        for path in Path(folder).rglob("cuda-*.json")
    }


def job(run: Run, bump: Run) -> list[int]:
    """Run the cron job, and return the exit codes."""
    commands = (
        ("build",),
        ("check", "--offline"),
        ("export", "nix", "sets/index.json", "-o", "nix"),
    )
    return [bump().exit_code, *(run(*command).exit_code for command in commands)]


def test_job_of_a_distribution_is_stable(server: FaultServer, run: Run, bump: Run) -> None:
    assert job(run, bump) == [0, 0, 0, 0]
    first = snapshot(Path("sets")) | snapshot(Path("nix"))
    assert job(run, bump) == [0, 0, 0, 0]
    assert snapshot(Path("sets")) | snapshot(Path("nix")) == first
    publish(server, "cuda", "12.9.0", "12.9.1")
    publish(server, "cudnn", "9.10.1", "9.10.2")
    assert bump().exit_code == 0
    assert run("check", "--offline").exit_code == 1
    assert job(run, bump) == [0, 0, 0, 0]
    assert statuses("sets") == {
        "linux-sbsa/cuda-12.9.1.json": "withheld",
        "linux-x86_64/cuda-12.9.1-hopper.json": "withheld",
        "linux-x86_64/cuda-12.9.1.json": "withheld",
    }


def test_bump_writes_declared_sets_with_their_overlays(
    server: FaultServer, run: Run, bump: Run
) -> None:
    publish(server, "cudnn", "9.10.1", "9.10.2")
    sets = report(bump("--output", "new", "--json"))["sets"]
    assert {one["path"] for one in sets} == {f"new/{path}" for path in statuses("new")}
    assert set(statuses("new").values()) == {"withheld"}
    assert len(sets) == 3
    Path("pyproject.toml").write_text(SETS.replace('"hopper"', '"ada"'))
    publish(server, "cuda", "12.9.0", "12.9.1")
    assert bump("--output", "new").exit_code == 0
    assert any("ada" in path for path in statuses("new"))
    assert not any("hopper" in path for path in statuses("new"))


def test_bump_reports_a_wrong_declaration(server: FaultServer, bump: Run) -> None:
    Path("pyproject.toml").write_text(SETS.replace('"12.9"', '"12.7"'))
    publish(server, "cudnn", "9.10.1", "9.10.2")
    result = bump()
    assert result.exit_code == 3
    assert "pyproject.toml:6: no local manifest of CUDA '12.7'" in result.output
