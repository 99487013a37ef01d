"""audit of environments made with pip from real wheels, compared with ldd and ctypes."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.running import ask_index

pytestmark = [
    pytest.mark.network,
    pytest.mark.skipif(shutil.which("patchelf") is None, reason="needs patchelf"),
]

PROGRAM = Path(sys.executable).with_name("cudaredist")
ROUNDS = 3
"""Fixes may uncover other findings."""

_is_cuda = re.compile(
    r"_*(?:cuda|cu(?:blas|dnn|dss|fft|rand|solver|sparse|tensor)|nccl|nvrtc|nvJitLink|nvtx)"
).match
_find_symbols = re.compile(r"undefined symbol: (\w+)").findall
_find_files = re.compile(r"^\s*\S+ => (/\S+)", re.MULTILINE).findall
_find_missing = re.compile(r"^\s*(\S+) => not found", re.MULTILINE).findall

Change = Callable[[Path], object]


class Case(NamedTuple):
    """The wheels of an environment, and a change of its files."""

    wheels: str
    findings: tuple[str, ...] = ()
    """The kinds of its findings."""
    change: Change | None = None


def rename(old: str, new: str) -> Change:
    return lambda site: (site / old).rename((site / old).with_name(new))


def remove(pattern: str) -> Change:
    def change(site: Path) -> None:
        for path in site.glob(pattern):
            path.unlink()

    return change


def copy(path: str, folder: str) -> Change:
    return lambda site: shutil.copy(site / path, site / folder)


def run_path(path: str, value: str) -> Change:
    return lambda site: subprocess.run(["patchelf", "--set-rpath", value, site / path], check=True)


MISSING, SYMBOLS, VERSION = "missing-library", "missing-symbols", "requirement"
SPARSE = "nvidia-cusparse-cu12==12.5.10.65"
SOLVER = "nvidia-cusolver-cu12==11.7.5.82"
LINK = "nvidia-nvjitlink-cu12==12.9.86"
BLAS = "nvidia-cublas-cu12==12.9.1.4"
OLD_BLAS = "nvidia-cublas-cu12==12.4.5.8"
STATE = "custatevec-cu12==1.15.0"
NET = "cutensornet-cu12==2.14.0 cutensor-cu12==2.8.1 nvidia-nccl-cu12 nvidia-cuda-runtime-cu12"
DSS = "nvidia-cudss-cu12 nvidia-nccl-cu12"
NVRTC = "nvidia-cuda-nvrtc-cu12==12.9.86"
OPS = "cuequivariance-ops-cu12==0.13.0"
CUPY = "cupy-cuda12x==14.2.0 cuda-pathfinder"
CUTENSOR = "cupy_backends/cuda/libs/cutensor.*.so"
"""It needs two libraries, and cupy loads one of them."""
CASES = {
    "whole, one user": Case(f"{STATE} {BLAS}"),
    "no run path in a library of NVIDIA": Case(
        f"{NET} {BLAS} {SOLVER} {SPARSE} {LINK}", (MISSING,)
    ),
    "whole, two products": Case(f"{DSS} {BLAS} {NVRTC}"),
    "whole, only NVIDIA": Case(f"{SOLVER} {SPARSE} {LINK} {BLAS}"),
    "whole, one wheel": Case("nvidia-npp-cu12"),
    "whole, nothing of CUDA": Case("numpy"),
    "whole, CUDA 13": Case("nvidia-cusolver nvidia-cusparse nvidia-nvjitlink nvidia-cublas"),
    "whole, loaded first": Case(
        f"{CUPY} {BLAS} {SOLVER} {SPARSE} {LINK} {NVRTC} nvidia-cufft-cu12 nvidia-curand-cu12 "
        "nvidia-nccl-cu12",
        (),
        remove(CUTENSOR),
    ),
    "older minor": Case(f"{OPS} {OLD_BLAS} {NVRTC}", (MISSING, SYMBOLS, VERSION)),
    "other major": Case(f"{OPS} nvidia-cublas {NVRTC}", (MISSING,)),
    "missing wheels": Case(f"{OPS} {BLAS}", (MISSING,)),
    "missing wheel of a library": Case(f"{NET} {BLAS} {SPARSE} {LINK}", (MISSING,)),
    "older library of a library": Case(f"{SPARSE} nvidia-nvjitlink-cu12==12.0.140", (SYMBOLS,)),
    "older library of many": Case(
        f"{SOLVER} {SPARSE} {BLAS} nvidia-nvjitlink-cu12==12.0.140", (SYMBOLS,)
    ),
    "older library, loaded first": Case(
        f"{CUPY} nvidia-nccl-cu12==2.16.5", (MISSING, SYMBOLS), remove(CUTENSOR)
    ),
    "renamed file": Case(
        f"{STATE} {BLAS}",
        (MISSING,),
        rename("nvidia/cublas/lib/libcublas.so.12", "libcublas.so.11"),
    ),
    "renamed to the needed name": Case(
        f"{STATE} {BLAS} nvidia-cublas-cu11==11.11.3.6",
        (MISSING, SYMBOLS, "changed-file"),
        lambda site: (site / "nvidia/cublas/lib/libcublas.so.11").replace(
            site / "nvidia/cublas/lib/libcublas.so.12"
        ),
    ),
    "removed file": Case(
        f"{STATE} {BLAS}", (MISSING,), remove("nvidia/cublas/lib/libcublasLt.so.12")
    ),
    "run path without the folder": Case(
        f"{DSS} {BLAS} {NVRTC}", (MISSING,), run_path("nvidia/cu12/lib/libcudss.so.1", "$ORIGIN")
    ),
    "no run path": Case(
        f"{STATE} {BLAS}", (MISSING,), run_path("cuquantum/lib/libcustatevec.so.1", "")
    ),
    "two copies": Case(
        f"{STATE} {BLAS} {DSS} {NVRTC}",
        (),
        copy("nvidia/cublas/lib/libcublas.so.12", "cuquantum/lib"),
    ),
}

DENSITY = "cuquantum/lib/libcudensitymat.so.0"
CHOSEN = ("whole, one wheel", "older library of a library", "no run path", "missing wheels")
"""Environments for each run. By hand, `AUDITED_WHEELS=all` makes all, which takes half an hour."""


@pytest.fixture(params=CASES if os.environ.get("AUDITED_WHEELS") == "all" else CHOSEN)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def site(case: Case, tmp_path: Path) -> Iterator[Path]:
    """The packages of a virtual environment."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (found,) = (tmp_path / "env/lib").glob("python3*/site-packages")
    pip_install(tmp_path, case.wheels)
    if case.change is not None:
        case.change(found)
    yield found
    shutil.rmtree(tmp_path / "env")


