"""Tests of data layers: shipped data completes the data folder.

Entries of the data folder override shipped entries."""

import contextlib
import functools
import json
import shutil
import signal
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from conftest import REPOSITORY, SAMPLE, Run, Start
from support import server as faults
from support.factory import manifest
from support.running import expect_error, expect_output
from support.server import FaultServer
from support.wheels import put_wheel
from typer.testing import Result

from cudaredist.primitives import sha256_of
from cudaredist.sets.load import read_set_data
from cudaredist.store.locate import store_to_read

SHIPPED = REPOSITORY / "data"
QUESTIONS = (
    ("explain", "nvcc", "13.0"),
    ("which", "libcublas.so.12"),
    ("diff", "cuda@12.9.1", "cuda@13.0.2"),
    ("build", "--cuda", "13.0", "--platform", "linux-x86_64", "--json"),
)


def put_wheels(label: str = "13.0.2") -> None:
    """Put a release of wheels with its features into the data folder."""
    for kind, name in (("manifests", "redistrib"), ("features", "feature")):
        path = Path("data", kind, "wheels/cuda", f"{name}_{label}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SHIPPED / kind / "wheels/cuda" / path.name, path)


def put_table(name: str, label: str = "13.0.2", **changes: object) -> None:
    """Copy one release's part of a shipped table into the data folder."""
    table = json.loads((SHIPPED / f"{name}.json").read_bytes())
    part = "releases" if name == "nvcc_compat" else "sources"
    table[part] = {label: table[part][label] | changes}
    if name == "gpus":
        gone = [c for c, entry in table["capabilities"].items() if entry["last_cuda"] is not None]
        for capability in gone:
            del table["capabilities"][capability]
        for entry in table["capabilities"].values():
            entry["first_cuda"] = max(entry["first_cuda"], "13.0")
    Path("data").mkdir(exist_ok=True)
    Path("data", f"{name}.json").write_text(json.dumps(table))


def answers(run: Run) -> dict[str, tuple[int, str]]:
    """Return the exit code and the output of every question by command."""
    results = {words[0]: run(*words) for words in QUESTIONS}
    return {name: (result.exit_code, result.stdout) for name, result in results.items()}


_SHIPPED: dict[tuple[str, ...], Result] = {}


def shipped(run: Run, *call: str) -> Result:
    """Return the result of a call in an empty folder, from the first test that needs it."""
    assert not list(Path().iterdir())
    if call not in _SHIPPED:
        _SHIPPED[call] = run(*call)
    return _SHIPPED[call]


def shipped_answers(run: Run) -> dict[str, tuple[int, str]]:
    """Return the answers in an empty folder."""
    return answers(functools.partial(shipped, run))


def layers_of(run: Run, *question: str) -> dict[str | None, set[str | None]]:
    """Return the layers of an answer's facts by their CUDA release."""
    document = json.loads(run("explain", *question, "--json").stdout)
    found: dict[str | None, set[str | None]] = {}
    for topic in document["topics"]:
        for fact in topic["facts"]:
            found.setdefault(fact["release"], set()).add(fact["layer"])
    return found


# -- incomplete data folders


@pytest.mark.slow
def test_answers_after_failed_download_are_unchanged(run: Run) -> None:
    before = shipped_answers(run)
    assert {code for code, _ in before.values()} == {0}
    expect_output(run("download-manifests", "--base-url", SAMPLE, "--version", "99.1.1"), 3)
    assert not list(Path().iterdir())
    assert answers(run) == before


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["data/manifests/cuda", "data/features/wheels", "data/policy"])
def test_answers_after_killed_run_are_unchanged(run: Run, folder: str) -> None:
    before = shipped_answers(run)
    Path(folder).mkdir(parents=True)
    Path("data/manifests").mkdir(exist_ok=True)
    lock = {"schema_version": 1, "redists": {}}
    Path("data/lock.json").write_text(json.dumps(lock))
    assert answers(run) == before
    assert run("check", "--offline").exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_download_hides_no_shipped_data(
    cuda: FaultServer, start: Start, run: Run, tmp_path: Path, number: signal.Signals
) -> None:
    before = shipped_answers(run)
    cuda.misbehave("/compute/cuda/redist/redistrib_12.9.0.json", faults.silent)
    options = ["--base-url", cuda.url, "--redist", "cuda", "--version", "all"]
    process = start("download-manifests", *options)
    deadline = time.monotonic() + 240
    while not list(tmp_path.glob("data/manifests/cuda/redistrib_12.9.1.json")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=240)
    with contextlib.chdir(tmp_path):
        assert "cuda    archives  12.9  12.9.1" in run("versions", "--offline").stdout
        for words in QUESTIONS:
            channel = () if words[0] == "explain" else ("--channel", "wheels")
            assert run(*words, *channel).exit_code == 0
    assert answers(run) == before


