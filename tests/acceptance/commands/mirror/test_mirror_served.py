"""Mirrors served by nginx: our commands and pip as clients."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from conftest import REPOSITORY, Run
from support import binaries, small_sets
from support.mirrors import changed_paths, planned_paths, published, state_of
from support.optional_programs import find_program, needs
from support.pages import blocks
from support.running import expect_error, expect_output, report
from support.wheels import metadata_of, put_wheel

from cudaredist.primitives import sha256_of
from cudaredist.sources.index_page import ACCEPT

pytestmark = pytest.mark.slow

PROGRAM = find_program("nginx")


_FRAME = """daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ }}
http {{
    types {{ text/html html; application/json json; }}
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {servers}
}}
"""


@dataclass
class Nginx:
    """A running nginx."""

    url: str
    log_path: Path

    def log(self) -> str:
        """Return the requests so far."""
        return self.log_path.read_text()


def configurations() -> list[str]:
    """Return the configurations on the page about mirrors."""
    page = REPOSITORY / "docs/mirror.md"
    found = [block for block in blocks(page) if "server_name mirror.example" in block]
    assert len(found) == 2
    return found


@contextlib.contextmanager
def serving_folder(mirror: Path, folder: Path, configuration: str) -> Iterator[Nginx]:
    """Serve a mirror by a configuration of the page, without TLS, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    servers = configuration.replace("/srv/cuda", str(mirror.absolute()))
    servers = re.sub(r"listen [^;]+;", f"listen 127.0.0.1:{port};", servers)
    folder.mkdir()
    (folder / "nginx.conf").write_text(_FRAME.format(folder=folder, servers=servers))
    assert PROGRAM is not None
    process = subprocess.Popen(
        [PROGRAM, "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"]
    )
    try:
        while process.poll() is None:
            with contextlib.suppress(ConnectionRefusedError), socket.socket() as probe:
                probe.connect(("127.0.0.1", port))
                break
            time.sleep(0.01)
        assert process.poll() is None, (folder / "error.log").read_text()
        yield Nginx(f"http://127.0.0.1:{port}", folder / "access.log")
    finally:
        process.terminate()
        process.wait()


MIRROR = Path("mirror")
X86 = "manylinux2014_x86_64"
JSON = "application/vnd.pypi.simple.v1+json"


@pytest.fixture(params=[0, 1], ids=["plain", "with JSON"])
def configuration(request: pytest.FixtureRequest) -> str:
    return configurations()[int(request.param)]


# -- archives


@pytest.fixture
def origin(run: Run, tmp_path: Path) -> Path:
    """A folder with releases of CUDA and cuDNN, and package sets of them."""
    root = tmp_path / "origin"
    small_sets.make_data(root)
    small_sets.make_sets(root)
    result = run("mirror", "sync", MIRROR, "--version", "all", "--base-url", root / "source")
    assert result.exit_code == 0, result.output
    return root


@pytest.fixture
def nginx(origin: Path, tmp_path: Path, configuration: str) -> Iterator[Nginx]:
    with serving_folder(MIRROR, tmp_path / "nginx", configuration) as running:
        yield running


@needs("nginx")
def test_commands_work_from_a_served_mirror(nginx: Nginx, run: Run, origin: Path) -> None:
    base, unchanged = ("--base-url", nginx.url), '.json HTTP/1.1" 304'
    redists = ("--redist", "cuda", "--redist", "cudnn")
    result = run("download-manifests", *base, *redists, "--version", "all", "--json")
    assert result.exit_code == 0, result.output
    assert len(report(result)["manifests"]) == 3
    result = run("check", *base, *redists, "--json")
    kinds = {finding["kind"] for finding in report(result)["findings"]}
    assert kinds == {"no-features"}
    assert run("process-manifests", *base, "--keep-archives").exit_code == 0
    before = nginx.log().count(unchanged)
    again = run("download-manifests", *base, *redists, "--version", "all", "--json")
    assert {one["status"] for one in report(again)["manifests"]} == {"unchanged"}
    assert nginx.log().count(unchanged) - before == 3
    package_set = origin / "sets/linux-x86_64/cuda-12.9.1.json"
    expect_output(run("materialize", package_set, "--output", "root", *base), 0)
    assert Path("root/include/cuda_runtime.h").is_file()


