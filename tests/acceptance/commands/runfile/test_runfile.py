"""Tests of `runfile add`, and of check, build and export nix with runfiles."""

import base64
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from support.consumers import evaluate_nix
from support.factory import manifest
from support.nix_builds import needs_nix
from support.optional_programs import needs
from support.releases import put
from support.runfiles import NAME, runfile
from support.running import expect_error, expect_output
from support.server import (
    FaultServer,
    breaking_after,
    silent,
    status,
    truncated_with_matching_length,
)


def make_runfile(folder: Path, name: str = NAME) -> Path:
    """Return a runfile created by the real makeself."""
    content = folder / "content"
    content.mkdir()
    (content / "install.sh").write_text(f"touch {folder / 'executed'}\n")
    (content / "data").write_bytes(bytes(range(256)) * 500)
    command = ("makeself", "--nox11", content, folder / name, "CUDA", "sh ./install.sh")
    subprocess.run(command, check=True, capture_output=True)
    return folder / name


DATA = runfile(b"the files" * 40_000)
FOLDER = "/compute/cuda/12.9.1"
PATH = f"{FOLDER}/local_installers/{NAME}"
SUMS = f"{FOLDER}/docs/sidebar/md5sum.txt"


def records() -> Any:
    return json.loads(Path("data/runfiles.json").read_bytes())["runfiles"]


def md5_of(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


@needs("makeself")
def test_add_records_makeself_file_and_executes_nothing(run: Run, tmp_path: Path) -> None:
    path = make_runfile(tmp_path)
    data = path.read_bytes()
    result = run("runfile", "add", path, "--url", f"https://host.example/{NAME}", "--json")
    assert result.exit_code == 0, result.output
    digest = hashlib.sha256(data)
    assert records() == {
        "12.9.1": {
            "linux-x86_64": {
                "name": NAME,
                "url": f"https://host.example/{NAME}",
                "size": len(data),
                "sha256": digest.hexdigest(),
                "sri": f"sha256-{base64.b64encode(digest.digest()).decode()}",
                "md5": md5_of(data),
                "driver": "575.57.08",
            }
        }
    }
    assert not (tmp_path / "executed").exists()
    report = json.loads(result.stdout)
    (added,) = report["runfiles"]
    assert (added["release"], added["platform"]) == ("12.9.1", "linux-x86_64")
    assert (
        "unchanged" in run("runfile", "add", path, "--url", f"https://host.example/{NAME}").stdout
    )


@pytest.mark.parametrize("is_resumable", [True, False])
def test_add_of_address_resumes_or_restarts_after_break(
    run: Run, server: FaultServer, *, is_resumable: bool
) -> None:
    server.files[PATH] = DATA
    server.misbehave(PATH, breaking_after(100_000, resumable=is_resumable), times=1)
    assert run("runfile", "add", f"{server.url}{PATH}").exit_code == 0
    record = records()["12.9.1"]["linux-x86_64"]
    assert record["sha256"] == hashlib.sha256(DATA).hexdigest()
    assert record["url"] == f"{server.url}{PATH}"


@pytest.mark.parametrize(
    ("release", "names"),
    [
        ("12.4.1", ["550.54.15_linux", "550.54.15_linux_ppc64le", "550.54.15_linux_sbsa"]),
        ("12.9.1", ["575.57.08_linux", "575.57.08_linux_sbsa"]),
        ("13.4.2", ["linux", "linux_sbsa"]),
    ],
)
def test_add_of_release_records_all_platforms(
    run: Run,
    server: FaultServer,
    monkeypatch: pytest.MonkeyPatch,
    release: str,
    names: list[str],
) -> None:
    monkeypatch.setattr("cudaredist.commands.runfile.release_runfiles.NVIDIA_BASE", server.url)
    folder = f"/compute/cuda/{release}/local_installers"
    paths = [f"{folder}/cuda_{release}_{name}.run" for name in names]
    server.files |= dict.fromkeys(paths, DATA)
    report = json.loads(run("runfile", "add", release, "--json").stdout)
    assert [one["record"]["url"] for one in report["runfiles"]] == [
        f"{server.url}{path}" for path in paths
    ]
    assert len(records()[release]) == len(names)
    assert "unchanged" in run("runfile", "add", release).stdout


def test_add_of_release_requires_a_driver_in_its_manifest(run: Run) -> None:
    old = {"cuda/redistrib_11.4.1.json": manifest("11.4.1", "cuda_cudart")}
    put(Path("data/manifests"), old)
    expect_error(run("runfile", "add", "11.4.1"), 2, "the manifest of CUDA 11.4.1 has no driver")


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (DATA[:-7], 5, "its script states"),
        (runfile(b"other", md5="1" * 32), 4, "MD5"),
    ],
)
def test_add_of_wrong_bytes_writes_nothing(
    run: Run, server: FaultServer, data: bytes, code: int, message: str
) -> None:
    server.files[PATH] = data
    result = expect_output(run("runfile", "add", f"{server.url}{PATH}", "--json"), code)
    error = json.loads(result.stdout)["error"]
    assert message in error["message"]
    assert error["hint"] == "download the file again"
    assert not Path("data").exists()


