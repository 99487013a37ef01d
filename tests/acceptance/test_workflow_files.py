"""Tests of the GitHub action, its workflows, and those on pages."""

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from conftest import REPOSITORY, SAMPLE, Run
from support.bumps import product
from support.optional_programs import needs
from support.pages import FENCED
from support.running import completed
from support.server import FaultServer

if TYPE_CHECKING:
    import subprocess

SCRIPTS = Path(sys.executable).parent
DUMMY = "owner/cudaredist@" + "0" * 40
WORKFLOWS = sorted(REPOSITORY.glob(".github/workflows/*.yml"))
ACTION: dict[str, Any] = yaml.safe_load((REPOSITORY / "action.yml").read_text())

needs_checkers = pytest.mark.skipif(
    not all((SCRIPTS / name).exists() for name in ("zizmor", "check-jsonschema")),
    reason="zizmor or check-jsonschema is missing; run make setup",
)


def files_of_pages(folder: Path) -> dict[str, list[Path]]:
    """Write the workflows and GitLab files on pages, by the name of their schema."""
    files: dict[str, list[Path]] = {"github-workflows": [], "gitlab-ci": []}
    for page in sorted(REPOSITORY.glob("docs/*.md")):
        for number, text in enumerate(FENCED.findall(page.read_text())):
            kind = "github-workflows" if text.startswith("name: ") else "gitlab-ci"
            if kind == "github-workflows" or "$CI_PIPELINE_SOURCE" in text:
                path = folder / ".github/workflows" / f"{page.stem}-{number}.yml"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text.replace("OWNER/cudaredist@COMMIT", DUMMY))
                files[kind].append(path)
    return files


def check(*words: object) -> None:
    process = completed(SCRIPTS / str(words[0]), *words[1:])
    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.slow
@needs_checkers
def test_workflows_fit_schemas_and_have_no_known_weakness(tmp_path: Path) -> None:
    files = files_of_pages(tmp_path)
    assert list(map(len, files.values())) == [3, 1]
    files["github-workflows"] += WORKFLOWS
    files["github-issue-forms"] = [REPOSITORY / ".github/ISSUE_TEMPLATE/bug.yml"]
    files["github-issue-config"] = [REPOSITORY / ".github/ISSUE_TEMPLATE/config.yml"]
    files["github-actions"] = [REPOSITORY / "action.yml"]
    for kind, paths in files.items():
        check("check-jsonschema", "--builtin-schema", f"vendor.{kind}", *paths)
    check("zizmor", "--offline", *files["github-workflows"], *files["github-actions"])


@needs_checkers
def test_zizmor_reports_action_without_hash(tmp_path: Path) -> None:
    path = tmp_path / ".github/workflows/loose.yml"
    path.parent.mkdir(parents=True)
    path.write_text(re.sub("@[0-9a-f]{40}", "@v5", WORKFLOWS[0].read_text()))
    with pytest.raises(AssertionError, match="unpinned-uses"):
        check("zizmor", "--offline", path)


def steps_with_a_script() -> list[dict[str, Any]]:
    return [step for step in ACTION["runs"]["steps"] if "run" in step]


class Runner:
    """GitHub's runner for the scripts of the action."""

    def __init__(self, folder: Path, *, is_installed: bool = True) -> None:
        self.folder = folder
        self.inputs = {name: one["default"] for name, one in ACTION["inputs"].items()}
        self.outputs: dict[str, str] = {}
        self.summary = folder / "summary.md"
        if is_installed:
            script = folder / "cudaredist/bin/cudaredist"
            script.parent.mkdir(parents=True)
            script.write_text(f'#!/bin/sh\nexec {sys.executable} -m cudaredist "$@"\n')
            script.chmod(0o755)

    def run(self, step: dict[str, Any]) -> "subprocess.CompletedProcess[str]":
        output = self.folder / "output"
        output.write_text("")
        process = completed(
            "bash",
            "--noprofile",
            "--norc",
            "-eo",
            "pipefail",
            "-c",
            step["run"],
            cwd=self.folder,
            env={
                "PATH": "/usr/bin:/bin",
                "GITHUB_ACTION_PATH": str(REPOSITORY),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(self.summary),
                "RUNNER_TEMP": str(self.folder),
                **{key: self.value(text) for key, text in step.get("env", {}).items()},
            },
        )
        self.outputs |= dict(line.split("=", 1) for line in output.read_text().splitlines())
        return process

    def value(self, text: str) -> str:
        """Evaluate the expressions in the environment of a step."""
        known = {f"inputs.{name}": value for name, value in self.inputs.items()}
        known |= {f"steps.run.outputs.{name}": value for name, value in self.outputs.items()}
        known |= {"runner.temp": str(self.folder), "steps.python.outputs.python-path": "python3"}
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda match: known[match[1]], text)

    def command(self, command: str, arguments: str) -> tuple[int, str]:
        """Run the step with a command, and return the status of the job and its log."""
        self.inputs |= {"command": command, "arguments": arguments}
        _, run, fail = steps_with_a_script()
        process = self.run(run)
        condition = "steps.run.outputs.exit_code != '0' && steps.run.outputs.findings != 'false'"
        assert fail["if"] == condition
        if process.returncode:
            return process.returncode, process.stdout
        is_failure = self.outputs["exit_code"] != "0" and self.outputs.get("findings") != "false"
        return self.run(fail).returncode if is_failure else 0, process.stdout