def pip_install(folder: Path, words: str) -> None:
    pip = [sys.executable, "-m", "pip", "--python", folder / "env/bin/python"]
    options = ["-q", "--no-compile", "--only-binary", ":all:"]
    # An extra is only its requirements.
    options += [] if "[" in words else ["--no-deps"]
    ask_index(*pip, "install", *options, *shlex.split(words))


def audit(folder: Path) -> Any:
    """Return the environment and the findings."""
    process = subprocess.run(
        [PROGRAM, "audit", "env", "--json", "--cache-dir", "cache"],
        cwd=folder,
        check=False,
        capture_output=True,
    )
    answer = json.loads(process.stdout)
    assert process.returncode == answer["exit_code"], process.stderr
    return answer


def test_libraries_and_symbols_equal_those_of_ldd(case: Case, site: Path, tmp_path: Path) -> None:
    answer = audit(tmp_path)
    kinds = {one["kind"] for one in answer["findings"] if one["exit_code"]}
    assert kinds == set(case.findings), answer["findings"]
    for _ in range(ROUNDS if answer["exit_code"] else 0):
        assert_equals_ldd(answer, site, tmp_path)
        for hint in hints_of(answer):
            apply(hint, tmp_path)
        answer = audit(tmp_path)
        if not hints_of(answer):
            break
    assert not hints_of(answer), answer["findings"]
    assert_equals_ldd(answer, site, tmp_path)


