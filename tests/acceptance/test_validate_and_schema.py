"""validate and schema: which file is what, what is wrong with it, and what it should look like."""

import json
import os
import re
from pathlib import Path

import jsonschema
import pytest
from conftest import SAMPLE, Run
from support.factory import manifest
from support.set_inputs import Release, put_data

from cudaredist.jsontext import canonical_json
from cudaredist.schema.registry import schema_problems, shipped_schema
from tools.schemas import made_schemas

FIXTURES = Path(__file__).parents[1] / "fixtures"
LOCK = {"schema_version": 1, "redists": {"cuda": {"12.9.1": {"sha256": "a" * 64, "size": 5}}}}


def write(name: str, data: bytes) -> Path:
    path = Path(name)
    path.write_bytes(data)
    return path


def test_knows_manifests_from_our_own_files(run: Run) -> None:
    own = write("anything.json", canonical_json(LOCK))
    manifest = SAMPLE / "compute/cuda/redist/redistrib_12.9.1.json"
    result = run("validate", own, manifest, "--json")
    assert result.exit_code == 0
    verdicts = json.loads(result.stdout)["files"]
    assert [(v["kind"], v["valid"]) for v in verdicts] == [("lock", True), ("manifest", True)]


def test_says_what_a_manifest_holds(run: Run) -> None:
    result = run("validate", FIXTURES / "manifests" / "mixed_flat_and_nested_in_one_platform.json")
    assert "valid manifest, mixed, label 9.27.0: 1 packages, 3 archives" in result.stdout


def test_every_problem_is_shown_with_its_path(run: Run) -> None:
    result = run("validate", FIXTURES / "broken" / "many_problems.json")
    assert result.exit_code == 5
    assert "cuda_nvcc.linux-x86_64.sha256: expected 64 hex digits, got 63" in result.stdout
    assert "cuda_nvcc.linux-sbsa.size: expected a positive number" in result.stdout


def test_validate_with_quiet_prints_no_warnings(run: Run) -> None:
    odd = FIXTURES / "manifests" / "unknown_key_in_a_package.json"
    shown, quiet = run("validate", odd), run("validate", odd, "--quiet")
    assert shown.exit_code == quiet.exit_code == 0
    lines = shown.stdout.splitlines(keepends=True)
    assert quiet.stdout == "".join(line for line in lines if "    warning: " not in line)
    assert quiet.stdout != shown.stdout


def test_one_bad_file_does_not_hide_the_others(run: Run) -> None:
    good = write("good.json", canonical_json(LOCK))
    result = run("validate", "missing.json", FIXTURES / "broken" / "html.json", good)
    assert result.exit_code == 5
    assert "missing.json: no such file" in result.stdout
    assert "good.json: valid lock file" in result.stdout


def test_a_missing_file_is_incomplete(run: Run) -> None:
    assert run("validate", "missing.json").exit_code == 3


def test_a_folder_is_no_file(run: Run) -> None:
    assert run("validate", ".").exit_code == 3


def test_warnings_pass_and_strict_refuses_them(run: Run) -> None:
    path = FIXTURES / "manifests" / "unknown_platform.json"
    result = run("validate", path)
    assert (result.exit_code, "warning: cuda_nvcc.linux-riscv64" in result.stdout) == (0, True)
    assert run("validate", path, "--strict").exit_code == 5


def test_the_folders_name_tells_the_product(run: Run) -> None:
    Path("cudnn").mkdir()
    data = (FIXTURES / "manifests" / "flat.json").read_bytes()
    path = write("cudnn/redistrib_12.9.1.json", data)
    assert "names the product 'cuda', expected cudnn" in run("validate", path).stdout


@pytest.mark.parametrize(
    ("document", "says"),
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
            id="no label",
        ),
        pytest.param({"schema_version": 1, "what": {}}, "not of a known kind", id="unknown kind"),
    ],
)
def test_our_own_files_are_held_to_their_schema(run: Run, document: object, says: str) -> None:
    result = run("validate", write("x.json", canonical_json(document)))
    assert result.exit_code == 5
    assert says in result.stdout


def test_a_valid_file_in_another_form_is_a_finding(run: Run) -> None:
    result = run("validate", write("lock.json", json.dumps(LOCK).encode()))
    assert result.exit_code == 1
    assert "not in canonical form" in result.stdout


def test_what_is_no_file_is_not_waited_for(run: Run) -> None:
    os.mkfifo("pipe")
    result = run("validate", "pipe", "/dev/zero")
    assert result.exit_code == 3
    assert result.stdout.count("not a regular file") == 2


def test_a_file_nested_too_deep(run: Run) -> None:
    deep = b'{"schema_version": 1, "redists": ' + b"[" * 900 + b"]" * 900 + b"}"
    assert run("validate", write("x.json", deep)).exit_code == 5


def test_a_label_that_no_command_could_read_is_refused(run: Run) -> None:
    entry = {"sha256": "a" * 64, "size": 5}
    odd = {"schema_version": 1, "redists": {"cuda": {"1." + "0" * 100: entry}}}
    assert run("validate", write("x.json", canonical_json(odd))).exit_code == 5


def test_a_flood_of_warnings_is_cut(run: Run) -> None:
    document = json.loads(manifest()) | {f"key_{n}": n for n in range(5000)}
    result = run("validate", write("redistrib_12.9.1.json", json.dumps(document).encode()))
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) < 110
    assert "warning: and 4900 more" in result.stdout


