"""Tests of the validate and schema commands."""

import json
import os
import re
from pathlib import Path

import jsonschema
import pytest
from conftest import REPOSITORY, SAMPLE, Run
from support.factory import manifest
from support.running import expect_error, expect_output
from support.set_inputs import Release, put_data

from cudaredist.formats.registry import schema_problems, shipped_schema
from cudaredist.jsontext import canonical_json, load_json
from tools.schemas import made_schemas

FIXTURES = REPOSITORY / "tests/fixtures"
NAMES = sorted(path.stem for path in (REPOSITORY / "cudaredist/schemas").glob("*.json"))
LOCK = {"schema_version": 1, "redists": {"cuda": {"12.9.1": {"sha256": "a" * 64, "size": 5}}}}


def write(name: str, data: bytes) -> Path:
    path = Path(name)
    path.write_bytes(data)
    return path


def test_validate_distinguishes_manifests_and_own_files(run: Run) -> None:
    own = write("anything.json", canonical_json(LOCK))
    manifest = SAMPLE / "compute/cuda/redist/redistrib_12.9.1.json"
    result = expect_output(run("validate", own, manifest, "--json"), 0)
    verdicts = json.loads(result.stdout)["files"]
    assert [(v["kind"], v["valid"]) for v in verdicts] == [("lock", True), ("manifest", True)]


def test_validate_lists_problems_with_paths(run: Run) -> None:
    result = run("validate", FIXTURES / "broken" / "many_problems.json")
    assert result.exit_code == 5
    assert "cuda_nvcc.linux-x86_64.sha256: expected 64 hex digits, got 63" in result.stdout
    assert "cuda_nvcc.linux-sbsa.size: expected a positive number" in result.stdout


def test_validate_with_quiet_prints_no_warnings(run: Run) -> None:
    odd = FIXTURES / "manifests" / "unknown_key_in_a_package.json"
    verbose, quiet = run("validate", odd), run("validate", odd, "--quiet")
    assert verbose.exit_code == quiet.exit_code == 0
    lines = verbose.stdout.splitlines(keepends=True)
    assert quiet.stdout == "".join(line for line in lines if "    warning: " not in line)
    assert quiet.stdout != verbose.stdout


def test_validate_reports_every_file(run: Run) -> None:
    good = write("good.json", canonical_json(LOCK))
    result = run("validate", "missing.json", FIXTURES / "broken" / "html.json", good)
    assert result.exit_code == 5
    assert "missing.json: no such file" in result.stdout
    assert "good.json: valid lock file" in result.stdout


def test_validate_of_missing_file_exits_3(run: Run) -> None:
    assert run("validate", "missing.json").exit_code == 3


def test_validate_accepts_warnings_unless_strict(run: Run) -> None:
    path = FIXTURES / "manifests" / "unknown_platform.json"
    result = run("validate", path)
    assert (result.exit_code, "warning: cuda_nvcc.linux-riscv64" in result.stdout) == (0, True)
    assert run("validate", path, "--strict").exit_code == 5


def test_validate_expects_product_of_folder_name(run: Run) -> None:
    Path("cudnn").mkdir()
    data = (FIXTURES / "manifests" / "flat.json").read_bytes()
    path = write("cudnn/redistrib_12.9.1.json", data)
    assert "names the product 'cuda', expected cudnn" in run("validate", path).stdout


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param({**LOCK, "more": 1}, "'more' was unexpected", id="unknown key"),
        pytest.param({"schema_version": 2, "redists": {}}, "schema_version", id="version"),
        pytest.param(
            {"schema_version": 1, "redists": {"cuda": {"12.9.1": {"sha256": "a", "size": 5}}}},
            "redists.cuda.12.9.1.sha256",
            id="short hash",
        ),
        pytest.param(
            {"schema_version": 1, "redists": {"cuda": {"latest": {"sha256": "a" * 64, "size": 5}}}},
            "'latest'",
            id="invalid label",
        ),
        pytest.param({"schema_version": 1, "what": {}}, "not of a known kind", id="unknown kind"),
    ],
)
def test_validate_checks_own_files_against_schema(run: Run, document: object, message: str) -> None:
    expect_output(run("validate", write("x.json", canonical_json(document))), 5, message)


def test_validate_of_non_canonical_file_exits_1(run: Run) -> None:
    result = run("validate", write("lock.json", json.dumps(LOCK).encode()))
    assert result.exit_code == 1
    assert "not in canonical form" in result.stdout


def test_fix_writes_valid_files_of_ours_in_canonical_form(run: Run) -> None:
    policy = {"constraints": [], "schema_version": 1}
    Path("policy").mkdir()
    files = {
        "lock.json": (LOCK, 0),
        "policy/constraints.json": (policy, 0),
        "bad.json": ({**LOCK, "redists": 3}, 5),
    }
    for name, (document, code) in files.items():
        before = json.dumps(document, indent=7).encode()
        Path(name).write_bytes(before)
        assert run("validate", "--fix", name).exit_code == code, name
        assert Path(name).read_bytes() == (before if code else canonical_json(document))
        assert run("validate", name).exit_code == code


def test_validate_of_pipe_or_device_exits_3(run: Run) -> None:
    os.mkfifo("pipe")
    result = expect_output(run("validate", "pipe", "/dev/zero"), 3)
    assert result.stdout.count("not a regular file") == 2


def test_validate_of_deeply_nested_file_exits_5(run: Run) -> None:
    deep = b'{"schema_version": 1, "redists": ' + b"[" * 64 + b"]" * 64 + b"}"
    expect_output(run("validate", write("x.json", deep)), 5, "nested more than 64 levels deep")


