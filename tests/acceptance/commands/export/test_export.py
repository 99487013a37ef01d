"""Tests of the export command: output files, refusals and reading back."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from support.factory import manifest
from support.package_sets import example_set, package, wheel_set
from support.running import expect_error, expect_output

from cudaredist.exporters import EXPORTERS
from cudaredist.exporters.export_format import ExportedSet

SET = "set.json"
BASE = "https://wheels.example"


@pytest.fixture
def example(run: Run) -> Path:
    """Write the example set to a file in the working folder."""
    Path(SET).write_bytes(example_set().canonical())
    Path("wheels.json").write_bytes(wheel_set().canonical())
    return Path(SET)


def test_list_and_documentation_name_every_format(run: Run) -> None:
    printed = run("export", "--list").stdout
    page = (REPOSITORY / "docs" / "export.md").read_text()
    titles = [line for line in page.splitlines() if line.startswith("## ")]
    documented = {name for title in titles for name in title.removeprefix("## ").split(", ")}
    assert documented == {*EXPORTERS, "template"}
    for name in EXPORTERS:
        assert name in printed


def test_dash_is_the_standard_output(run: Run, example: Path) -> None:
    printed = run("export", "bazel", example).stdout
    assert printed
    assert run("export", "bazel", example, "-o", "-").stdout == printed
    expect_error(run("export", "bazel", example, "-o", "-", "--check"), 2, "requires --output")
    assert not Path("-").exists()


@pytest.mark.parametrize(
    "call",
    ["build", "bump", "site", "query", "materialize set.json"],
    ids=lambda call: call.split()[0],
)
def test_files_cannot_be_the_standard_output(run: Run, call: str) -> None:
    result = run(*call.split(), "--output", "-")
    expect_error(result, 2, "cannot write its output to standard output")
    assert not Path("-").exists()


OTHERS = {"pylock", "requirements", "rules-ml-toolchain"}
"""Formats of wheels or manifests, which refuse the example."""
ONE_FILE = [name for name in EXPORTERS if EXPORTERS[name].file is not None]
SINGLE = [name for name in ONE_FILE if name not in {*OTHERS, "vex"}]
"""Formats of one file, made of the set alone."""


@pytest.mark.parametrize("name", SINGLE)
def test_export_of_one_file_writes_stdout_or_file(run: Run, example: Path, name: str) -> None:
    exporter = EXPORTERS[name]
    expected = exporter.files(ExportedSet(example_set()))
    printed = run("export", name, example)
    assert (printed.exit_code, printed.stdout.encode()) == (0, expected[exporter.file or ""])
    assert run("export", name, example, "-o", "made/file").exit_code == 0
    assert Path("made/file").read_bytes() == printed.stdout.encode()
    assert run("export", name, example, "-o", "made").exit_code == 0
    assert Path("made", exporter.file or "").read_bytes() == printed.stdout.encode()


@pytest.mark.parametrize("name", ["nix", "redistrib"])
def test_export_of_several_files_requires_folder(run: Run, example: Path, name: str) -> None:
    expect_error(run("export", name, example, "--quiet"), 2, f"--quiet --output {name}`")
    assert run("export", name, example, "-o", "made").exit_code == 0
    expected = EXPORTERS[name].files(ExportedSet(example_set()))
    paths = {path for path in Path("made").rglob("*") if path.is_file()}
    assert {path.relative_to("made").as_posix(): path.read_bytes() for path in paths} == expected


def test_second_export_writes_nothing_and_check_reports_changes(run: Run, example: Path) -> None:
    command = ("export", "redistrib", example, "-o", "made")
    expect_output(run(*command, "--check"), 1, "would-write")
    assert not Path("made").exists()
    assert "written" in run(*command).stdout
    assert run(*command, "--check").exit_code == 0
    one = Path("made/acme/redistrib_1.2.0.json")
    before = one.stat()
    assert "unchanged" in run(*command).stdout
    assert one.stat() == before
    one.write_text("other")
    assert run(*command, "--check").exit_code == 1
    assert one.read_text() == "other"


def test_export_json_lists_written_files(run: Run, example: Path) -> None:
    report = json.loads(run("export", "urls", example, "-o", "urls", "--json").stdout)
    content = Path("urls").read_bytes()
    assert report == {
        "schema_version": 1,
        "command": "export",
        "format": "urls",
        "formats": [],
        "files": [
            {
                "path": "urls",
                "status": "written",
                "size": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        ],
        "exit_code": 0,
    }


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["cyclone", SET], 2, "did you mean cyclonedx"),
        (["urls", "nowhere.json"], 2, "no such file"),
        (["urls", SET, "--wheel-base", BASE], 2, "requires a set of the wheels channel"),
        (["urls", "wheels.json"], 2, "--wheel-base"),
        (["nix", "wheels.json", "-o", "made"], 2, "--wheel-base"),
        (["urls", SET, "--resolve"], 2, "--resolve requires a set of the wheels channel"),
        (["nix", SET, "-o", SET], 3, "cannot"),
        (["urls", SET, "-o", "n" * 300], 3, "File name too long"),
        (["urls", "broken.json"], 5, "packages.cuda_nvcc.status"),
        (["urls", "manifest.json"], 5, "not a valid package-set file"),
    ],
)
def test_export_with_invalid_options_is_rejected(
    run: Run, example: Path, arguments: list[str], code: int, message: str
) -> None:
    document = json.loads(example.read_bytes())
    Path("manifest.json").write_text('{"release_label": "13.0.2"}')
    document["packages"]["cuda_nvcc"]["status"] = "fine"
    Path("broken.json").write_text(json.dumps(document))
    before = sorted(Path().rglob("*"))
    result = run("export", *arguments)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert sorted(Path().rglob("*")) == before


def test_wheel_base_sets_wheel_addresses(run: Run, example: Path) -> None:
    printed = run("export", "urls", "wheels.json", "--wheel-base", BASE).stdout
    assert all(line.startswith(f"{BASE}/nvidia-") for line in printed.splitlines())
    bom = json.loads(run("export", "spdx", "wheels.json").stdout)
    assert {entry["downloadLocation"] for entry in bom["packages"]} == {"NOASSERTION"}


def test_base_url_replaces_server_of_archives(run: Run, example: Path) -> None:
    before = run("export", "urls", example).stdout.splitlines()
    result = run("export", "urls", example, "--base-url", f"{BASE}/nvidia/")
    server = "https://developer.download.nvidia.com/"
    assert [url.startswith(server) for url in before].count(True) > 1
    assert result.stdout.splitlines() == [url.replace(server, f"{BASE}/nvidia/") for url in before]
    assert ("warning: kept the URLs of" in result.stderr) == any(
        not url.startswith(server) for url in before
    )
    for form in ("nix", "cyclonedx", "spdx"):
        assert run("export", form, example, "--base-url", BASE, "-o", form).exit_code == 0
    for path in ("nix/package-set.json", "cyclonedx", "spdx"):
        assert f"{BASE}/compute/cuda/redist/" in Path(path).read_text()
        assert f"{server}compute/cuda/redist/cuda_cudart/linux" not in Path(path).read_text()


def test_base_url_of_configuration_is_not_exported(run: Run, example: Path) -> None:
    before = run("export", "urls", example).stdout
    Path("cudaredist.toml").write_text(f'base-url = ["{BASE}"]\n')
    assert run("export", "urls", example).stdout == before


def test_base_url_of_wheel_set_suggests_wheel_base(run: Run, example: Path) -> None:
    expect_error(
        run("export", "urls", "wheels.json", "--base-url", BASE), 2, f"--wheel-base {BASE}"
    )


def test_export_counts_packages_without_features(run: Run, example: Path) -> None:
    result = run("export", "outputs", example)
    assert "warning: skipped 1 package without features" in result.stderr
    assert run("export", "outputs", example, "-q").stderr == ""


# -- manifests that `build` reads back


def write_manifest(redist: str, label: str, **content: Any) -> None:
    path = Path(f"data/manifests/{redist}/redistrib_{label}.json")
    path.parent.mkdir(parents=True)
    path.write_bytes(manifest(label, redist, **content))


@pytest.mark.parametrize("cuda", ["12.6.3", "13.3.1"])
@pytest.mark.parametrize("platform", ["linux-x86_64", "windows-x86_64"])
def test_build_of_exported_manifests_selects_same_archives(
    run: Run, cuda: str, platform: str
) -> None:
    platforms = ("linux-x86_64", "linux-sbsa", "windows-x86_64")
    split = ("cccl", "cuda_crt", "libnvvm") if cuda.startswith("13") else ("cuda_cccl",)
    names = (*split, "cuda_nvcc", "cuda_cudart", "libcublas")
    packages = {**dict.fromkeys(names, platforms), "cuda_documentation": ("source",)}
    write_manifest("cuda", cuda, packages=packages)
    variants = [f"{name}/cuda{major}" for name in platforms for major in (12, 13)]
    write_manifest("cudnn", "9.20.0", packages={"cudnn": variants})

    def build(folder: str, output: str) -> dict[str, dict[str, object]]:
        options = ("--cuda", cuda, "--platform", platform, "--allow-missing-features")
        expect_output(run("build", "--data-dir", folder, *options, "-o", output), 0)
        return {
            name: {
                **{key: entry[key] for key in ("version", "alias_of")},
                "license": entry["license"]["url"],
                "archive": entry["archive"] | {"platform": None, "cuda_variant": None},
            }
            for name, entry in json.loads(Path(output).read_bytes())["packages"].items()
            if entry["status"] == "available"
        }

    first = build("data", "first.json")
    assert {*packages, "cudnn"} <= first.keys()
    assert run("export", "redistrib", "first.json", "-o", "again/manifests").exit_code == 0
    assert build("again", "second.json") == first


def test_set_without_archives_is_exported(run: Run) -> None:
    result = package("mft", status="withheld", archive=None)
    Path(SET).write_bytes(example_set(packages={"mft": result}).canonical())
    for name in EXPORTERS.keys() - {"bazel"} - OTHERS:
        assert run("export", name, SET, "-o", f"made/{name}").exit_code == 0
    assert (
        "rules_cuda requires cuda_cccl, cuda_cudart, cuda_nvcc"
        in run("export", "bazel", SET).stderr
    )


def test_export_reports_requested_release_that_is_not_in_set(run: Run) -> None:
    text = "10.7.0 was requested, but tensorrt is unsupported: why"
    unusable = {"level": "warning", "code": "requested-unusable", "subject": "tensorrt"}
    package_set = example_set(diagnostics=[unusable | {"text": text}])
    Path("set.json").write_bytes(package_set.canonical())
    for options, code in (([], 0), (["--strict"], 1), (["--strict", "-o", "sums"], 1)):
        result = expect_output(run("export", "sha256sums", "set.json", *options), code)
        assert f"warning: set.json: tensorrt: {text}" in result.stderr
    Path("set.json").write_bytes(example_set().canonical())
    result = expect_output(run("export", "sha256sums", "set.json", "--strict"), 0)
    assert "was requested" not in result.stderr
