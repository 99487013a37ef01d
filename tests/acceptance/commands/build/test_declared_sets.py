"""Package sets that a configuration file declares: build, check, bump, validate, site, export."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from support.running import expect_error
from support.set_inputs import (
    JETSON,
    LINUX,
    SBSA,
    WINDOWS,
    Release,
    cuda,
    library,
    put_data,
    put_policy,
    rule,
)

from cudaredist.cli.configuration import read_configuration
from cudaredist.commands.build.declared_sets import declared_groups
from cudaredist.sets.spec import Request
from cudaredist.store.locate import store_to_read

PROJECT = Path("pyproject.toml")
SETS = """
[tool.cudaredist]
data-dir = "data"
channel = "redist"
sets-folder = "sets"

[[tool.cudaredist.sets]]
cuda = ["12.9", "13.0"]
platforms = ["linux-x86_64", "linux-sbsa"]
overlays = ["ours"]

[[tool.cudaredist.sets]]
cuda = ["13.0"]
platforms = ["windows-x86_64"]

[[tool.cudaredist.sets]]
name = "thor"
cuda = ["13.0"]
platforms = ["linux-sbsa"]
capabilities = ["11.0"]
overlays = ["ours"]
"""
FILES = {
    "linux-sbsa/cuda-12.9.1.json",
    "linux-sbsa/cuda-13.0.2.json",
    "linux-sbsa/cuda-13.0.2-thor.json",
    "linux-x86_64/cuda-12.9.1.json",
    "linux-x86_64/cuda-13.0.2.json",
    "windows-x86_64/cuda-13.0.2.json",
}
X = library("libx.so.1")
FEATURES = dict.fromkeys(["cuda_nvcc", "cuda_cudart", "libnvvm", "libcublas", "libcufft"], X)


def release(label: str, *platforms: str) -> Release:
    libraries = {"libcublas": platforms, "libcufft": platforms}
    return cuda(label, platforms, features=FEATURES, packages=libraries)


@pytest.fixture
def project(run: Run) -> Run:
    """Return a runner in a folder with data, an overlay and declared sets."""
    data = Path("data")
    put_data(data, release("12.9.1", LINUX, SBSA, JETSON), release("13.0.2", LINUX, SBSA, WINDOWS))
    withheld = {"libcufft": rule()}
    put_policy(Path("ours"), "withheld", withheld=withheld)
    put_policy(Path("ours"), "fixups", fixups=[rule(package="libcublas", broken="crashes")])
    PROJECT.write_text(SETS)
    return run


def files() -> set[str]:
    return {path.relative_to("sets").as_posix() for path in Path("sets").rglob("cuda-*.json")}


def document(path: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((Path("sets") / path).read_text())
    return content


def statuses(run: Run, *options: str) -> Iterator[tuple[str | None, str]]:
    for outcome in json.loads(run("build", "--json", *options).stdout)["sets"]:
        yield outcome["path"], outcome["status"]


def test_build_writes_declared_sets_with_overlays_and_names(project: Run) -> None:
    assert project("build").exit_code == 0
    assert files() == FILES
    thor = document("linux-sbsa/cuda-13.0.2-thor.json")
    assert (thor["name"], thor["capabilities"]["requested"]) == ("thor", ["11.0"])
    assert thor["cuda"]["attribute"] == "cudaPackages_13_0"
    for path in FILES - {"windows-x86_64/cuda-13.0.2.json"}:
        packages = document(path)["packages"]
        assert packages["libcufft"]["status"] == "withheld"
        assert packages["libcublas"]["status"] == "broken"
    windows = document("windows-x86_64/cuda-13.0.2.json")
    assert windows["packages"]["libcufft"]["status"] == "available"
    assert "name" not in windows
    index = json.loads(Path("sets/index.json").read_text())
    names = {one["path"]: one.get("name") for one in index["sets"]}
    assert names == {path: "thor" if "thor" in path else None for path in FILES}


def test_declarations_with_equal_overlays_share_data(project: Run) -> None:
    declared = read_configuration().declared
    assert declared is not None
    groups = declared_groups(declared, store_to_read(Path("data"), "redist"), Request())
    first, second, third = (group.data for group in groups)
    assert first is third
    assert first is not second
    assert first.policies.drivers is second.policies.drivers
    assert first.policies.withheld != second.policies.withheld


def test_second_build_changes_nothing(project: Run) -> None:
    project("build")
    assert {status for _, status in statuses(project)} == {"unchanged"}
    assert project("build", "--check").exit_code == 0


def test_check_notices_stale_set_of_every_declaration(project: Run) -> None:
    project("build")
    put_policy(Path("ours"), "withheld", withheld={"libcublas": rule()})
    result = project("build", "--check")
    assert result.exit_code == 1
    assert "linux-sbsa thor would-write" in result.stdout
    stale = {path for path, status in statuses(project, "--check") if status == "would-write"}
    assert stale == {f"sets/{path}" for path in FILES if "windows" not in path}


def test_set_that_is_no_longer_declared_is_removed(project: Run) -> None:
    project("build")
    PROJECT.write_text(SETS.replace('"thor"', '"orin"'))
    result = project("build", "--check")
    assert result.exit_code == 1
    assert "would-remove sets/linux-sbsa/cuda-13.0.2-thor.json" in result.stdout
    assert files() == FILES
    assert project("build").exit_code == 0
    assert files() == {path.replace("thor", "orin") for path in FILES}
    assert "thor" not in Path("sets/index.json").read_text()


def test_changed_set_is_not_removed(project: Run) -> None:
    project("build")
    old = Path("sets/linux-sbsa/cuda-13.0.2-thor.json")
    old.write_text(f"{old.read_text()}\n")
    PROJECT.write_text(SETS.replace('"thor"', '"orin"'))
    result = project("build")
    assert result.exit_code == 2
    assert f"{old} is not declared, but was changed" in result.stdout
    assert old.exists()


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("../precious/thesis.json", 5, "is not a relative path without `..`"),
        ("linked/thesis.json", 2, "is not declared, but leads out of sets by a link"),
    ],
)
def test_file_outside_of_the_folder_is_not_removed(
    project: Run, path: str, code: int, message: str
) -> None:
    project("build")
    precious = Path("precious/thesis.json")
    precious.parent.mkdir()
    precious.write_text('{"my": "thesis"}')
    Path("sets/linked").symlink_to("../precious")
    index = json.loads(Path("sets/index.json").read_text())
    sha256 = hashlib.sha256(precious.read_bytes()).hexdigest()
    index["sets"].append({**index["sets"][0], "path": path, "name": "old", "sha256": sha256})
    Path("sets/index.json").write_text(json.dumps(index))
    result = project("build")
    assert result.exit_code == code
    assert message in result.output
    assert precious.exists()


def test_set_that_cannot_be_built_keeps_its_file(project: Run) -> None:
    project("build")
    Path("data/features/cuda/feature_13.0.2.json").unlink()
    assert project("build").exit_code == 3
    assert files() == FILES


def test_options_select_other_sets(project: Run) -> None:
    assert project("build", "--cuda", "12.9", "--platform", JETSON).exit_code == 0
    assert not Path("sets").exists()
    assert Path("build/linux-aarch64/cuda-12.9.1.json").exists()


def test_output_and_strict_apply_to_declared_sets(project: Run) -> None:
    assert project("build", "--output", "other").exit_code == 0
    assert Path("other/linux-sbsa/cuda-13.0.2-thor.json").exists()
    assert not Path("sets").exists()
    assert project("build", "--strict").exit_code == 3


def test_declaration_accepts_gpus(project: Run) -> None:
    project("build")
    before = document("linux-sbsa/cuda-13.0.2-thor.json")
    PROJECT.write_text(SETS.replace("capabilities =", "gpus ="))
    project("build")
    assert document("linux-sbsa/cuda-13.0.2-thor.json") == before


def test_index_has_names_of_sets_as_attributes(project: Run) -> None:
    project("build")
    entries = json.loads(Path("sets/index.json").read_bytes())["sets"]
    keys = [(entry["platform"], entry["attribute"]) for entry in entries]
    assert len(keys) == len(set(keys))
    assert ("linux-sbsa", "cudaPackages_13_0-thor") in keys


# -- aliases


def aliases() -> dict[str, list[str]]:
    return {path: document(path)["cuda"]["aliases"] for path in files() if LINUX in path}


def test_alias_of_policy_without_set_is_a_warning(project: Run) -> None:
    result = project("build")
    warning = "cudaPackages_13: refers to CUDA 13.2, which is not declared"
    assert result.stdout.count(warning) == 1
    assert aliases() == {
        "linux-x86_64/cuda-12.9.1.json": ["cudaPackages_12", "cudaPackages"],
        "linux-x86_64/cuda-13.0.2.json": [],
    }


def test_alias_follows_to_newest_minor_if_allowed(project: Run) -> None:
    PROJECT.write_text(SETS.replace('"sets"', '"sets"\nalias-fallback = true', 1))
    assert "alias" not in project("build").stdout
    assert aliases()["linux-x86_64/cuda-13.0.2.json"] == ["cudaPackages_13"]
    assert document("linux-sbsa/cuda-13.0.2-thor.json")["cuda"]["aliases"] == []


def test_alias_fallback_works_without_declared_sets(project: Run) -> None:
    PROJECT.write_text("[tool.cudaredist]\nalias-fallback = true\n")
    options = ("--cuda", "13.0", "--platform", LINUX, "--allow-missing-features")
    assert "alias" not in project("build", *options, "--output", "one.json").stdout
    assert json.loads(Path("one.json").read_bytes())["cuda"]["aliases"] == ["cudaPackages_13"]


def test_declared_aliases_replace_those_of_policy(project: Run) -> None:
    own = 'overlays = ["ours"]\naliases = {newest = "13", cudaPackages = "13.0"}'
    PROJECT.write_text(SETS.replace('overlays = ["ours"]', own, 1))
    project("build")
    assert aliases() == {
        "linux-x86_64/cuda-12.9.1.json": [],
        "linux-x86_64/cuda-13.0.2.json": ["newest", "cudaPackages"],
    }


# -- errors


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("capabilities", "capabilitys", 20, "is called 'capabilitys'"),
        ('"thor"', '"Thor"', 17, "name: "),
        ('["ours"]', '["theirs"]', 10, "no such overlay: theirs"),
        ('name = "thor"\n', "", 16, "the name of two sets"),
        ('platforms = ["windows-x86_64"]', "", 12, "platforms: is missing"),
        ('["12.9", "13.0"]', '["12.7"]', 7, "no local manifest of CUDA '12.7'"),
        ('["windows-x86_64"]', '["windows"]', 12, "no platform is called 'windows'"),
        ('["11.0"]', '["11.0"]\nalso = ["cudnn"]', 21, "cudnn: expected NAME=LABEL"),
    ],
)
def test_wrong_declaration_is_an_error_with_its_line(
    project: Run, old: str, new: str, line: int, message: str
) -> None:
    text = (
        SETS.replace(old, new, 1)
        if "name =" not in old
        else SETS.replace(
            f'{old}cuda = ["13.0"]\nplatforms = ["linux-sbsa"]\ncapabilities = ["11.0"]',
            'cuda = ["13.0"]\nplatforms = ["linux-sbsa"]',
        )
    )
    PROJECT.write_text(text)
    result = project("build")
    assert result.exit_code == 2
    assert f"pyproject.toml:{line}" in result.stderr
    assert message in result.stderr
    assert not Path("sets").exists()


def test_sets_in_another_form_have_no_line(project: Run) -> None:
    inline = 'sets = [{cuda = ["12.7"], platforms = ["linux-x86_64"]}]'
    Path("cudaredist.toml").write_text(f'data-dir = "data"\nchannel = "redist"\n{inline}\n')
    expect_error(project("build"), 2, "cudaredist.toml: no local manifest of CUDA '12.7'")


# -- other commands


def test_check_reports_stale_sets(project: Run) -> None:
    project("build")
    call = ("check", "--offline", "--json")
    kinds = [one["kind"] for one in json.loads(project(*call).stdout)["findings"]]
    assert "stale-set" not in kinds
    put_policy(Path("ours"), "withheld", withheld={"libcublas": rule()})
    PROJECT.write_text(SETS.replace("windows-x86_64", "linux-x86_64"))
    found = json.loads(project(*call).stdout)["findings"]
    stale = [one for one in found if one["kind"] == "stale-set"]
    assert "the name of two sets" in stale[0]["message"]
    PROJECT.write_text(SETS.replace('"thor"', '"orin"'))
    found = json.loads(project(*call).stdout)["findings"]
    stale = [one["message"] for one in found if one["kind"] == "stale-set"]
    assert "sets/linux-sbsa/cuda-13.0.2-thor.json is no longer declared" in stale
    assert "sets/linux-sbsa/cuda-13.0.2.json is not what `build` writes now" in stale
    assert all(one["exit_code"] for one in found if one["kind"] == "stale-set")
    Path("data/features/cuda/feature_13.0.2.json").unlink()
    found = json.loads(project(*call).stdout)["findings"]
    assert any("13.0.2 for linux-x86_64: " in one["message"] for one in found)


def test_check_limits_closures_of_declared_sets(project: Run) -> None:
    call = ("check", "--offline", "--json", "--max-closure")
    expect_error(project(*call, "libcublas=1G"), 2, "sets/index.json does not exist")
    project("build")

    def closures(*limits: str) -> list[tuple[str, int]]:
        found = json.loads(project(*call, *limits).stdout)["findings"]
        return [(one["message"], one["exit_code"]) for one in found if one["kind"] == "closure"]

    assert closures("libcublas=1G") == []
    above = closures("libcublas=10")
    assert [code for _, code in above] == [1]
    assert above[0][0].startswith(
        "the closure of libcublas in cudaPackages_13_0 for windows-x86_64"
    )
    expect_error(project(*call, "libcubla=1G"), 2, "did you mean libcublas")
    expect_error(project(*call, "libcublas"), 2, "expected NAME=SIZE")
    expect_error(project(*call, "libcublas=much"), 2, "invalid size")
    PROJECT.unlink()
    expect_error(project(*call, "libcublas=1G"), 2, "requires declared package sets")


def test_check_reports_declared_sets_whose_nvcc_clashes_with_glibc(project: Run) -> None:
    project("build")
    found = json.loads(project("check", "--offline", "--json", "--require-glibc", "2.41").stdout)
    own = [(one["release"], one["message"]) for one in found["findings"] if one["kind"] == "glibc"]
    assert own == [("12.9.1", "nvcc compiles with glibc up to 2.40, not with 2.41")]


def test_validate_without_files_checks_declared_sets(project: Run) -> None:
    expect_error(project("validate"), 2, "sets/index.json does not exist")
    project("build")
    verdicts = json.loads(project("validate", "--json").stdout)["files"]
    assert {one["path"] for one in verdicts} == {f"sets/{path}" for path in {*FILES, "index.json"}}
    PROJECT.unlink()
    expect_error(project("validate"), 2, "missing FILE")


def test_site_shows_declared_sets(project: Run) -> None:
    project("build")
    assert project("site", "--output", "site").exit_code == 0
    pages = {path.name for path in Path("site/sets").iterdir() if path.is_dir()}
    assert pages == {
        *("cudaPackages_12_9-linux-sbsa", "cudaPackages_12_9-linux-x86_64"),
        *("cudaPackages_13_0-linux-sbsa", "cudaPackages_13_0-linux-x86_64"),
        *("cudaPackages_13_0-thor-linux-sbsa", "cudaPackages_13_0-windows-x86_64"),
    }


def test_export_of_index_has_a_folder_for_each_set(project: Run) -> None:
    project("build")
    index = "sets/index.json"
    assert project("export", "nix", index, "--output", "nix").exit_code == 0
    code = Path("nix/default.nix").read_text()
    assert "cudaPackages_13_0-thor = import ./linux-sbsa/cuda-13.0.2-thor args;" in code
    assert "cudaPackages = import ./linux-sbsa/cuda-12.9.1 args;" in code
    for path in FILES:
        stored = (Path("nix") / path.removesuffix(".json") / "package-set.json").read_text()
        assert stored == (Path("sets") / path).read_text()
    assert project("export", "urls", index, "-o", "urls").exit_code == 0
    assert Path("urls/windows-x86_64/cuda-13.0.2/urls.txt").read_text()
    assert project("export", "urls", index, "-o", "urls", "--check").exit_code == 0
    expect_error(project("export", "urls", index), 2, "has several package sets")
    call = ("export", "env", index, "-o", "env", "--root", "/opt/cuda")
    expect_error(project(*call), 2, "--root cannot be combined with an index")


# -- unchanged content


def test_changed_input_without_effect_keeps_the_file(project: Run) -> None:
    project("build")
    before = {path: (Path("sets") / path).read_bytes() for path in (*FILES, "index.json")}
    shutil.copy(REPOSITORY / "data/policy/meta.json", put_folder(Path("data/policy")))
    meta = Path("data/policy/meta.json")
    meta.write_text(meta.read_text().replace("\n}", "\n }"))
    assert {status for _, status in statuses(project)} == {"unchanged"}
    assert {path: (Path("sets") / path).read_bytes() for path in before} == before


def test_broken_set_is_replaced(project: Run) -> None:
    project("build")
    path = Path("sets/linux-sbsa/cuda-13.0.2.json")
    for text in ("no JSON", "[]"):
        path.write_text(text)
        assert project("build").exit_code == 0
        assert document("linux-sbsa/cuda-13.0.2.json")["cuda"]["release"] == "13.0.2"


def test_index_keeps_skipped_sets_of_earlier_runs(project: Run) -> None:
    Path("data/features/cuda/feature_13.0.2.json").unlink()
    call = ("build", "--platform", LINUX, "--cuda")
    assert project(*call, "13.0").exit_code == 3
    assert project(*call, "12.9").exit_code == 0
    skipped = json.loads(Path("build/index.json").read_text())["skipped"]
    assert [(one["cuda"], one["platform"]) for one in skipped] == [("13.0.2", LINUX)]
    assert project(*call, "13.0", "--allow-missing-features").exit_code == 0
    assert json.loads(Path("build/index.json").read_text())["skipped"] == []


def put_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path