@pytest.mark.parametrize(
    ("behaviour", "code"), [(status(404), 3), (truncated_with_matching_length, 5), (silent, 3)]
)
def test_add_from_failing_server_writes_nothing(
    run: Run, server: FaultServer, behaviour: Any, code: int
) -> None:
    server.files[PATH] = DATA
    server.misbehave(PATH, behaviour)
    address = f"{server.url}{PATH}"
    assert run("runfile", "add", address, "--timeout", 0.5, "--retries", 0).exit_code == code
    assert not Path("data").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["./installer.run"], "not the name of a CUDA runfile"),
        ([f"https://host.example/{NAME}", "--url", "https://x.example"], "requires a local file"),
        ([f"https://host.example/{NAME}?t=SECRET"], "not the name of a CUDA runfile"),
        (["https://user:SECRET@installer.run"], "not the name of a CUDA runfile"),
        ([f"https://host.example/x?t=SECRET/{NAME}"], "without '?'"),
        ([NAME, "--url", f"https://user:SECRET@host.example/{NAME}?t=SECRET"], "without a query"),
        ([f"http://host.example/{NAME}"], "download the file and use its path"),
        ([NAME, "--url", "not an address"], "without a query"),
        (["12.9.1", "--url", "https://x.example"], "requires a local file"),
        (["12.9"], "not the name of a CUDA runfile"),
        (["99.9.9"], "no manifest of CUDA 99.9.9"),
        (["11.0.3"], "the manifest of CUDA 11.0.3 has no driver"),
        ([NAME, "--url", f"file:///{NAME}"], "without a query"),
    ],
)
def test_add_with_invalid_arguments_is_refused(
    run: Run, arguments: list[str], message: str
) -> None:
    result = expect_error(run("runfile", "add", *arguments), 2, message)
    assert "SECRET" not in result.output


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("./nowhere", "No such file or directory\nhint: check the path"),
        ("n" * 300, "name too long"),
    ],
)
def test_add_of_missing_file_is_refused_with_a_hint(run: Run, folder: str, message: str) -> None:
    expect_error(
        run("runfile", "add", f"{folder}/{NAME}"), 3, f"cannot read {folder}/{NAME}: ", message
    )
    assert not Path("data").exists()


def make_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(70 << 30)