@needs("bash")
def test_action_fails_on_findings_and_passes_outputs(run: Run) -> None:
    runner = Runner(Path.cwd())
    run("download-manifests", "--base-url", SAMPLE, "--redist", "cuda", "--max-version", "12.9.0")
    status, log = runner.command("check", f"--base-url {SAMPLE} --redist cuda")
    assert (status, runner.outputs["stale"]) == (1, "true")
    assert runner.outputs.keys() == ACTION["outputs"].keys() - {"count", "report"}
    assert "::warning " in log
    assert "| cuda | 12.9 |" in runner.summary.read_text()


@needs("bash")
def test_action_passes_if_server_is_down(fetch: Run, server: FaultServer, process: Run) -> None:
    server.add_releases("cutensor", product("cutensor", "2.3.0"))
    assert fetch("--redist", "cutensor").exit_code == process().exit_code == 0
    runner = Runner(Path.cwd())
    status, _ = runner.command("check", "--base-url ./missing --redist cutensor")
    assert (status, runner.outputs["exit_code"]) == (0, "3")
    assert (runner.outputs["unreachable"], runner.outputs["findings"]) == ("true", "false")


@pytest.mark.slow
@needs("bash")
def test_action_audits_files_of_a_pattern(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    (tmp_path / "a-program").symlink_to("/bin/sh")
    assert runner.command("audit", "*-program --require-glibc 2.99")[0] == 0
    assert "a-program" in runner.summary.read_text()
    assert (runner.outputs["findings"], runner.outputs["count"]) == ("false", "0")
    assert runner.command("audit", "*-program --require-glibc 2.0")[0] == 1
    assert runner.outputs.keys() == {"exit_code", "findings", "count", "report"}
    assert (runner.outputs["findings"], runner.outputs["count"]) == ("true", "1")
    report = json.loads(Path(runner.outputs["report"]).read_text())
    assert report["command"] == "audit"
    assert report["exit_code"] == 1


@pytest.mark.slow
@needs("bash")
def test_action_takes_no_option_from_the_name_of_a_file(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    for name in ("--help", "--ignore=cuda", "a program"):
        (tmp_path / name).symlink_to("/bin/sh")
    assert runner.command("audit", "--require-glibc 2.0 *m --*")[0] == 2
    assert runner.command("audit", "--require-glibc 2.0 ?-help *program")[0] == 1
    summary = runner.summary.read_text()
    assert ("--help" in summary, "a program" in summary) == (True, True)


@needs("bash")
@pytest.mark.parametrize("command", ["mirror", "a\n::error::b"])
def test_action_rejects_another_command(tmp_path: Path, command: str) -> None:
    status, log = Runner(tmp_path).command(command, "prune")
    assert status == 2
    assert log.splitlines()[1:] == []
    assert log.startswith("::error title=cudaredist::command must be check or audit, not ")


@pytest.mark.network
@needs("bash")
def test_action_installs_itself(tmp_path: Path) -> None:
    runner = Runner(tmp_path, is_installed=False)
    install = steps_with_a_script()[0]
    process = runner.run(install)
    assert process.returncode == 0, process.stderr
    assert runner.command("audit", "/bin/sh")[0] == 0