@needs("nginx")
def test_archives_of_a_served_mirror_resume_and_have_parts(
    nginx: Nginx, run: Run, tmp_path: Path
) -> None:
    base = ("--base-url", nginx.url)
    run("download-manifests", *base, "--redist", "cuda")
    path = next(MIRROR.rglob("cuda_cudart-linux-x86_64*.tar.xz"))
    data = path.read_bytes()
    sha256 = sha256_of(data)
    part = tmp_path / "cache/archives" / sha256[:2] / f"{sha256}.tar.xz.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(data[:100])
    only = ("--package", "cuda_cudart", "--platform", "linux-x86_64")
    assert run("process-manifests", *base, *only, "--keep-archives").exit_code == 0
    assert f'{path.name} HTTP/1.1" 206 {len(data) - 100}' in nginx.log()
    assert part.with_suffix("").read_bytes() == data


@needs("nginx")
def test_a_mirror_of_a_served_mirror_is_equal(nginx: Nginx, run: Run) -> None:
    expect_output(run("mirror", "sync", "second", "--version", "all", "--base-url", nginx.url), 0)
    assert published(Path("second")) == published(MIRROR)


# -- wheels


@pytest.fixture
def index(pip_folder: Path, run: Run) -> Path:
    """Create a release of CUDA in the folder of pip's configuration."""
    library = {"nvidia/cuda_runtime/lib/libcudart.so.12": binaries.elf(soname="libcudart.so.12")}
    requires = [
        "nvidia-cuda-runtime-cu12==12.9.79.*",
        "nvidia-cuda-nvcc-cu12==12.9.86.*; platform_machine == 'x86_64'",
    ]
    put_wheel(pip_folder, "cuda-toolkit", "12.9.1", requires=requires)
    put_wheel(pip_folder, "nvidia-cuda-runtime-cu12", "12.9.79", library, tag=X86)
    needs_runtime = ["nvidia-cuda-runtime-cu12"]
    put_wheel(pip_folder, "nvidia-cuda-nvcc-cu12", "12.9.86", tag=X86, requires=needs_runtime)
    return pip_folder


@pytest.fixture
def sync_wheels(run: Run) -> Run:
    return lambda *options: run(
        *("mirror", "sync", MIRROR, "--channel", "wheels", "--redist", "cuda"), *options
    )


@pytest.fixture
def wheel_nginx(
    index: Path,
    sync_wheels: Run,
    tmp_path: Path,
    configuration: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Nginx]:
    """A mirror of the wheels on nginx, the only index in pip's configuration."""
    expect_output(sync_wheels(), 0)
    with serving_folder(MIRROR, tmp_path / "nginx", configuration) as running:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.delenv("PIP_FIND_LINKS")
        monkeypatch.setenv("PIP_INDEX_URL", f"{running.url}/simple")
        yield running


def pip(*arguments: object) -> None:
    command = [sys.executable, "-m", "pip", "--no-cache-dir", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)


@needs("nginx")
def test_pip_installs_components_from_a_served_mirror(
    wheel_nginx: Nginx, index: Path, tmp_path: Path
) -> None:
    linux = ("--platform", X86, "--only-binary", ":all:")
    pip("install", "--target", "installed", *linux, "cuda-toolkit==12.9.1")
    assert Path("installed/nvidia/cuda_runtime/lib/libcudart.so.12").is_file()
    assert '.whl.metadata HTTP/1.1" 200' in wheel_nginx.log()
    lines = []
    for path in sorted(index.iterdir()):
        project, version = path.name.split("-")[:2]
        lines.append(f"{project}=={version} --hash=sha256:{sha256_of(path.read_bytes())}\n")
    Path("requirements.txt").write_text("".join(lines))
    hashed = ("--require-hashes", "-r", "requirements.txt")
    pip("download", "-d", "hashed", *linux, *hashed)
    assert {path.name for path in Path("hashed").iterdir()} == {p.name for p in index.iterdir()}