ODD_FILES: dict[str, tuple[Callable[[Path], object], int, str]] = {
    "folder": (Path.mkdir, 3, "not a regular file"),
    "pipe": (os.mkfifo, 3, "not a regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), 3, "not a regular file"),
    "empty": (Path.touch, 5, "not a makeself script"),
    "sparse": (make_sparse, 5, "larger than the limit of 17,179,869,184 bytes"),
    "other bytes": (lambda path: path.write_bytes(b"x" * 3000), 5, "not a makeself script"),
    "cut off": (lambda path: path.write_bytes(DATA[:-9]), 5, "its script states"),
}


@pytest.mark.parametrize("kind", ODD_FILES)
def test_add_of_odd_file_writes_nothing(run: Run, kind: str) -> None:
    make, code, message = ODD_FILES[kind]
    make(Path(NAME))
    expect_error(run("runfile", "add", NAME), code, message)
    assert not Path("data").exists()


def test_add_records_no_credentials(run: Run) -> None:
    Path(NAME).write_bytes(DATA)
    result = run("runfile", "add", NAME, "--url", f"https://user:SECRET@host.example/{NAME}")
    assert result.exit_code == 0
    assert "SECRET" not in result.output
    assert records()["12.9.1"]["linux-x86_64"]["url"] == f"https://host.example/{NAME}"


def test_add_of_other_bytes_keeps_record(run: Run) -> None:
    Path(NAME).write_bytes(DATA)
    assert run("runfile", "add", NAME).exit_code == 0
    first = records()
    Path(NAME).write_bytes(runfile(b"other"))
    expect_error(run("runfile", "add", NAME), 4, "the record was kept", "--replace")
    assert records() == first
    assert run("runfile", "add", NAME, "--replace").exit_code == 0
    assert records()["12.9.1"]["linux-x86_64"]["size"] == len(runfile(b"other"))


def test_add_of_same_bytes_keeps_address(run: Run) -> None:
    Path(NAME).write_bytes(DATA)
    url = f"https://host.example/{NAME}"
    assert run("runfile", "add", NAME, "--url", url).exit_code == 0
    assert "unchanged" in run("runfile", "add", NAME).stdout
    assert records()["12.9.1"]["linux-x86_64"]["url"] == url


def test_add_of_file_address_records_no_path(run: Run) -> None:
    Path(NAME).write_bytes(DATA)
    location = Path(NAME).absolute().as_uri().replace("file:", "FILE:")
    assert run("runfile", "add", location).exit_code == 0
    assert records()["12.9.1"]["linux-x86_64"]["url"] is None


def test_add_of_file_in_root_reads_no_other_file(run: Run) -> None:
    Path(NAME).write_bytes(DATA)
    expect_output(run("runfile", "add", f"/{NAME}"), 3)
    assert not Path("data").exists()


@pytest.mark.parametrize("table", ['{"runfiles": {}, "schema_version": 1}', None])
def test_add_removes_the_temporary_file_of_a_killed_run(run: Run, table: str | None) -> None:
    """The folder may also be one that another run is about to write its first file to."""
    Path(NAME).write_bytes(DATA)
    killed = Path("data/.runfiles.json.0123456789ab.tmp")
    killed.parent.mkdir()
    if table is not None:
        (killed.parent / "runfiles.json").write_text(table)
    killed.write_bytes(b"half")
    assert run("runfile", "add", NAME).exit_code == 0
    assert not killed.exists()


# -- check


def checked(run: Run, server: FaultServer, page: str | None) -> Any:
    """Return check's findings about runfiles, with or without a page of MD5 sums."""
    server.files[PATH] = DATA
    assert run("runfile", "add", f"{server.url}{PATH}").exit_code == 0
    if page is not None:
        server.files[SUMS] = page.encode()
    answer = run("check", "--base-url", server.url, "--data-dir", "data", "--json").stdout
    return [one for one in json.loads(answer)["findings"] if one["path"] == "runfiles.json"]


def test_check_accepts_page_with_same_sum(run: Run, server: FaultServer) -> None:
    assert checked(run, server, f"{md5_of(DATA)}  {NAME}\n{'0' * 32}  other.run\n") == []


@pytest.mark.parametrize(
    ("page", "kind", "code", "message"),
    [
        (f"{'1' * 32}  {NAME}\n", "changed-upstream", 4, "the record"),
        (f"{'1' * 32}  other.run\n", "gone", 0, "is not on NVIDIA's page"),
        ("nothing here", "unreachable", 3, "has no MD5 sums"),
        ("<html><body>\n<p hidden>\n</body></html>", "unreachable", 3, "has no MD5 sums"),
        (None, "unreachable", 3, "404"),
    ],
)
def test_check_reports_page_with_other_sum(
    run: Run, server: FaultServer, page: str | None, kind: str, code: int, message: str
) -> None:
    (finding,) = checked(run, server, page)
    assert (finding["kind"], finding["exit_code"], finding["release"]) == (kind, code, "12.9.1")
    assert message in finding["message"]


def test_check_reads_page_of_release_once(run: Run, server: FaultServer) -> None:
    other = PATH.replace("_linux", "_linux_sbsa")
    server.files |= {PATH: DATA, other: DATA, SUMS: f"{md5_of(DATA)}  {NAME}\n".encode()}
    for path in (PATH, other):
        assert run("runfile", "add", f"{server.url}{path}").exit_code == 0
    assert records()["12.9.1"].keys() == {"linux-x86_64", "linux-sbsa"}
    server.requests.clear()
    answer = run("check", "--base-url", server.url, "--data-dir", "data", "--json").stdout
    (finding,) = [one for one in json.loads(answer)["findings"] if one["path"] == "runfiles.json"]
    assert (finding["kind"], finding["release"]) == ("gone", "12.9.1")
    assert server.requests[SUMS] == 1


def test_check_without_page_of_one_release_compares_others(run: Run, server: FaultServer) -> None:
    labels = ("12.8.0", "12.9.1", "13.0.0")
    for label in labels:
        path = PATH.replace("12.9.1", label)
        server.files[path] = DATA
        assert run("runfile", "add", f"{server.url}{path}").exit_code == 0
        if label != "12.9.1":
            sums = f"{'1' * 32}  {NAME.replace('12.9.1', label)}\n"
            server.files[SUMS.replace("12.9.1", label)] = sums.encode()
    answer = run("check", "--base-url", server.url, "--data-dir", "data", "--json").stdout
    kinds = {
        one["release"]: one["kind"]
        for one in json.loads(answer)["findings"]
        if one["path"] == "runfiles.json"
    }
    assert kinds == dict(
        zip(labels, ("changed-upstream", "unreachable", "changed-upstream"), strict=True)
    )


def test_record_with_another_hash_in_the_form_of_nix_is_invalid(run: Run) -> None:
    Path(NAME).write_bytes(DATA)
    assert run("runfile", "add", NAME).exit_code == 0
    path = Path("data/runfiles.json")
    sri = records()["12.9.1"]["linux-x86_64"]["sri"]
    path.write_text(path.read_text().replace(sri, f"sha256-{'A' * 43}="))
    validated = expect_output(run("validate", path), 5)
    assert "is not the hash" in validated.output


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"12.9.1"', '"12.8.1"'),
        ('"linux-x86_64"', '"linux-sbsa"'),
        ('"driver": "575.57.08"', '"driver": "570.1"'),
        (f'"name": "{NAME}"', '"name": "installer.run"'),
    ],
)
def test_record_whose_name_contradicts_its_key_is_invalid(run: Run, old: str, new: str) -> None:
    Path(NAME).write_bytes(DATA)
    assert run("runfile", "add", NAME).exit_code == 0
    path = Path("data/runfiles.json")
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    validated = expect_output(run("validate", path), 5)
    assert "is not the runfile of CUDA" in validated.output
    expect_error(run("runfile", "add", NAME), 5, "runfiles.json: ")


