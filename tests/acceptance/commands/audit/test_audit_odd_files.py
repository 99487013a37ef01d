"""Tests of audit on environments with odd files: it neither hangs nor fails."""

import os
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.binaries import elf
from support.environments import install, library, user
from support.running import report

pytestmark = pytest.mark.slow

CUDART = "libcudart.so.12"
ODD_MARKERS = (
    'requests; os_name ~= "posix"',
    'requests; extra ~= "1"',
    'requests; python_version > "x"',
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An environment whose package finds its own copy of cudart."""
    site = tmp_path / "site"
    files = {
        "example/_ext.so": user(CUDART, runpath="$ORIGIN"),
        f"example/{CUDART}": library(CUDART),
    }
    install(site, "example", "1.0", files)
    return site


def loaded(run: Run, folder: Path) -> dict[str, Any]:
    """Return how a file of the environment gets cudart."""
    answer = report(run("audit", folder, "--json"))
    (environment,) = answer["environments"]
    (found,) = [one for one in environment["libraries"] if one["soname"] == CUDART]
    return dict(found)


def fifo(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def device(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.truncate(1 << 30)


@pytest.mark.parametrize("name", ["RECORD", "INSTALLER", "METADATA"])
@pytest.mark.parametrize("make", [fifo, device, sparse])
def test_text_of_a_package_is_read_within_limits(
    run: Run, site: Path, name: str, make: Any
) -> None:
    make(site / "example-1.0.dist-info" / name)
    assert loaded(run, site)["found_by"] == "run-path"


@pytest.mark.parametrize("make", [fifo, device])
def test_module_of_a_preload_rule_is_read_within_limits(run: Run, site: Path, make: Any) -> None:
    install(site, "torch", "2.12.1", {"torch/lib/libtorch.so": elf(soname="libtorch.so")})
    make(site / "torch/__init__.py")
    assert loaded(run, site)["found_by"] == "run-path"


@pytest.mark.parametrize(
    "text",
    [
        b"Name: example\nVersion: 1.0\nSummary: \xe9\n",
        "".join(f"Requires-Dist: {marker}\n" for marker in ODD_MARKERS).encode(),
    ],
)
def test_odd_metadata_is_read(run: Run, site: Path, text: bytes) -> None:
    metadata = site / "example-1.0.dist-info/METADATA"
    metadata.write_bytes(b"Metadata-Version: 2.1\nName: example\nVersion: 1.0\n" + text)
    assert loaded(run, site)["package"] == "example 1.0"


@pytest.mark.parametrize("line", ["x" * 200_000 + ",,", '"', "a\0b,,", '"a""', ",,,,"])
def test_odd_line_of_record_hides_no_other_line(run: Run, site: Path, line: str) -> None:
    record = site / "example-1.0.dist-info/RECORD"
    record.write_text(f"{line}\n{record.read_text()}")
    assert loaded(run, site)["package"] == "example 1.0"


@pytest.mark.parametrize("part", ["x" * 300, "../" * 2000, "no-permission/lib"])
def test_odd_run_path_is_searched(run: Run, site: Path, part: str) -> None:
    closed = site / "example/no-permission"
    closed.mkdir(mode=0)
    runpath = f"$ORIGIN/{part}:$ORIGIN"
    (site / "example/_ext.so").write_bytes(user(CUDART, runpath=runpath))
    assert loaded(run, site)["found_by"] == "run-path"
    closed.chmod(0o700)


# -- root file systems


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root file system with a program that needs cudart."""
    root = tmp_path / "root"
    for name in ("etc", "usr/bin", "usr/lib", "opt"):
        (root / name).mkdir(parents=True)
    (root / "usr/bin/program").write_bytes(user(CUDART))
    return root


def test_links_without_end_do_not_leave_the_root(run: Run, root: Path, tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / CUDART).write_bytes(library(CUDART))
    (root / "usr/lib/link0").symlink_to(f"{tmp_path}/host")
    for number in range(50):
        (root / f"usr/lib/link{number + 1}").symlink_to(f"link{number}")
    (root / "etc/ld.so.conf").write_text("/usr/lib/link50\n")
    assert loaded(run, root)["found_by"] == "none"


@pytest.mark.parametrize(
    "text",
    [
        "include /.\n",
        "include **x\n",
        "include \0\n",
        f"include {'x' * 300}\n",
        f"include {'../' * 2000}etc/passwd\n",
        "include [\n",
        "/x\n" * 300_000,
        f"/{'x' * 300}\n/a\0b\n",
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_odd_configuration_of_loader_is_read(run: Run, root: Path, text: str) -> None:
    (root / "opt" / CUDART).write_bytes(library(CUDART))
    (root / "etc/ld.so.conf").write_text(f"include conf.d/*.conf\n{text}")
    (root / "etc/conf.d").mkdir()
    (root / "etc/conf.d/cuda.conf").write_text("/opt\n")
    assert loaded(run, root)["found_by"] == "system"