# -- layers


def test_shipped_tables_complete_local_tables(run: Run) -> None:
    put_wheels()
    put_table("nvcc_compat")
    put_table("gpus")
    assert layers_of(run, "nvcc", "12.9") == {"12.9.2": {"shipped"}}
    assert layers_of(run, "nvcc", "13.0.2") == {"13.0.2": {"local"}}
    assert layers_of(run, "gpu", "H100") == {
        None: {None},
        "11.8.0": {"shipped"},
        "13.5.0": {"shipped"},
    }
    assert layers_of(run, "cuda", "13.0.2")["13.0.2"] == {"local"}
    text = run("explain", "nvcc", "13.0", "--sources").stdout
    assert "cuda_crt 13.0.88 (wheels), shipped data" in text
    assert (
        "cuda_crt 13.0.88 (wheels), local data"
        in run("explain", "nvcc", "13.0.2", "--sources").stdout
    )


def test_explain_cuda_names_layer_of_drivers_and_skips_broken_manifest(run: Run) -> None:
    folder = Path("data/manifests/cuda")
    folder.mkdir(parents=True)
    data = manifest("13.0.1", packages=("nvidia_driver",), versions={"nvidia_driver": "580.82.07"})
    (folder / "redistrib_13.0.1.json").write_bytes(data)
    layers = layers_of(run, "cuda", "13.0")
    assert layers["13.0.1"] == {"local"}
    assert layers[None] == {None}  # the lowest driver of the shipped policy
    (folder / "redistrib_13.0.2.json").write_text("{")
    result = run("explain", "cuda", "13.0", "--sources")
    assert result.exit_code == 5
    assert "published with CUDA 13.0.1: driver 580.82.07" in result.stdout
    assert "error: not a valid manifest: manifests/cuda/redistrib_13.0.2.json" in result.stderr
    document = json.loads(run("explain", "cuda", "13.0", "--json").stdout)
    assert [error["exit_code"] for error in document["errors"]] == [5]


def test_merged_capabilities_equal_shipped_table(run: Run) -> None:
    put_table("gpus")
    merged = read_set_data(store_to_read(None, None)).gpus
    shutil.rmtree("data")
    assert merged == read_set_data(store_to_read(None, None)).gpus


def test_local_table_entry_overrides_shipped_entry(run: Run) -> None:
    put_table("nvcc_compat", nvcc="13.0.999")
    assert "  nvcc 13.0.999\n" in run("explain", "nvcc", "13.0.2", "--sources").stdout
    assert (
        "  nvcc 13.0.999\n"
        in run("explain", "nvcc", "13.0", "--sources", "--no-shipped-data").stdout
    )
    assert "  nvcc 13.0.88\n" in run("explain", "nvcc", "13.0.3", "--sources").stdout


