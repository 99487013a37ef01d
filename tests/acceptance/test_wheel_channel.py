"""Tests of the wheels channel on small indexes: folders and servers."""

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support import binaries
from support import server as faults
from support.running import expect_error, expect_output, held, report
from support.server import FaultServer
from support.wheels import metadata_of, put_wheel, wheel

from cudaredist.errors import NotAtSourceError
from cudaredist.primitives import sha256_of
from cudaredist.sources.protocol import Settings
from cudaredist.sources.wheel_source import WheelSource

JSON = "application/vnd.pypi.simple.v1+json"
X86, ARM = "manylinux2014_x86_64", "manylinux2014_aarch64"
LIBRARY = {
    "nvidia/cuda_runtime/lib/libcudart.so.12": binaries.elf(soname="libcudart.so.12"),
    "nvidia/cuda_runtime/include/cuda.h": b"//",
}
NVCC = {"nvidia/cuda_nvcc/bin/ptxas": binaries.elf(kind="program", needed=("libc.so.6",))}
ON_LINUX = "(sys_platform == 'linux') and extra == 'all'"
FEATURES = Path("data/features/wheels/cuda/feature_12.9.1.json")


@pytest.fixture
def index(pip_folder: Path, run: Run) -> Path:
    """Create two releases of CUDA in the folder of pip's configuration."""
    requires = ["nvidia-cuda-runtime-cu12==12.9.70.*"]
    put_wheel(pip_folder, "cuda-toolkit", "12.9.0", requires=requires)
    requires = [
        f"nvidia-cuda-runtime-cu12==12.9.79.*; {ON_LINUX}",
        "nvidia-cuda-nvcc-cu12<13,>=12.9.86; platform_machine == 'x86_64'",
    ]
    put_wheel(pip_folder, "cuda-toolkit", "12.9.1.0", requires=requires)
    for tag in (X86, ARM):
        put_wheel(pip_folder, "nvidia-cuda-runtime-cu12", "12.9.79", LIBRARY, tag=tag)
    put_wheel(pip_folder, "nvidia-cuda-nvcc-cu12", "12.9.86", NVCC, tag=X86)
    return pip_folder


def serve_with_dates(server: FaultServer, index: Path, day: str) -> None:
    """Serve a folder of wheels as an index that states their sizes and the day of their upload."""
    pages: dict[str, list[Any]] = {}
    for path in sorted(index.iterdir()):
        data = server.files[f"/files/{path.name}"] = path.read_bytes()
        item: dict[str, Any] = {
            "filename": path.name,
            "url": f"/files/{path.name}",
            "size": len(data),
        }
        item["upload-time"] = f"{day}T09:00Z"
        project = path.name.split("-")[0].replace("_", "-")
        pages.setdefault(project, []).append(item | {"hashes": {"sha256": sha256_of(data)}})
    for project, files in pages.items():
        page = json.dumps({"meta": {"api-version": "1.1"}, "name": project, "files": files})
        server.misbehave(f"/simple/{project}/", faults.body(page.encode(), Content_Type=JSON))


def serve(
    server: FaultServer, index: Path, yanked: str = "nothing is", *, has_metadata: bool = False
) -> None:
    """Serve a folder of wheels as an index, with some of them yanked."""
    pages: dict[str, list[str]] = {}
    for path in sorted(index.iterdir()):
        data = server.files[f"/files/{path.name}"] = path.read_bytes()
        mark = " data-yanked='broken'" if yanked in path.name else ""
        if has_metadata:
            metadata = metadata_of(path)
            server.files[f"/files/{path.name}.metadata"] = metadata
            mark += f" data-core-metadata='sha256={sha256_of(metadata)}'"
        link = f"<a href='/files/{path.name}#sha256={sha256_of(data)}'{mark}>{path.name}</a>"
        pages.setdefault(path.name.split("-")[0].replace("_", "-"), []).append(link)
    for project, links in pages.items():
        page = f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode()
        server.answers[f"/simple/{project}/"] = faults.body(page, Content_Type="text/html")