def test_validate_limits_number_of_warnings(run: Run) -> None:
    document = json.loads(manifest()) | {f"key_{n}": n for n in range(500)}
    result = run("validate", write("redistrib_12.9.1.json", json.dumps(document).encode()))
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) < 110
    assert "warning: and 400 more" in result.stdout


# -- schema


@pytest.fixture(scope="module")
def made() -> dict[str, dict[str, object]]:
    """Return the schemas of the models."""
    return made_schemas()


def test_schema_lists_kinds(run: Run, made: dict[str, dict[str, object]]) -> None:
    result = run("schema")
    assert sorted(made) == NAMES
    assert [line.split()[0] for line in result.stdout.splitlines()] == NAMES
    listed = json.loads(run("schema", "--json").stdout)["schemas"]
    assert [kind["name"] for kind in listed] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_schema_prints_valid_schema_of_the_models(
    run: Run, made: dict[str, dict[str, object]], name: str
) -> None:
    result = expect_output(run("schema", name), 0)
    jsonschema.Draft202012Validator.check_schema(json.loads(result.stdout))
    assert shipped_schema(name).encode() == canonical_json(made[name]), "run `make schemas`"


BEYOND_A_SCHEMA = re.compile(
    "one_character_off|key_twice|climbs|lone_surrogate|control_character|release_date_that_is_none|"
    "package_(empty|none|of_paths)|platform_missing|early_without_platform"
)
"""Broken manifests that only `validate` rejects, by comparing names, paths and dates."""


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*/*.json")), ids=lambda path: path.stem)
def test_manifest_schema_accepts_valid_and_rejects_broken_manifests(path: Path) -> None:
    try:
        document = load_json(path.read_bytes())
    except ValueError:
        return
    is_broken = path.parent.name == "broken"
    problems = schema_problems(document, "manifest")
    if not is_broken:
        assert problems == []
    elif not BEYOND_A_SCHEMA.search(path.stem):
        assert problems != []


# -- overlay policies


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("withheld", {"withheld": {"libnvsdm": None}}, 0, "valid policy-withheld file"),
        ("fixups", {"urls": {"mylib": "https://x.test/"}}, 0, "valid policy-fixups file"),
        ("licenses", {"packages": {}, "redists": {}}, 0, "valid policy-licenses file"),
        ("withheld", {"withheld": {"libnvsd": None}}, 5, "did you mean libnvsdm"),
        ("withheld", {"withheld": {"x": {"reason": "r"}}}, 5, "withheld.x: 'reference' is a req"),
        ("withheld", {"withhold": {}}, 5, "'withhold' was unexpected"),
    ],
)
def test_validate_checks_overlay_policies(
    run: Run, name: str, content: dict[str, object], code: int, message: str
) -> None:
    Path("policy").mkdir()
    document = json.dumps({"schema_version": 1, **content})
    result = run("validate", write(f"policy/{name}.json", document.encode()))
    assert (result.exit_code, message in result.stdout) == (code, True), result.stdout


# -- feature files in nixpkgs' form


LEGACY = {
    "cuda_cudart": {"linux-x86_64": {"outputs": {"bin": False, "lib": True}}},
    "cudnn": {"linux-x86_64": {"cuda12": {"outputs": {"dev": True}}}},
}


def test_legacy_feature_file_is_valid(run: Run) -> None:
    result = run("validate", write("feature_12.9.1.json", json.dumps(LEGACY).encode()))
    assert (result.exit_code, result.stdout.count("valid legacy-features file")) == (0, 1)


def test_legacy_feature_file_problems_have_paths(run: Run) -> None:
    broken = LEGACY | {"x": {"linux-x86_64": {"outputs": {"bin": 1}}}}
    result = run("validate", write("feature_12.9.1.json", json.dumps(broken).encode()))
    assert result.exit_code == 5
    assert "not a valid legacy-features file" in result.stdout
    assert "x.linux-x86_64" in result.stdout


def test_schema_of_misspelled_kind_suggests_name(run: Run) -> None:
    expect_error(run("schema", "locks"), 2, "did you mean lock or")


def test_manifests_with_same_path_and_different_bytes_are_reported(
    run: Run, tmp_path: Path
) -> None:
    for label in ("2.29.2-cuda12.9", "2.29.2-cuda13.1", "2.31.2-cuda13.3"):
        put_data(tmp_path, Release("nccl", label, {"nccl": ["linux-x86_64"]}))
    files = sorted((tmp_path / "manifests" / "nccl").iterdir())
    result = run("validate", *files, "--json")
    warnings = [verdict["warnings"] for verdict in json.loads(result.stdout)["files"]]
    path = "nccl/linux-x86_64/nccl-linux-x86_64-2.29.2-archive.tar.xz"
    assert [len(messages) for messages in warnings] == [0, 1, 0]
    assert warnings[1][0].startswith(
        f"{path} is a different file in redistrib_2.29.2-cuda12.9.json"
    )
    assert result.exit_code == 0


def test_problem_in_archive_names_key_only() -> None:
    unknown = {"platform": "linux-x86_64", "status": "examined", "licences": {}}
    features = {"packages": {"libcublas": {"archives": [unknown]}}}
    problems = [p for p in schema_problems(features, "features") if "archives" in p.path]
    assert [p.path for p in problems] == ["packages.libcublas.archives[0]"]
    assert "'licences'" in problems[0].message
    assert "'status'" not in problems[0].message