def test_local_release_hides_no_shipped_release(run: Run) -> None:
    question = ("which", "libcublas.so*", "--json")
    before = shipped(run, *question)
    put_wheels()
    local = run(*question)
    assert local.stdout == before.stdout
    assert local.stderr.startswith(
        "using NVIDIA's archives and wheels of data and the data shipped with cudaredist\n"
    )
    assert run("build", "--cuda", "12.9", "--platform", "linux-x86_64").exit_code == 0
    assert run("diff", "cuda@12.9.1", "cuda@13.0.2").exit_code == 0
    found = json.loads(run(*question, "--no-shipped-data").stdout)
    assert {hit["release"] for hit in found["hits"]} == {"13.0.2"}


def test_local_release_overrides_shipped_release(run: Run) -> None:
    call = ("which", "libcublas.so.13", "--json")
    before = wheels_with_hits(shipped(run, *call))
    put_wheels()
    for kind, name in (("manifests", "redistrib"), ("features", "feature")):
        path = Path("data", kind, "wheels/cuda", f"{name}_13.0.2.json")
        document = json.loads(path.read_bytes())
        packages = document if kind == "manifests" else document["packages"]
        del packages["libcublas"]
        path.write_text(json.dumps(document))
    assert before - wheels_with_hits(run(*call)) == {"13.0.2"}


def wheels_with_hits(result: Result) -> set[str]:
    """Return the releases of wheels in the report of which."""
    hits = json.loads(result.stdout)["hits"]
    return {hit["release"] for hit in hits if hit["channel"] == "wheels"}


@pytest.mark.parametrize(
    "call",
    [
        ("build", "--cuda", "12.9", "--platform", "linux-x86_64", "--json"),
        ("diff", "cuda@12.9.1", "cuda@13.0.2"),
    ],
    ids=lambda call: call[0],
)
def test_manifests_without_cuda_hide_no_shipped_data(run: Run, call: tuple[str, ...]) -> None:
    before = shipped(run, *call)
    path = Path("data/manifests/cudnn/redistrib_9.99.0.json")
    path.parent.mkdir(parents=True)
    path.write_bytes(manifest("9.99.0", packages=("cudnn",)))
    after = run(*call)
    assert (after.exit_code, after.stdout) == (0, before.stdout)
    assert "for the manifests in data, add --channel redist" in after.stderr


def test_channel_of_diff_is_that_of_its_releases(run: Run) -> None:
    path = Path("data/manifests/cudnn/redistrib_9.98.0.json")
    path.parent.mkdir(parents=True)
    for label in ("9.98.0", "9.99.0"):
        data = manifest(label, packages=("cudnn",))
        path.with_name(f"redistrib_{label}.json").write_bytes(data)
    result = run("diff", "cudnn@9.98", "cudnn@9.99")
    assert result.exit_code == 0
    assert result.stderr.startswith("using --channel redist of data\n")


def test_diff_takes_the_channel_that_has_both_releases(run: Run) -> None:
    run("download-manifests", "--base-url", SAMPLE, "--redist", "cuda", "--version", "12.9.1")
    result = run("diff", "cuda@12.9.1", "cuda@13.0.2")
    assert result.exit_code == 0
    assert result.stderr.startswith("using --channel wheels of the data shipped with cudaredist; ")
    same = run("diff", "cuda@12.9.1", "cuda@12.9.1")
    assert same.stderr.startswith("using --channel redist of data\n")


@pytest.mark.parametrize(
    "call",
    [
        "build --cuda 13.0 --output set.json",
        "which libcublas.so.13 --cuda 13.0 --channel redist --no-shipped-data",
        "diff cuda@12.9.1 cuda@13.0.2 --channel redist --no-shipped-data",
    ],
)
def test_release_of_other_channel_is_named(run: Run, call: str) -> None:
    run("download-manifests", "--base-url", SAMPLE, "--redist", "cuda", "--version", "12.9.1")
    put_wheels()
    result = run(*call.split())
    expect_error(result, 2, "no local release of cuda is called '13.0", "--channel redist")
    assert "--channel wheels has it: run `cudaredist " in result.stderr