@pytest.fixture
def wheel_server(index: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> FaultServer:
    """Serve the wheels from the only index in pip's configuration."""
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    serve(server, index)
    return server


@pytest.fixture
def wheels(run: Run) -> Run:
    """Run a command on the wheels channel of CUDA."""
    return lambda command, *options: run(
        command, "--channel", "wheels", "--redist", "cuda", *options
    )


@pytest.mark.usefixtures("homeless", "wheel_server")
def test_user_without_home_can_use_an_index(wheels: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wheels("download-manifests").exit_code == 0
    monkeypatch.setenv("PIP_FIND_LINKS", "~/wheels")
    expect_error(wheels("download-manifests"), 2, "hint: write the whole path, or set HOME")


def manifest_of(label: str = "12.9.1", redist: str = "cuda") -> Any:
    return json.loads(held(label, f"wheels/{redist}").read_bytes())


def platforms(manifest: Any) -> dict[str, set[str]]:
    return {
        package: {name for name in entry if "-" in name}
        for package, entry in manifest.items()
        if isinstance(entry, dict)
    }


def test_release_of_wheels_is_downloaded_and_processed(index: Path, wheels: Run) -> None:
    expect_output(wheels("download-manifests"), 0)
    manifest = manifest_of()
    assert manifest["cuda_cudart"]["version"] == "12.9.79"
    assert platforms(manifest)["cuda_cudart"] == {"linux-sbsa", "linux-x86_64"}
    assert manifest["cuda_nvcc"]["linux-x86_64"]["relative_path"] == (
        f"nvidia-cuda-nvcc-cu12/nvidia_cuda_nvcc_cu12-12.9.86-py3-none-{X86}.whl"
    )
    lock = json.loads(Path("data/manifests/wheels/lock.json").read_bytes())
    assert list(lock["redists"]["cuda"]) == ["12.9.1"]
    assert not Path("data/lock.json").exists()

    result = expect_output(wheels("process-manifests"), 0)
    assert re.search(r"2 archives to read, [0-9.]+ [a-zA-Z]+; 0 B already known", result.stderr)
    packages = json.loads(FEATURES.read_bytes())["packages"]
    (library,) = packages["cuda_cudart"]["archives"][1]["libraries"]
    assert library["path"] == "lib/libcudart.so.12"
    assert library["links"] == ["lib/libcudart.so"]
    assert "bin" in packages["cuda_nvcc"]["archives"][0]["outputs"]

    result = wheels("check", "--json")
    assert report(result)["findings"] == []


def test_wheel_newer_than_any_release_is_reported_and_ignored(index: Path, wheels: Run) -> None:
    put_wheel(index, "nvidia-cuda-nvcc-cu12", "12.9.99", NVCC, tag=X86)
    result = wheels("download-manifests")
    assert "newer than any release: nvidia-cuda-nvcc-cu12 12.9.99" in result.stderr
    manifest = held(redist="wheels/cuda").read_text()
    assert "12.9.86" in manifest
    assert "12.9.99" not in manifest


def test_date_of_index_is_release_date_and_not_a_change(
    index: Path, wheels: Run, wheel_server: FaultServer
) -> None:
    expect_output(wheels("download-manifests"), 0)
    assert "release_date" not in manifest_of()
    assert wheels("process-manifests").exit_code == 0

    serve_with_dates(wheel_server, index, "2025-06-05")
    expect_output(wheels("download-manifests"), 0, "1 unchanged")
    assert report(wheels("check", "--json"))["findings"] == []
    expect_output(wheels("download-manifests", "--replace"), 0, "1 written")
    assert manifest_of()["release_date"] == "2025-06-05"
    wheel_server.requests.clear()
    assert "0 B" in wheels("process-manifests").stderr
    assert not [path for path in wheel_server.requests if path.endswith(".whl")]

    for options in ((), ("--replace",)):
        serve(wheel_server, index)
        expect_output(wheels("download-manifests", *options), 0, "1 unchanged")
    assert report(wheels("check", "--json"))["findings"] == []


WRONG_PINS = ("nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-nvcc-cu12==12.9.86")
DOUBTS = [
    "the wheels are those of 12.9.1",
    "newer builds exist for 1 project, such as nvidia-cuda-nvcc-cu12 12.9.99 (required: 12.9.86)",
]


@pytest.fixture
def wrong_release(index: Path) -> Path:
    """Add a release whose metapackage requires the wheels of the release before."""
    put_wheel(index, "cuda-toolkit", "12.9.2", requires=WRONG_PINS)
    put_wheel(index, "nvidia-cuda-nvcc-cu12", "12.9.99", NVCC, tag=X86)
    put_wheel(index, "nvidia-cuda-nvcc-cu12", "12.9.99rc1", NVCC, tag=X86)
    put_wheel(index, "nvidia-cuda-nvcc-cu12", "12.9.86.post1", NVCC, tag=X86)
    put_wheel(index, "nvidia-cuda-nvcc-cu12", "13.0.1", NVCC, tag=X86)
    requires = ["nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-nvcc-cu12==13.0.1"]
    put_wheel(index, "cuda-toolkit", "13.0.0", requires=requires)
    return index


@pytest.mark.usefixtures("wrong_release")
def test_release_with_wheels_of_another_is_reported(wheels: Run) -> None:
    result = expect_output(wheels("download-manifests", "--version", "12.9.2"), 0)
    assert all(f"cuda 12.9.2: {doubt}" in result.stderr for doubt in DOUBTS)
    assert not wheels("download-manifests", "--version", "12.9.2").stderr
    findings = report(wheels("check", "--json"))["findings"]
    doubtful = [one for one in findings if one["kind"] == "doubtful-wheels"]
    assert sorted(one["message"].split(": ", 1)[1] for one in doubtful) == sorted(DOUBTS)
    assert {(one["release"], one["exit_code"]) for one in doubtful} == {("12.9.2", 0)}


@pytest.mark.usefixtures("wrong_release")
@pytest.mark.parametrize(("version", "is_confirmed"), [("12.9.86", True), ("12.9.99", False)])
def test_release_with_wheels_of_another_is_confirmed_by_archives(
    wheels: Run, version: str, *, is_confirmed: bool
) -> None:
    expect_output(wheels("download-manifests", "--version", "12.9.2"), 0)
    name = f"cuda_nvcc/linux-x86_64/cuda_nvcc-linux-x86_64-{version}-archive.tar.xz"
    archive = {"relative_path": name, "sha256": "0" * 64, "md5": "0" * 32, "size": "1"}
    package = {"name": "NVCC", "license": "A", "version": version, "linux-x86_64": archive}
    document = {"release_label": "12.9.2", "cuda_nvcc": package}
    path = Path("data/manifests/cuda/redistrib_12.9.2.json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document))
    kinds = {one["kind"] for one in report(wheels("check", "--json"))["findings"]}
    assert ("doubtful-wheels" not in kinds) == is_confirmed


@pytest.mark.usefixtures("wrong_release")
def test_bump_to_release_with_wheels_of_another_is_reported(wheels: Run) -> None:
    assert wheels("download-manifests", "--version", "12.9.1").exit_code == 0
    result = wheels("bump", "--version", "12.9.2", "--no-process", "--json")
    assert report(result)["findings"] == [f"cuda 12.9.2: {doubt}" for doubt in DOUBTS]


@pytest.mark.usefixtures("wrong_release")
def test_policy_replaces_wheels_of_metapackage(wheels: Run) -> None:
    release = {"reason": "Why", "reference": "Where", "versions": {"cuda_nvcc": "12.9.99"}}
    policy = {"schema_version": 1, "metapackages": {"cuda": {"12.9.2": release}}}
    path = Path("data/policy/wheels.json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(policy))
    Path("data/manifests").mkdir()
    result = expect_output(wheels("download-manifests", "--version", "12.9.2"), 0)
    manifest = manifest_of("12.9.2")
    versions = {name: entry["version"] for name, entry in manifest.items() if "version" in entry}
    assert versions == {"cuda_cudart": "12.9.79", "cuda_nvcc": "12.9.99"}
    assert "12.9.2" not in result.stderr
    assert wheels("process-manifests").exit_code == 0
    findings = report(wheels("check", "--json"))["findings"]
    assert [one["kind"] for one in findings] == ["stale"]

    path.write_text(json.dumps({**policy, "metapackages": {"cuda": {"12.9.2": {}}}}))
    expect_error(wheels("download-manifests"), 5, "policy-wheels")


@pytest.mark.usefixtures("wrong_release")
@pytest.mark.parametrize(
    ("package", "version", "reason"),
    [
        ("cuda_nvcc", "12.9.98", "the index has no wheel of version 12.9.98"),
        ("cuda_nvc", "12.9.99", "the release has no package of this name"),
    ],
)
def test_policy_with_unknown_wheel_is_refused(
    wheels: Run, package: str, version: str, reason: str
) -> None:
    release = {"reason": "Why", "reference": "Where", "versions": {package: version}}
    policy = {"schema_version": 1, "metapackages": {"cuda": {"12.9.2": release}}}
    path = Path("data/policy/wheels.json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(policy))
    Path("data/manifests").mkdir()
    result = wheels("download-manifests", "--version", "12.9.2", "--version", "12.9.1")
    expect_error(result, 5, f"metapackages.cuda.12.9.2.versions.{package}: {reason}")
    assert held("12.9.1", "wheels/cuda").exists()
    assert not held("12.9.2", "wheels/cuda").exists()


@pytest.mark.parametrize(("version", "build"), [(None, "2.25.1.post1"), ("2.25.1", "2.25.1")])
def test_policy_selects_build_of_wheel(
    index: Path, wheels: Run, version: str | None, build: str
) -> None:
    for each in ("2.25.1", "2.25.1.post1"):
        put_wheel(index, "nvidia-nccl-cu12", each, LIBRARY, tag=X86)
    Path("data/manifests").mkdir(parents=True)
    if version is not None:
        release = {"reason": "Why", "reference": "Where", "versions": {"nccl": version}}
        policy = {"schema_version": 1, "metapackages": {"nccl": {"2.25.1": release}}}
        Path("data/policy").mkdir()
        Path("data/policy/wheels.json").write_text(json.dumps(policy))
    call = ("download-manifests", "--redist", "nccl", "--version", "2.25.1")
    expect_output(wheels(*call), 0)
    manifest = json.loads(held("2.25.1", "wheels/nccl").read_bytes())
    archive = manifest["nccl"]["linux-x86_64"]["cuda12"]
    assert archive["relative_path"].startswith(f"nvidia-nccl-cu12/nvidia_nccl_cu12-{build}-py3")


def test_build_of_wheel_is_not_a_release(run: Run) -> None:
    call = ("build", "--cuda", "12.8.1", "--platform", "linux-x86_64", "--output", "set.json")
    result = run(*call, "--redist", "nccl=2.25.1.post1")
    expect_error(result, 2, "is a build of the wheel of nccl 2.25.1, not a release")
    assert "`policy/wheels.json` in the data folder" in result.stderr
    assert "--redist nccl=2.25.1 " in result.stderr


def test_policy_for_redistributable_without_wheels_is_refused(run: Run) -> None:
    policy = {"schema_version": 1, "metapackages": {"nppplus": {}}}
    Path("wheels.json").write_text(json.dumps(policy))
    result = run("validate", "wheels.json")
    assert result.exit_code == 5
    assert "nppplus has no wheels" in result.stdout


@pytest.mark.parametrize("states_size", [False, True])
def test_endless_wheel_ends_at_limit(
    index: Path,
    wheels: Run,
    run: Run,
    wheel_server: FaultServer,
    *,
    states_size: bool,
) -> None:
    if states_size:
        serve_with_dates(wheel_server, index, "2026-11-04")
    sync = ("mirror", "sync", "mirrored", "--channel", "wheels", "--version", "12.9.1")
    assert wheels("download-manifests", "--version", "12.9.1").exit_code == 0
    assert run(*sync).exit_code == 0
    (path,) = Path("mirrored").rglob("*nvcc*.whl")
    path.unlink()
    wheel_server.misbehave(f"/files/{path.name}", faults.two_gigabytes(with_length=False))
    code = 4 if states_size else 5
    limit = ("--max-archive", "1MiB")
    result = wheels("process-manifests", "--version", "12.9.1", *limit)
    expect_error(result, code, "larger")
    expect_error(run(*sync, *limit), code, "larger")
    assert not path.exists()


def test_check_suggests_download_of_newer_release(index: Path, wheels: Run) -> None:
    Path("data/manifests/wheels/cuda").mkdir(parents=True)
    put_wheel(index, "nvidia-cuda-runtime-cu12", "12.9.70.1", LIBRARY, tag=X86)
    assert wheels("download-manifests", "--version", "12.9.0").exit_code == 0
    result = wheels("check")
    assert result.exit_code == 1
    assert "cudaredist download-manifests --channel wheels --redist cuda --version 12.9.1" in (
        result.stdout
    )


def test_each_page_and_wheel_is_requested_once(
    index: Path, wheels: Run, wheel_server: FaultServer
) -> None:
    requires = ["nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-nvcc-cu12==12.9.86"]
    labels = ("12.9.2", "12.9.3", "12.9.4")
    for label in labels:
        put_wheel(index, "cuda-toolkit", label, requires=requires)
    serve(wheel_server, index)
    options = [f"--version={label}" for label in labels]
    assert wheels("download-manifests", *options).exit_code == 0
    assert max(wheel_server.requests.values()) == 1
    texts = [held(label, "wheels/cuda").read_text() for label in labels]
    assert len({text.replace(label, "X") for text, label in zip(texts, labels, strict=True)}) == 1
    assert platforms(json.loads(texts[0])) == {
        "cuda_cudart": {"linux-sbsa", "linux-x86_64"},
        "cuda_nvcc": {"linux-x86_64"},
    }


def test_wheels_of_other_products_have_variants(index: Path, run: Run) -> None:
    files = {"nvidia/cudnn/lib/libcudnn.so.9": binaries.elf(soname="libcudnn.so.9")}
    for variant in ("cu12", "cu13"):
        put_wheel(index, f"nvidia-cudnn-{variant}", "9.13.0.50", files, tag=X86)
    put_wheel(index, "nvidia-cudnn-cu12", "9.12.0.46", files, tag=X86)
    options = ("--channel", "wheels", "--redist", "cudnn")
    assert run("download-manifests", *options).exit_code == 0
    assert run("process-manifests", *options, "--variant", "cuda13").exit_code == 0
    path = Path("data/features/wheels/cudnn/feature_9.13.0.json")
    archives = json.loads(path.read_bytes())["packages"]["cudnn"]["archives"]
    assert [(a["variant"], a["status"]) for a in archives] == [
        ("cuda12", "not-examined"),
        ("cuda13", "examined"),
    ]


def test_release_of_a_product_with_metapackages_has_their_requirements(
    index: Path, run: Run
) -> None:
    files = {"custatevec/lib/libcustatevec.so.1": binaries.elf(soname="libcustatevec.so.1")}
    for major, version in ((12, "1.14.0"), (13, "1.15.0")):
        requires = [f"custatevec-cu{major}=={version}"]
        for tag in (X86, ARM):
            put_wheel(index, f"cuquantum-cu{major}", "26.9.0", tag=tag, requires=requires)
        put_wheel(index, f"custatevec-cu{major}", version, files, tag=X86)
    options = ("--channel", "wheels", "--redist", "cuquantum")
    expect_output(run("download-manifests", *options), 0)
    manifest = manifest_of("26.09.0", "cuquantum")
    assert platforms(manifest) == {"custatevec": {"linux-x86_64"}}
    package = manifest["custatevec"]
    assert (package["version"], package["cuda_variant"]) == ("1.15.0", ["12", "13"])
    assert package["linux-x86_64"].keys() == {"cuda12", "cuda13"}
    expect_output(run("process-manifests", *options), 0)
    expect_output(run("mirror", "sync", "mirror", *options), 0)
    expect_output(run("mirror", "prune", "mirror", *options), 0)
    names = {file.name for file in Path("mirror/simple").rglob("*.whl")}
    assert names == {file.name for file in index.iterdir() if file.name.startswith(("cuq", "cus"))}


def test_changed_wheel_exits_4(index: Path, wheels: Run) -> None:
    wheels("download-manifests")
    put_wheel(index, "nvidia-cuda-nvcc-cu12", "12.9.86", {**NVCC, "x": b"more"}, tag=X86)
    expect_error(wheels("process-manifests"), 4, "SHA-256")


def test_redists_missing_from_index_exit_3(index: Path, run: Run) -> None:
    put_wheel(index, "nvidia-nccl-cu12", "2.28.0rc1", tag=X86)
    (index / "nvidia-cudss-cu12-0.7.0.tar.gz").write_bytes(b"a source distribution")
    for redist, words in (
        ("nccl", "no wheels of nccl"),
        ("cudss", "no wheels of cudss"),
        ("nppplus", "NVIDIA does not publish wheels of nppplus"),
        ("tensorrt", "PyPI has only source distributions, which download wheels"),
    ):
        expect_error(run("download-manifests", "--channel", "wheels", "--redist", redist), 3, words)


def test_yanked_release_is_not_listed(
    index: Path, wheels: Run, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    name = "cuda_toolkit-12.9.9-py3-none-any.whl"
    server.files[f"/files/{name}"] = wheel("cuda-toolkit", "12.9.9", {})
    link = f"<a href='/files/{name}' data-yanked='broken'>{name}</a>".encode()
    server.misbehave("/simple/cuda-toolkit/", faults.body(link, Content_Type="text/html"))
    result = wheels("download-manifests", "--version", "12.9.9")
    assert result.exit_code == 3
    assert "none of the selected redistributables lists 12.9.9" in result.stderr


def test_yanked_metapackage_of_a_release_raises(index: Path, wheel_server: FaultServer) -> None:
    serve(wheel_server, index, "cuda_toolkit-12.9.1")
    with contextlib.closing(WheelSource(Settings())) as source:
        assert [str(wheel.version) for wheel in source.metapackages("cuda", "12.9.0")] == ["12.9.0"]
        with pytest.raises(NotAtSourceError, match=r"no cuda-toolkit 12\.9\.1"):
            source.metapackages("cuda", "12.9.1")


@pytest.mark.parametrize(("yanked", "other"), [("nvcc", "12.9.2"), (X86, "12.9.1")])
def test_yanked_wheel_of_release_is_used(
    index: Path, wheels: Run, wheel_server: FaultServer, yanked: str, other: str
) -> None:
    """A yanked wheel is in no list of versions, but the release requires it.

    An index may yank the files of one platform only.
    """
    put_wheel(index, "nvidia-cublas-cu12", "12.9.1", LIBRARY, tag=ARM)
    put_wheel(index, "nvidia-cuda-nvcc-cu12", "12.9.86", NVCC, tag=ARM)
    requires = [
        *("nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-nvcc-cu12==12.9.86"),
        "nvidia-cublas-cu12==12.9.1",
    ]
    put_wheel(index, "cuda-toolkit", "12.9.2", requires=requires)
    serve(wheel_server, index, yanked)
    both = ("--version", "12.9.2", "--version", other, "--jobs", 1)
    assert wheels("download-manifests", *both).exit_code == 0
    manifest = manifest_of("12.9.2")
    assert platforms(manifest) == {
        "cuda_cudart": {"linux-sbsa", "linux-x86_64"},
        "cuda_nvcc": {"linux-sbsa", "linux-x86_64"},
        "libcublas": {"linux-sbsa"},
    }


def test_lowest_matching_wheel_is_used_for_missing_platform(index: Path, wheels: Run) -> None:
    requires = ["nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-nvcc-cu12>=12.9.86,<12.10"]
    put_wheel(index, "cuda-toolkit", "12.9.2", requires=requires)
    for version in ("12.9.85", "12.9.87", "12.9.90", "12.10.1"):
        put_wheel(index, "nvidia-cuda-nvcc-cu12", version, NVCC, tag=ARM)
    assert wheels("download-manifests", "--version", "12.9.2").exit_code == 0
    text = held("12.9.2", "wheels/cuda").read_text()
    assert f"nvidia_cuda_nvcc_cu12-12.9.86-py3-none-{X86}.whl" in text
    assert f"nvidia_cuda_nvcc_cu12-12.9.87-py3-none-{ARM}.whl" in text


def test_metadata_file_is_read_instead_of_wheel(
    index: Path, wheels: Run, wheel_server: FaultServer
) -> None:
    serve(wheel_server, index, has_metadata=True)
    assert wheels("download-manifests").exit_code == 0
    requests = [path for path, _ in wheel_server.headers if "files" in path]
    assert requests
    assert all(path.endswith(".whl.metadata") for path in requests)


def test_server_without_ranges_succeeds(
    index: Path, wheels: Run, wheel_server: FaultServer
) -> None:
    wheel_server.misbehave(wheel_server.files, faults.without_ranges)
    assert wheels("download-manifests").exit_code == 0
    manifest = manifest_of()
    assert manifest["cuda_nvcc"]["name"] == "nvidia-cuda-nvcc-cu12"


@pytest.mark.parametrize(
    ("behaviour", "quiet"),
    [
        pytest.param(faults.status(500), "3", id="500"),
        pytest.param(faults.body(b"log in", Content_Type="text/plain"), "0", id="another page"),
        pytest.param(faults.reset_in_the_middle, "0", id="reset"),
    ],
)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_unreachable_component_is_not_absent(
    index: Path,
    wheels: Run,
    wheel_server: FaultServer,
    monkeypatch: pytest.MonkeyPatch,
    behaviour: Any,
    quiet: str,
    *,
    elsewhere: bool,
) -> None:
    """Neither another source nor a quiet pip changes the result."""
    if elsewhere:
        monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_QUIET", quiet)
    wheel_server.misbehave("/simple/nvidia-cuda-nvcc-cu12/", behaviour)
    expect_output(wheels("download-manifests", "--retries", 0), 3, "cuda  12.9.1  failed")
    assert not list(Path("data").rglob("redistrib_*"))


@pytest.mark.parametrize(
    "options", [["--base-url", "somewhere"], ["https://localhost/x", "folder"]]
)
def test_invalid_options_exit_2(index: Path, run: Run, options: list[str]) -> None:
    expect_error(run("download-manifests", "--channel", "wheels", *options), 2, "--channel")


def test_wheel_channel_writes_no_temporary_files(
    wheels: Run, wheel_server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.mkdtemp", None)
    monkeypatch.setattr("tempfile.mkstemp", None)
    wheel_server.misbehave(wheel_server.files, faults.without_ranges)
    assert wheels("download-manifests").exit_code == 0
    assert wheels("process-manifests").exit_code == 0
    assert not (tmp_path / "cache/staging").exists()


def test_max_download_selects_wheels_by_their_sizes(
    index: Path, wheels: Run, wheel_server: FaultServer
) -> None:
    put_wheel(index, "nvidia-cuda-nvcc-cu12", "12.9.86", {**NVCC, "x": os.urandom(9000)}, tag=X86)
    serve(wheel_server, index)
    wheels("download-manifests")
    result = wheels("process-manifests", "--max-download", "5kB", "--json")
    skipped = [a for a in report(result)["archives"] if a["status"] == "skipped"]
    assert [archive["package"] for archive in skipped] == ["cuda_nvcc"]
