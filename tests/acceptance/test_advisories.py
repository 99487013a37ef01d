"""Tests of known vulnerabilities in the answers of commands, with the shipped data."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.bulletins import write_bulletin

ENVIRONMENT = Path("env")
SITE = ENVIRONMENT / "lib/python3.12/site-packages"


def install(project: str, version: str) -> None:
    """Add the metadata of a Python package to an environment."""
    ENVIRONMENT.mkdir(exist_ok=True)
    (ENVIRONMENT / "pyvenv.cfg").touch()
    folder = SITE / f"{project.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    text = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n"
    (folder / "METADATA").write_text(text)
    (folder / "RECORD").touch()


def audit(run: Run, *options: object) -> tuple[int, Any]:
    result = run("audit", ENVIRONMENT, "--json", *options)
    return result.exit_code, json.loads(result.stdout)


def kinds(report: Any) -> list[tuple[str, int]]:
    return [
        (one["kind"], one["exit_code"])
        for one in report["findings"]
        if "vulnerability" in one["kind"]
    ]


def test_audit_reports_installed_wheel_with_known_vulnerability(run: Run) -> None:
    install("nvidia-nvjpeg2k-cu12", "0.8.0.38")
    code, report = audit(run)
    assert (code, kinds(report)) == (0, [("vulnerability", 0)])
    code, report = audit(run, "--advisories")
    assert (code, kinds(report)) == (1, [("vulnerability", 1)])
    finding = next(one for one in report["findings"] if one["kind"] == "vulnerability")
    assert finding["hint"] == "pip install 'nvidia-nvjpeg2k-cu12>=0.8.1'"
    assert {one["cve"] for one in report["vulnerabilities"]} == {
        f"CVE-2024-014{digit}" for digit in "2345"
    }


@pytest.mark.parametrize(
    ("project", "version"),
    [
        ("nvidia-nvjpeg2k-cu12", "0.8.1.40"),
        ("nvidia-cublas-cu12", "12.8.4.1"),
        ("nvidia-cudnn-cu12", "9.1.0.70"),
        ("nvidia-nccl-cu12", "2.20.5"),
        ("tensorrt-llm", "0.10.0"),
    ],
)
def test_audit_is_silent_about_other_wheels(run: Run, project: str, version: str) -> None:
    install(project, version)
    code, report = audit(run, "--advisories")
    assert (code, report["vulnerabilities"]) == (0, [])


def test_audit_of_unknown_release_is_incomplete_with_option(run: Run) -> None:
    install("nvidia-nvjpeg-cu12", "12.99.1")
    assert audit(run)[0] == 0
    code, report = audit(run, "--advisories")
    assert (code, kinds(report)) == (3, [("unknown-vulnerability", 3)])


def test_affected_wheel_takes_precedence_over_unknown_one(run: Run) -> None:
    install("nvidia-nvjpeg-cu12", "12.99.1")
    install("nvidia-nvjpeg2k-cu12", "0.8.0.38")
    assert audit(run, "--advisories")[0] == 1


def test_sarif_has_required_fields(run: Run) -> None:
    install("nvidia-nvjpeg2k-cu12", "0.8.0.38")
    result = run("audit", ENVIRONMENT, "--format", "sarif", "--advisories")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert (document["version"], len(document["runs"])) == ("2.1.0", 1)
    (sarif_run,) = document["runs"]
    driver = sarif_run["tool"]["driver"]
    assert driver["name"] == "cudaredist"
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(set(rules)) == len(rules)
    assert sarif_run["results"]
    for one in sarif_run["results"]:
        assert rules[one["ruleIndex"]] == one["ruleId"]
        assert one["level"] in {"error", "warning", "note", "none"}
        assert one["message"]["text"]
        for location in one.get("locations", ()):
            assert location["physicalLocation"]["artifactLocation"]["uri"]
    assert all(one["executionSuccessful"] is True for one in sarif_run["invocations"])


def test_explain_names_vulnerabilities(run: Run) -> None:
    package = json.loads(run("explain", "package", "cuda_cuobjdump", "--json").stdout)
    own = {one["cve"]: one for one in package["vulnerabilities"] if one["state"] == "affected"}
    assert own["CVE-2024-0110"]["fixed"] == "12.6.1"
    assert own["CVE-2024-0110"]["releases"][-1] == "12.6.0"
    other = json.loads(run("explain", "package", "libcublas", "--json").stdout)
    assert other["vulnerabilities"] == []
    driver = run("explain", "driver", "535.104").stdout
    assert "CVE-2024-0090 7.8: affected, fixed in 535.183.01" in driver
    cuda = run("explain", "cuda", "12.9").stdout
    assert "known vulnerabilities of CUDA 12.9." in cuda
    which = json.loads(run("which", "libnvjpeg.so.12", "--json").stdout)
    assert {one["package"] for one in which["vulnerabilities"]} == {"libnvjpeg"}


def test_check_names_new_and_changed_bulletins(run: Run) -> None:
    write_bulletin(Path("bulletins"))
    assert run("update-advisories", "--source", "bulletins").exit_code == 0
    result = run("check", "--offline", "--json")
    found = [one for one in json.loads(result.stdout)["findings"] if "bulletin" in one["kind"]]
    assert [(one["kind"], one["exit_code"]) for one in found] == [("new-bulletin", 1)]
    policy = Path("data/policy/advisories.json")
    assert "9001" in found[0]["message"]
    assert not policy.exists()


def test_exports_of_set_have_vulnerabilities_with_option(run: Run) -> None:
    run("build", "--cuda", "12.6.3", "--platform", "linux-x86_64", "-o", "set.json")
    vex = json.loads(run("export", "vex", "set.json").stdout)
    by_state = {
        (one["id"], one["analysis"]["state"]): [place["ref"] for place in one["affects"]]
        for one in vex["vulnerabilities"]
    }
    own = by_state["CVE-2025-23274", "exploitable"]
    assert [reference.rpartition("#")[2] for reference in own] == ["package:libnvjpeg"]
    places = {place for own in by_state.values() for place in own}
    assert not any("cudnn" in place or "nccl" in place for place in places)
    plain = json.loads(run("export", "cyclonedx", "set.json").stdout)
    assert "vulnerabilities" not in plain
    bom = json.loads(run("export", "cyclonedx", "set.json", "--advisories").stdout)
    assert {"CVE-2025-23272", "CVE-2025-23274"} <= {one["id"] for one in bom["vulnerabilities"]}
    assert run("export", "spdx", "set.json", "--advisories").exit_code == 2
    summary = json.loads(run("explain", "set", "set.json", "--json").stdout)
    assert {one["package"] for one in summary["vulnerabilities"]} == {"libnvjpeg"}


def test_local_bulletin_completes_the_shipped_ones(run: Run) -> None:
    row = ("Linux", "cuDNN", "All versions prior to 99.1", "99.1")
    write_bulletin(Path("bulletins"), [row], description="cuDNN has a vulnerability.")
    assert run("update-advisories", "--source", "bulletins").exit_code == 0
    report = json.loads(run("explain", "package", "cudnn", "--json").stdout)
    assert {one["cve"] for one in report["vulnerabilities"]} == {"CVE-2030-1000"}