@needs("nginx")
def test_channel_wheels_works_from_a_served_mirror(wheel_nginx: Nginx, run: Run) -> None:
    wheels = ("--channel", "wheels", "--redist", "cuda")
    expect_output(run("download-manifests", *wheels), 0)
    name = "manifests/wheels/cuda/redistrib_12.9.1.json"
    assert (Path("data") / name).read_bytes() == (MIRROR / ".mirror" / name).read_bytes()
    assert run("process-manifests", *wheels).exit_code == 0
    expect_output(run("mirror", "sync", "second", *wheels), 0)
    assert published(Path("second")) == published(MIRROR)


@needs("nginx")
def test_second_sync_of_wheels_asks_only_for_pages(wheel_nginx: Nginx, run: Run) -> None:
    wheels = ("--channel", "wheels", "--redist", "cuda")
    assert run("mirror", "sync", "second", *wheels).exit_code == 0
    before = wheel_nginx.log()
    assert run("mirror", "sync", "second", *wheels).exit_code == 0
    requests = wheel_nginx.log().removeprefix(before).splitlines()
    assert [line.split('"')[1].split()[1].count("/") for line in requests] == [3] * 3


@needs("nginx")
def test_pages_are_negotiated_if_nginx_is_configured_for_it(
    wheel_nginx: Nginx, configuration: str
) -> None:
    page = httpx.get(f"{wheel_nginx.url}/simple/cuda-toolkit/", headers={"Accept": ACCEPT})
    is_json = "map $http_accept" in configuration
    assert page.headers["Content-Type"] == (JSON if is_json else "text/html")
    html = httpx.get(f"{wheel_nginx.url}/simple/cuda-toolkit/", headers={"Accept": "text/html"})
    assert html.headers["Content-Type"] == "text/html"
    assert httpx.get(f"{wheel_nginx.url}/.mirror/manifests/").status_code == 403


def test_wheels_are_stored_once_with_their_metadata(
    index: Path, sync_wheels: Run, run: Run
) -> None:
    assert sync_wheels().exit_code == 0
    wheels = {path.name: path for path in MIRROR.rglob("*.whl")}
    assert {name: path.read_bytes() for name, path in wheels.items()} == {
        path.name: path.read_bytes() for path in index.iterdir()
    }
    listed = json.loads((MIRROR / "simple/index.json").read_bytes())["projects"]
    assert len(listed) == 3
    for path in wheels.values():
        metadata = path.with_name(f"{path.name}.metadata").read_bytes()
        assert metadata == metadata_of(path)
        (file,) = json.loads((path.parent / "index.json").read_bytes())["files"]
        assert file["hashes"] == {"sha256": sha256_of(path.read_bytes())}
        assert file["core-metadata"] == {"sha256": sha256_of(metadata)}
    again = report(sync_wheels("--json"))
    assert {one["status"] for one in again["archives"]} == {"present"}
    assert run("mirror", "verify", MIRROR).exit_code == 0


def remove_wheel() -> None:
    wheel = next(MIRROR.rglob("*.whl"))
    wheel.unlink()
    wheel.with_name(f"{wheel.name}.metadata").unlink()


def alter_metadata_and_keep_time() -> None:
    path = next(MIRROR.rglob("*.whl.metadata"))
    time_ns = path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes().swapcase())
    os.utime(path, ns=(time_ns, time_ns))


WHEEL_STATES: dict[str, Callable[[], object]] = {
    "new": lambda: shutil.rmtree(MIRROR),
    "nothing": lambda: None,
    "metadata is missing": lambda: next(MIRROR.rglob("*.whl.metadata")).unlink(),
    "metadata is altered": lambda: next(MIRROR.rglob("*.whl.metadata")).write_text("Name: x\n"),
    "metadata is altered at the same time": alter_metadata_and_keep_time,
    "wheel is missing": lambda: next(MIRROR.rglob("*.whl")).unlink(),
    "wheel and metadata are missing": remove_wheel,
    "wheel is altered": lambda: next(MIRROR.rglob("*.whl")).write_bytes(b"altered"),
    "page is altered": lambda: (MIRROR / "simple/index.json").write_text("{}"),
    "lock is broken": lambda: (MIRROR / "mirror.json").write_text("{"),
}