@pytest.mark.parametrize("offline", [["--offline"], []])
def test_check_of_broken_record_reports_other_findings(run: Run, offline: list[str]) -> None:
    Path("data").mkdir()
    Path("data/runfiles.json").write_text("{}")
    mirror = [] if offline else ["--base-url", str(Path.cwd())]
    answer = run("check", *offline, *mirror, "--data-dir", "data", "--json")
    report = json.loads(answer.stdout)
    kinds = {one["path"]: one["kind"] for one in report["findings"]}
    assert kinds["runfiles.json"] == "invalid"
    assert "nothing-held" in kinds.values()
    assert answer.exit_code == 5


def test_check_of_other_redistributable_ignores_runfiles(run: Run) -> None:
    put(Path("data/manifests"), {"cudnn/redistrib_9.10.2.json": manifest("9.10.2", "cudnn")})
    Path("data/runfiles.json").write_text("{}")
    check = ("check", "--offline", "--data-dir", "data", "--redist")
    assert "runfiles.json" not in run(*check, "cudnn").output
    assert "runfiles.json" in run(*check, "cudnn", "--redist", "cuda").output


# -- sets


@needs_nix
@pytest.mark.parametrize("url", [f"https://host.example/{NAME}", None])
def test_export_nix_contains_source_of_cudatoolkit(
    run: Run, tmp_path: Path, url: str | None
) -> None:
    path = tmp_path / NAME
    path.write_bytes(DATA)
    data = tmp_path / "copy"
    for part in ("policy", "manifests/wheels/cuda", "features/wheels/cuda"):
        (data / part).parent.mkdir(parents=True, exist_ok=True)
        (data / part).symlink_to(REPOSITORY / "data" / part)
    url_options = [] if url is None else ["--url", url]
    assert run("runfile", "add", path, "--data-dir", data, *url_options).exit_code == 0
    build = ("build", "--cuda", "12.9.1", "--platform", "linux-x86_64", "--data-dir", data)
    assert run(*build, "-o", "set.json").exit_code == 0
    export = ("export", "nix", "set.json", "--wheel-base", "https://w.example", "-o", "cuda")
    assert run(*export).exit_code == 0
    package_set = json.loads(Path("set.json").read_bytes())
    assert package_set["runfile"]["sha256"] == hashlib.sha256(DATA).hexdigest()
    assert "runfiles" in {one["kind"] for one in package_set["inputs"]}
    evaluated = evaluate_nix(
        Path("cuda"), "[ set.cudatoolkit.version set.cudatoolkit.src.outPath ]"
    )
    if url is None:
        assert "record it with cudaredist runfile add --url" in evaluated
    else:
        assert evaluated[0] == "12.9.1"
        assert evaluated[1].endswith(NAME)


def test_set_without_runfile_has_no_cudatoolkit(run: Run) -> None:
    build = ("build", "--cuda", "12.9.1", "--platform", "linux-x86_64", "-o", "set.json")
    assert run(*build).exit_code == 0
    assert "runfile" not in json.loads(Path("set.json").read_bytes())


def test_interrupted_add_leaves_no_data_folder(tmp_path: Path, server: FaultServer) -> None:
    server.files[PATH] = DATA
    server.misbehave(PATH, status(503))
    command = [sys.executable, "-m", "cudaredist", "runfile", "add", f"{server.url}{PATH}"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    server.wait_for_requests(1, process)
    process.kill()
    process.communicate()
    assert not (tmp_path / "data").exists()