def test_versions_of_channel_without_releases_name_the_other_one(run: Run) -> None:
    put_wheels()
    text = run("versions", "--offline", "--channel", "redist").stdout
    assert text == (
        "no local releases for --channel redist; --channel wheels has some: run `cudaredist "
        "versions --offline --channel wheels`\n"
    )
    text = run("versions", "--offline", "--redist", "nccl").stdout
    assert text.endswith("for those upstream, run `cudaredist versions --redist nccl`\n")


def test_shipped_features_describe_equal_local_manifest(run: Run) -> None:
    call = ("build", "--cuda", "13.0.2", "--platform", "linux-x86_64", "--json")
    before = shipped(run, *call)
    put_wheels()
    shutil.rmtree("data/features")
    assert run(*call).stdout == before.stdout
    assert run("which", "libcublas.so.13", "--json").exit_code == 0
    path = Path("data/manifests/wheels/cuda/redistrib_13.0.2.json")
    document = json.loads(path.read_bytes())
    document["libcublas"]["version"] = "13.0.2.999"
    path.write_text(json.dumps(document))
    expect_error(run(*call), 3, "no features")


def test_local_features_of_one_package_hide_no_shipped_features(run: Run) -> None:
    before = shipped_answers(run)
    put_wheels()
    path = Path("data/features/wheels/cuda/feature_13.0.2.json")
    whole = json.loads(path.read_bytes())
    for name, package in whole["packages"].items():
        if name != "cuda_cudart":
            package["archives"] = [
                {key: archive.get(key) for key in ("platform", "variant", "path", "sha256", "size")}
                | {"status": "not-examined", "reason": "excluded by --package"}
                for archive in package["archives"]
            ]
            package.pop("files", None)
    path.write_text(json.dumps(whole))
    after = answers(run)
    assert {name: code for name, (code, _) in after.items()} == {
        name: code for name, (code, _) in before.items()
    }
    assert after["which"] == before["which"]
    only_local = run(*QUESTIONS[-1], "--no-shipped-data")
    assert only_local.exit_code == 3


def test_bump_check_of_shipped_data_compares_wheels(run: Run, pip_folder: Path) -> None:
    put_wheel(pip_folder, "cuda-toolkit", "13.5.0")
    result = run("bump", "--check", "--redist", "cuda")
    assert (result.exit_code, result.stdout) == (0, "nothing is new\n")
    assert result.stderr.startswith("using --channel wheels of the data shipped with cudaredist\n")