@pytest.mark.parametrize("name", WHEEL_STATES)
@pytest.mark.parametrize("options", [(), ("--checksum",)], ids=["size and time", "checksum"])
@pytest.mark.usefixtures("index")
def test_check_reports_the_files_of_wheels_that_sync_writes(
    sync_wheels: Run, name: str, options: tuple[str, ...]
) -> None:
    expect_output(sync_wheels(), 0)
    WHEEL_STATES[name]()
    before = state_of(MIRROR)
    check = sync_wheels("--check", "--json", *options)
    assert state_of(MIRROR) == before
    expect_output(sync_wheels(*options), 0)
    changed = changed_paths(before, state_of(MIRROR))
    assert planned_paths(check) == changed
    assert check.exit_code == int(bool(changed))


def test_pip_installs_from_the_folder_of_a_mirror(index: Path, sync_wheels: Run) -> None:
    sync_wheels()
    source = ("--index-url", (MIRROR / "simple").absolute().as_uri(), "--platform", X86)
    pip("--isolated", "download", "-d", "got", *source, "--only-binary", ":all:", "cuda-toolkit")
    assert len(list(Path("got").iterdir())) == 3


def test_platforms_can_have_equal_metadata(index: Path, sync_wheels: Run, run: Run) -> None:
    files = {"nvidia/file": b"other"}
    put_wheel(index, "nvidia-cuda-runtime-cu12", "12.9.79", files, tag="win_amd64")
    sync_wheels()
    linux, windows = MIRROR.rglob("nvidia_cuda_runtime*.metadata")
    assert linux.read_bytes() == windows.read_bytes()
    expect_output(run("mirror", "verify", MIRROR), 0)


def test_sync_reports_a_wheel_without_metadata(index: Path, sync_wheels: Run) -> None:
    wheel = next(index.glob("nvidia_cuda_nvcc*"))
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("nvidia/file", b"content")
    put_wheel(index, "nvidia-cuda-nvcc-cu12", "12.9.86", tag="win_amd64")
    expect_error(sync_wheels("--platform", "linux-x86_64"), 5, "not a valid wheel: no METADATA")
    assert not (MIRROR / "simple/nvidia-cuda-nvcc-cu12").exists()


def test_prune_of_wheels_keeps_the_metapackage_of_its_release(
    index: Path, sync_wheels: Run, run: Run
) -> None:
    put_wheel(index, "cuda-toolkit", "12.9.0", requires=["nvidia-cuda-runtime-cu12==12.9.79.*"])
    sync_wheels("--version", "all")
    wheels = ("--channel", "wheels", "--version", "12.9.0")
    expect_output(run("mirror", "prune", MIRROR, *wheels, "--json"), 0)
    assert {
        path.name.split("-")[0] + path.name.split("-")[1] for path in MIRROR.rglob("*.whl")
    } == {"cuda_toolkit12.9.0", "nvidia_cuda_runtime_cu1212.9.79"}
    assert not (MIRROR / "simple/nvidia-cuda-nvcc-cu12").exists()
    assert run("mirror", "verify", MIRROR).exit_code == 0


def test_prune_of_one_channel_keeps_the_other(
    index: Path, sync_wheels: Run, run: Run, tmp_path: Path
) -> None:
    root = tmp_path / "origin"
    small_sets.make_data(root)
    sync_wheels()
    wheels = published(MIRROR)
    run("mirror", "sync", MIRROR, "--version", "all", "--base-url", root / "source")
    result = run("mirror", "prune", MIRROR, "--redist", "cudnn", "--version", "8.9.7")
    assert "(wheels)" in result.stdout.splitlines()[-1]
    kept = published(MIRROR)
    assert wheels.items() <= kept.items()
    assert not [path for path in kept if path.startswith("compute/cuda/")]
    assert run("mirror", "verify", MIRROR).exit_code == 0