def test_a_flood_of_problems_is_cut(run: Run) -> None:
    many = json.dumps({f"p{n}": {} for n in range(5000)}).encode()
    result = run("validate", write("redistrib_1.2.json", many))
    assert len(result.stdout.splitlines()) < 110
    assert "and 4900 more" in result.stdout


# -- schema


def test_lists_the_kinds(run: Run) -> None:
    result = run("schema")
    names = sorted(made_schemas())
    assert [line.split()[0] for line in result.stdout.splitlines()] == names
    listed = json.loads(run("schema", "--json").stdout)["schemas"]
    assert [kind["name"] for kind in listed] == names


@pytest.mark.parametrize("name", made_schemas())
def test_prints_a_schema_that_is_one(run: Run, name: str) -> None:
    result = run("schema", name)
    assert result.exit_code == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(result.stdout))


@pytest.mark.parametrize(("name", "schema"), made_schemas().items())
def test_shipped_schemas_are_those_that_make_schemas_writes(
    name: str, schema: dict[str, object]
) -> None:
    assert shipped_schema(name).encode() == canonical_json(schema), "run `make schemas`"


BEYOND_A_SCHEMA = re.compile(
    "one_character_off|key_twice|climbs|lone_surrogate|control_character|release_date_that_is_none|"
    "package_(empty|none|of_paths)|platform_missing|early_without_platform"
)
"""Broken manifests that only `validate` refuses: it compares names, paths and dates."""


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*/*.json")), ids=lambda path: path.stem)
def test_schema_of_manifests_accepts_the_good_and_refuses_the_broken_ones(path: Path) -> None:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return
    is_broken = path.parent.name == "broken"
    problems = schema_problems(document, "manifest")
    if not is_broken:
        assert problems == []
    elif not BEYOND_A_SCHEMA.search(path.stem):
        assert problems != []


# -- policies of an overlay


@pytest.mark.parametrize(
    ("name", "content", "code", "says"),
    [
        ("withheld", {"withheld": {"libcublasmp": None}}, 0, "valid policy-withheld file"),
        ("fixups", {"urls": {"mylib": "https://x.test/"}}, 0, "valid policy-fixups file"),
        ("licenses", {"packages": {}, "redists": {}}, 0, "valid policy-licenses file"),
        ("withheld", {"withheld": {"libcublasm": None}}, 5, "did you mean libcublasmp"),
        ("withheld", {"withheld": {"x": {"reason": "r"}}}, 5, "withheld.x: 'reference' is a req"),
        ("withheld", {"withhold": {}}, 5, "'withhold' was unexpected"),
    ],
)
def test_policies_of_overlays_are_judged_with_what_they_change(
    run: Run, name: str, content: dict[str, object], code: int, says: str
) -> None:
    Path("policy").mkdir()
    document = json.dumps({"schema_version": 1, **content})
    result = run("validate", write(f"policy/{name}.json", document.encode()))
    assert (result.exit_code, says in result.stdout) == (code, True), result.stdout


# -- feature files in nixpkgs' form


LEGACY = {
    "cuda_cudart": {"linux-x86_64": {"outputs": {"bin": False, "lib": True}}},
    "cudnn": {"linux-x86_64": {"cuda12": {"outputs": {"dev": True}}}},
}


def test_feature_files_in_the_form_of_nixpkgs_are_valid(run: Run) -> None:
    result = run("validate", write("feature_12.9.1.json", json.dumps(LEGACY).encode()))
    assert (result.exit_code, result.stdout.count("valid legacy-features file")) == (0, 1)


def test_feature_files_in_the_form_of_nixpkgs_show_problems_with_their_paths(run: Run) -> None:
    broken = LEGACY | {"x": {"linux-x86_64": {"outputs": {"bin": 1}}}}
    result = run("validate", write("feature_12.9.1.json", json.dumps(broken).encode()))
    assert result.exit_code == 5
    assert "not a valid legacy-features file" in result.stdout
    assert "x.linux-x86_64" in result.stdout


def test_suggests_on_a_typo(run: Run) -> None:
    result = run("schema", "locks")
    assert result.exit_code == 2
    assert "did you mean lock?" in result.stderr


def test_manifests_with_one_path_and_different_bytes_are_reported(run: Run, tmp_path: Path) -> None:
    for label in ("2.29.2-cuda12.9", "2.29.2-cuda13.1", "2.31.2-cuda13.3"):
        put_data(tmp_path, Release("nccl", label, {"nccl": ["linux-x86_64"]}))
    files = sorted((tmp_path / "manifests" / "nccl").iterdir())
    result = run("validate", *files, "--json")
    warnings = [verdict["warnings"] for verdict in json.loads(result.stdout)["files"]]
    path = "nccl/linux-x86_64/nccl-linux-x86_64-2.29.2-archive.tar.xz"
    assert [len(found) for found in warnings] == [0, 1, 0]
    assert warnings[1][0].startswith(
        f"{path} is a different file in redistrib_2.29.2-cuda12.9.json"
    )
    assert result.exit_code == 0


def test_problem_of_an_archive_names_the_key_and_not_the_whole_archive() -> None:
    unknown = {"platform": "linux-x86_64", "status": "examined", "licences": {}}
    features = {"packages": {"libcublas": {"archives": [unknown]}}}
    problems = [p for p in schema_problems(features, "features") if "archives" in p.path]
    assert [p.path for p in problems] == ["packages.libcublas.archives[0]"]
    assert "'licences'" in problems[0].message
    assert "'status'" not in problems[0].message