@pytest.mark.parametrize(
    "question",
    [
        ("which", "libcublas.so.12"),
        ("explain", "package", "libcublas"),
        pytest.param(("explain", "gpu", "7.0"), marks=pytest.mark.slow),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_manifests_without_features_hide_no_shipped_data(
    run: Run, question: tuple[str, ...]
) -> None:
    before = shipped(run, *question)
    put_unexamined_release("12.8.7")
    after = run(*question)
    assert after.exit_code == before.exit_code
    changed = ("older rows", "archives not examined")
    lines = [
        line
        for line in before.stdout.splitlines()[1:]
        if not any(words in line for words in changed)
    ]
    assert set(lines) <= set(after.stdout.splitlines())
    assert run(*question, "--channel", "redist").stdout != before.stdout


def put_unexamined_release(
    label: str = "12.9.1",
    platforms: Iterable[str] = ("linux-x86_64", "linux-sbsa"),
    versions: Mapping[str, str] | None = None,
) -> None:
    """Store a manifest of NVIDIA's archives without features."""
    path = Path(f"data/manifests/cuda/redistrib_{label}.json")
    path.parent.mkdir(parents=True)
    packages = ("cuda_cudart", "cuda_example", "cuda_gdb", "libcublas")
    path.write_bytes(manifest(label, packages=packages, platforms=platforms, versions=versions))


@pytest.mark.parametrize(
    "question",
    [("which", "libcublas.so.12"), ("which", "--symbol", "cublasCreate_v2")],
    ids=" ".join,
)
@pytest.mark.parametrize("channel", [(), ("--channel", "redist")], ids=" ".join)
def test_library_of_unexamined_archive_is_known_by_the_wheel_of_its_version(
    run: Run, question: tuple[str, ...], channel: tuple[str, ...]
) -> None:
    versions = {"libcublas": "12.9.1.4"}
    put_unexamined_release("12.9.7", ("linux-x86_64", "linux-aarch64"), versions)
    report = json.loads(expect_output(run(*question, *channel, "--json"), 0).stdout)
    hits = [hit for hit in (*report["hits"], *report["examined"]) if hit["channel"] == "redist"]
    assert all(hit["is_by_wheel"] for hit in hits)
    platforms = {
        hit["platform"]
        for hit in hits
        if hit.get("release") == "12.9.7" or "12.9.7" in hit.get("releases", ())
    }
    assert platforms == {"linux-x86_64"}
    text = run(*question, *channel).stdout
    assert "archives (by wheel)" in text
    assert (
        "\nby wheel: the archive was not examined, the wheel of the same version has it\n" in text
    )
    # There is no wheel for this platform.
    assert "linux-aarch64" not in text


@pytest.mark.parametrize(
    "question",
    [("which", "cublas.h", "--channel", "redist"), ("which", "libcublas_static.a")],
    ids=lambda words: words[1],
)
def test_wheel_tells_only_about_libraries(run: Run, question: tuple[str, ...]) -> None:
    """Wheels have the headers, too, but other files of archives can have other places."""
    put_unexamined_release(versions={"libcublas": "12.9.1.4"})
    result = run(*question)
    assert result.exit_code == 3
    assert "is unknown: no examined archive or wheel has it" in result.stdout


def test_wheel_tells_only_about_archives_of_the_same_version(run: Run) -> None:
    call = ("which", "libcublas.so.12", "--channel", "redist", "--json")
    before = {hit["release"] for hit in json.loads(shipped(run, *call).stdout)["hits"]}
    put_unexamined_release(versions={"libcublas": "12.9.9.9"})
    after = {hit["release"] for hit in json.loads(run(*call).stdout)["hits"]}
    assert before - after == {"12.9.1"}


def test_explain_package_describes_unexamined_archive_by_wheel_of_its_version(run: Run) -> None:
    put_unexamined_release("12.9.7", ("linux-x86_64", "linux-aarch64"), {"libcublas": "12.9.1.4"})
    call = ("explain", "package", "libcublas", "--channel", "redist")
    report = json.loads(expect_output(run(*call, "--json"), 0).stdout)
    archives = {
        archive["platform"]: archive
        for archive in report["archives"]
        if archive["release"] == "12.9.7"
    }
    known, unknown = archives["linux-x86_64"], archives["linux-aarch64"]
    assert (known["is_examined"], known["is_by_wheel"]) == (False, True)
    assert known["sonames"] == ["libcublas.so.12", "libcublasLt.so.12", "libnvblas.so.12"]
    assert "sm_90" in known["architectures"]
    assert (unknown["is_by_wheel"], unknown["sonames"]) == (False, [])
    # Only libraries are the same in both.
    assert (known["outputs"], known["needed"], known["notes"]) == ({}, [], [])
    assert "not examined; by the wheel of the same version:" in run(*call).stdout


def test_file_of_archive_that_was_not_examined_is_unknown(run: Run) -> None:
    """Wheels have no static libraries, so that only the archive can have this file."""
    call = ("which", "libcublas_static.a")
    result = run(*call)
    assert result.exit_code == 3
    assert "is unknown: no examined archive or wheel has it" in result.stdout
    commands = "`cudaredist download-manifests --version all && cudaredist process-manifests`"
    assert f"not examined; run {commands}" in result.stdout
    put_unexamined_release()
    result = run(*call)
    assert result.exit_code == 3
    assert "not examined; run `cudaredist process-manifests`" in result.stdout
    assert run(*call, "--channel", "wheels").exit_code == 1


def test_package_in_local_manifest_alone_is_not_denied(run: Run) -> None:
    put_unexamined_release()
    result = run("explain", "package", "cuda_example")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (
        0,
        "cuda_example: NVIDIA's archives of cuda 12.9.1; none of the known wheels",
    )
    assert "no local manifest" not in result.stdout


def test_build_names_archives_if_platform_has_no_wheels(run: Run) -> None:
    call = ("build", "--cuda", "12.9.1", "--platform", "linux-aarch64", "--channel", "wheels")
    result = expect_output(run(*call), 2)
    assert "CUDA 12.9.1 has no wheels for linux-aarch64" in result.output
    assert "not published" not in result.output
    put_unexamined_release(platforms=("linux-aarch64",))
    output = expect_output(run(*call), 2).output
    assert "has no wheels for linux-aarch64, but NVIDIA's manifest has archives of 4 packages" in (
        output
    )
    assert "&& cudaredist build --cuda 12.9.1 --platform linux-aarch64 --channel redist`" in output


def test_set_of_wheels_names_archive_of_package_without_wheel(run: Run) -> None:
    put_unexamined_release()
    call = ("build", "--cuda", "12.9.1", "--platform", "linux-x86_64", "--channel", "wheels")
    package = json.loads(expect_output(run(*call, "--json"), 0).stdout)["packages"]["cuda_gdb"]
    assert (package["status"], package["reasons"][0]["text"]) == (
        "unsupported",
        "no known wheel of cuda_gdb; NVIDIA's archives of CUDA 12.9.1 have it",
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("12.9.7", "CUDA 12.9.7 (NVIDIA's archives, 2025-06-04): 4 packages for linux-sbsa"),
        ("12.7.0", "CUDA 12.7.0 is not in the data"),
        ("twelve", "no CUDA release is called 'twelve'"),
    ],
)
def test_explain_cuda_denies_no_release_that_may_exist(run: Run, name: str, message: str) -> None:
    put_unexamined_release("12.9.7")
    result = run("explain", "cuda", name)
    assert message in result.output
    assert result.exit_code == (3 if name == "12.9.7" else 2)


def test_questions_about_archives_have_their_hashes(run: Run) -> None:
    """A recipe of archives must not get the hash of a wheel."""
    put_unexamined_release()
    (archive,) = [
        row
        for row in json.loads(run("explain", "package", "cuda_cudart", "--json").stdout)["archives"]
        if (row["channel"], row["release"]) == ("redist", "12.9.1")
        and row["platform"] == "linux-x86_64"
    ]
    document = json.loads(Path("data/manifests/cuda/redistrib_12.9.1.json").read_bytes())
    assert archive["sha256"] == document["cuda_cudart"]["linux-x86_64"]["sha256"]
    query = """
        SELECT channel, sha256 FROM current_releases JOIN archives ON release = current_releases.id
        WHERE package = 'cuda_cudart' AND label = '12.9.1' AND platform = 'linux-x86_64'"""
    rows = json.loads(run("query", query, "--format", "json").stdout)
    assert ["redist", archive["sha256"]] in rows["rows"]
    assert {channel for channel, _ in rows["rows"]} == {"redist", "wheels"}
    rows = json.loads(run("query", query, "--format", "json", "--channel", "redist").stdout)
    assert rows["rows"] == [["redist", archive["sha256"]]]


def test_folder_with_manifests_of_both_channels_is_of_redist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put_wheels()
    assert store_to_read(Path("data"), None).channel == "wheels"
    path = Path("data/manifests/cuda/redistrib_12.9.1.json")
    path.parent.mkdir()
    path.write_bytes(manifest())
    assert store_to_read(Path("data"), None).channel == "redist"


def test_check_and_versions_ignore_shipped_data(run: Run) -> None:
    run("download-manifests", "--base-url", SAMPLE, "--redist", "cuda")
    assert "nothing-held" in run("check", "--offline", "--channel", "wheels").stdout
    document = json.loads(run("versions", "--offline", "--channel", "wheels", "--json").stdout)
    assert document["lines"] == []


# -- package sets


def test_package_set_records_tables_of_both_layers(run: Run) -> None:
    put_wheels()
    put_table("nvcc_compat")
    put_table("gpus")
    call = ("build", "--cuda", "13.0", "--platform", "linux-x86_64", "--json")
    package_set = json.loads(run(*call).stdout)
    recorded = {(one["name"], one["sha256"]) for one in package_set["inputs"]}
    for name in ("nvcc_compat", "gpus"):
        for folder in (SHIPPED, Path("data")):
            assert (name, sha256_of((folder / f"{name}.json").read_bytes())) in recorded
    policy = (SHIPPED / "policy/gpus.json").read_bytes()
    assert ("gpus", sha256_of(policy)) in recorded
    alone = json.loads(run(*call, "--no-shipped-data").stdout)
    tables = [one for one in alone["inputs"] if one["name"] in {"nvcc_compat", "gpus"}]
    assert {one["sha256"] for one in tables} == {
        sha256_of(Path("data", f"{name}.json").read_bytes()) for name in ("nvcc_compat", "gpus")
    }


# -- without shipped data


@pytest.mark.parametrize(
    ("call", "code", "hint"),
    [
        (("explain", "nvcc", "13.0"), 3, "hint: run `cudaredist update-nvcc-compat`"),
        (("explain", "gpu", "V100"), 3, "hint: run `cudaredist update-gpus`"),
        (("which", "libcublas.so.12"), 2, "hint: run `cudaredist download-manifests`"),
        (("diff", "cuda@12.9.1", "cuda@13.0.2"), 2, "hint: run `cudaredist download-manifests`"),
        (("build",), 2, "hint: run `cudaredist download-manifests --redist cuda`"),
        (
            ("bump", "--check", "--offline", "--channel", "wheels"),
            2,
            "hint: run `cudaredist download-manifests --channel wheels`",
        ),
    ],
)
def test_no_shipped_data_in_empty_folder_is_an_error_with_hint(
    run: Run, call: tuple[str, ...], code: int, hint: str
) -> None:
    expect_error(run(*call, "--no-shipped-data"), code, hint)
    assert "nothing-held" in run("check", "--offline", "--no-shipped-data").stdout
    assert not list(Path().iterdir())


def coverage(run: Run, *options: str) -> dict[str, dict[str, str] | None]:
    """Return the releases of each package with native code for V100."""
    document = json.loads(run("explain", "gpu", "V100", "--json", *options).stdout)
    return {part["package"]: part["native"] for part in document["coverage"]}


def test_shipped_features_complete_local_coverage(run: Run) -> None:
    before = coverage(functools.partial(shipped, run))
    put_wheels("12.9.1")
    shutil.copy(SHIPPED / "gpus.json", "data")
    assert coverage(run) == before
    local = coverage(run, "--no-shipped-data")
    assert local["libcublas"] == {
        "first": "12.9.1",
        "newest": "12.9.1",
        "since": "12.9.1 or an earlier patch",
        "until": "12.9.1",
        "gaps": [],
    }
    assert "cudnn" not in local


def test_local_manifest_without_features_has_shipped_coverage(run: Run) -> None:
    before = coverage(functools.partial(shipped, run))
    put_wheels("12.9.1")
    Path("data/features/wheels/cuda/feature_12.9.1.json").unlink()
    assert coverage(run) == before


def test_coverage_of_local_features_overrides_shipped_coverage(run: Run) -> None:
    put_wheels("12.9.1")
    path = Path("data/features/wheels/cuda/feature_12.9.1.json")
    features = json.loads(path.read_bytes())
    for archive in features["packages"]["libcublas"]["archives"]:
        for file in archive["code_by_file"].values():
            file["modules"] = {"sm_90": 5}
    path.write_text(json.dumps(features))
    native = coverage(run)["libcublas"]
    assert native is not None
    assert "12.9.1" in native["gaps"]