@pytest.mark.parametrize(
    "case",
    [Case("cudensitymat-cu12==0.7.0 cutensornet-cu12==2.14.0 cutensor-cu12==2.7.0")],
    ids=["no run path to two of the missing wheels"],
)
def test_one_command_is_enough(site: Path, tmp_path: Path) -> None:
    before = ldd(site / DENSITY)
    assert {"libcublas.so.12", "libcusparse.so.12"} < {*_find_missing(before)}
    apply(audit(tmp_path)["environments"][0]["fix"], tmp_path)
    assert _find_missing(ldd(site / DENSITY)) == []
    assert audit(tmp_path)["exit_code"] == 0


def hints_of(answer: Any) -> list[str]:
    """Return the commands that change the environment, without those for the shell."""
    hints = dict.fromkeys(one["hint"] for one in answer["findings"] if one["exit_code"])
    return [hint for hint in hints if not hint.startswith("export ")]


def apply(hint: str, folder: Path) -> None:
    """Run the commands of a hint."""
    for command in hint.split(" && "):
        program, *words = shlex.split(command)
        is_pip = words[:2] == ["-m", "pip"]
        assert not is_pip or folder / program == folder / "env/bin/python"
        if words[:3] == ["-m", "pip", "install"]:
            pip_install(folder, shlex.join(words[3:]))
        elif is_pip:
            pip = [sys.executable, "-m", "pip", "--python", str(folder / "env/bin/python")]
            subprocess.run([*pip, *words[2:]], check=True)
        else:
            assert program == "patchelf"
            subprocess.run([program, *words], check=True)


def assert_equals_ldd(answer: Any, site: Path, folder: Path) -> None:
    """Compare with ldd, without the folders of libraries that other code loads, and with them."""
    assert_loads_in_order(answer, folder / "env")
    (environment,) = answer["environments"]
    loaded = environment["libraries"]
    roots = roots_of(site)
    by_others = [one for one in loaded if one["found_by"] in {"preloaded", "other-code"}]
    missing = {one["soname"] for one in loaded if one["found_by"] in {"none", "driver"}}
    found = "".join(ldd(path) for path in roots)
    assert {*_find_missing(found)} == missing | {one["soname"] for one in by_others}
    folders = {str((folder / "env" / one["path"]).parent) for one in by_others}
    found = "".join(ldd(path, folders) for path in roots)
    assert {*_find_missing(found)} == missing
    undefined = {name for one in loaded for name in one["undefined"]}
    assert {*filter(_is_cuda, _find_symbols(found))} == {*filter(_is_cuda, undefined)}


def roots_of(site: Path) -> list[Path]:
    """Return the files that no other file loads."""
    files = [path for path in site.rglob("*.so*") if path.read_bytes()[:4] == b"\x7fELF"]
    used = {os.path.realpath(name) for path in files for name in _find_files(ldd(path))}
    return [path for path in files if os.path.realpath(path) not in used] or files


def ldd(path: Path, folders: Iterable[str] = ()) -> str:
    """Return the output of `ldd -r`, with some folders searched first."""
    process = subprocess.run(
        ["ldd", "-r", path],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"LD_LIBRARY_PATH": ":".join(sorted(folders))},
    )
    return process.stdout.decode(errors="replace")


def assert_loads_in_order(answer: Any, environment: Path) -> None:
    """Load files alone, and after the libraries that a package loads first."""
    (audited,) = answer["environments"]
    first: dict[str, list[Path]] = defaultdict(list)
    for library in audited["libraries"]:
        for user in library["by"] if library["found_by"] == "preloaded" else ():
            first[user].append(environment / library["path"])
            if library["undefined"]:
                error = load(*first[user], environment / user)
                assert any(name in error for name in library["undefined"])
    for user, libraries in first.items():
        assert load(environment / user), f"{user} loads without {libraries}"
        assert answer["exit_code"] or not load(*libraries, environment / user)


def load(*paths: Path) -> str:
    """Load some files in order, and return the error of the loader."""
    code = "import ctypes, sys; [ctypes.CDLL(path) for path in sys.argv[1:]]"
    process = subprocess.run(
        [sys.executable, "-c", code, *paths], check=False, capture_output=True, text=True
    )
    return process.stderr
