"""audit --supplied-by: small wheels on package sets of the shipped data."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from shlex import split
from typing import Any

import pytest
from conftest import Run
from support import binaries, wheels
from support.binaries import Symbol, elf
from support.environments import install
from support.running import expect_error, expect_output, report, succeed

NCCL, CUDNN, CUBLAS = "libnccl.so.2", "libcudnn.so.9", "libcublas.so.12"
PINS = ("nvidia-nccl-cu12==2.21.5", "nvidia-cudnn-cu12==9.1.1.17", "nvidia-cublas-cu12==12.4.5.8")
OLD = {"nccl": "2.18", "cudnn": "8.9"}
"""NCCL without ncclCommRegister, and cuDNN with another soname."""

Change = Callable[[dict[str, Any]], None]


def build(path: Path, *options: str) -> Path:
    """Build a set of CUDA 12.6 from the shipped data."""
    succeed("build", "--cuda", "12.6", "--platform", "linux-x86_64", "-o", path, *options)
    return path


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set with the newest products."""
    return build(tmp_path_factory.mktemp("new") / "new.json")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set with old products."""
    options = [f"--redist={name}={label}" for name, label in OLD.items()]
    return build(tmp_path_factory.mktemp("old") / "old.json", *options)


def extension(needed: tuple[str, ...] = (NCCL, CUDNN), *images: binaries.Image) -> bytes:
    """Return a library that uses two symbols of NCCL, and may have device code."""
    names = ("ncclSend", "ncclCommRegister") if NCCL in needed else ()
    sections = {}
    if images:
        sections[".nv_fatbin"] = binaries.fatbin(images, payload=bytes(4096))
    symbols = [Symbol(name, is_defined=False) for name in names]
    return elf(needed=needed, symbols=symbols, sections=sections)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel that pins the wheels of NVIDIA."""
    return put_wheel(tmp_path, {"example/_ext.so": extension((NCCL, CUDNN, CUBLAS))})


def put_wheel(folder: Path, files: Mapping[str, bytes], requires: tuple[str, ...] = PINS) -> Path:
    """Put a wheel into a folder."""
    path = folder / "example-1.0-py3-none-any.whl"
    path.write_bytes(wheels.wheel("example", "1.0", files, requires=requires))
    return path


def changed(path: Path, change: Change) -> Path:
    """Write a changed copy of a set."""
    document = json.loads(path.read_bytes())
    change(document["packages"])
    copy = path.with_name(f"changed-{change.__name__}.json")
    copy.write_text(json.dumps(document))
    return copy


def rows(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the required libraries of a report."""
    return {row["soname"]: row for row in document["substitution"]["libraries"]}


def kinds(document: Mapping[str, Any]) -> list[str]:
    return [finding["kind"] for finding in document["findings"] if finding["exit_code"]]


def test_audit_supplied_by_a_fitting_set_says_yes_first(run: Run, wheel: Path, new: Path) -> None:
    result = run("audit", wheel, "--supplied-by", new)
    first, *others = result.stdout.splitlines()
    assert result.exit_code == 0
    assert first.startswith(f"runs with {new} (CUDA 12.6.")
    assert first.endswith(": yes, with 3 libraries and 2 symbols that its files use")
    row = next(line.split() for line in others if line.strip().startswith(NCCL))
    assert row[1:3] == ["nvidia-nccl-cu12==2.21.5", "nccl"]
    assert "(newer)" in row
    assert run("audit", wheel, "--supplied-by", new, "--format", "markdown").exit_code == 0


def test_audit_supplied_by_an_old_set_suggests_a_set_that_fits(
    run: Run, wheel: Path, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = report(run("audit", wheel, "--supplied-by", old, "--json"))
    assert document["exit_code"] == 1
    assert document["substitution"]["answer"] == "no"
    assert kinds(document) == ["missing-library", "missing-symbols"]
    found = rows(document)
    assert (found[CUDNN]["status"], found[CUDNN]["pinned"]) == ("missing", [PINS[1]])
    assert (found[NCCL]["symbols"], found[NCCL]["missing_symbols"]) == (2, ["ncclCommRegister"])
    assert found[NCCL]["change"] == "older"
    (hint,) = {finding["hint"] for finding in document["findings"] if finding["exit_code"]}
    monkeypatch.chdir(tmp_path)
    succeed(*split(hint.removeprefix("cudaredist ")))
    (built,) = tmp_path.glob("build/*/cuda-12.6*.json")
    expect_output(run("audit", wheel, "--supplied-by", built), 0, ": yes,")


def test_audit_supplied_by_counts_gpus_that_the_pinned_wheel_runs_on(
    run: Run, new: Path, tmp_path: Path
) -> None:
    code = extension((CUDNN,), ("sm", 70, ""), ("sm", 80, ""))
    path = put_wheel(tmp_path, {"example/_ext.so": code})
    document = report(run("audit", path, "--supplied-by", new, "--json"))
    # The release notes of cuDNN 9.11 end the support of Volta. The set is for 7.5 and later.
    assert rows(document)[CUDNN]["gpus_lost"] == ["7.0"]
    assert "gpu" in {finding["kind"] for finding in document["findings"]}
    assert document["exit_code"] == 0
    command = ("audit", path, "--supplied-by", new, "--require-gpu", "7.0")
    expect_output(run(*command), 1, "does not run on GPUs of capability 7.0")


def without_graph(packages: dict[str, Any]) -> None:
    provides = packages["cudnn"]["provides"]
    kept = [each for each in provides if "graph" not in each["soname"]]
    packages["cudnn"]["provides"] = kept


def with_another_archive(packages: dict[str, Any]) -> None:
    packages["nccl"]["archive"]["sha256"] = "0" * 64


def of_unknown_version(packages: dict[str, Any]) -> None:
    with_another_archive(packages)
    packages["nccl"]["version"] = "99.1"


def not_examined(packages: dict[str, Any]) -> None:
    of_unknown_version(packages)
    packages["nccl"] |= {"contents": {}, "provides": []}


def examined_as_wheel(packages: dict[str, Any]) -> None:
    with_another_archive(packages)
    packages["nccl"] |= {"contents": {}, "provides": [], "opens": []}


def unavailable(packages: dict[str, Any]) -> None:
    packages["nccl"]["status"] = "withheld"


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (without_graph, 1, "opens libcudnn_graph.so, which"),
        (with_another_archive, 0, ": yes,"),
        (examined_as_wheel, 0, ": yes,"),
        (of_unknown_version, 3, "unknown: the symbols of libnccl.so.2 are unknown, because nccl"),
        (not_examined, 3, "it is unknown if the set has libnccl.so.2, because nccl 99.1 was not"),
        (unavailable, 1, "nccl is withheld"),
    ],
)
def test_audit_supplied_by_an_incomplete_set(
    run: Run, wheel: Path, new: Path, change: Change, code: int, message: str
) -> None:
    path = changed(new, change)
    expect_output(run("audit", wheel, "--supplied-by", path), code, message)


def test_audit_supplied_by_compares_each_wheel(
    run: Run, wheel: Path, old: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    host = put_wheel(folder, {"example/_host.so": elf(needed=("libc.so.6",))}, ())
    document = report(run("audit", wheel, host, "--supplied-by", old, "--json"))
    answers = [program["substitution"]["answer"] for program in document["programs"]]
    assert (answers, document["exit_code"]) == (["no", "yes"], 1)
    expect_output(run("audit", host, "--supplied-by", old), 0, "yes, it needs no library")


def test_audit_supplied_by_compares_installed_wheels(run: Run, old: Path, tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    install(site, "example", "1.0", {"example/_ext.so": extension()}, PINS)
    nccl = elf(soname=NCCL, symbols=[Symbol("ncclSend"), Symbol("ncclCommRegister")])
    install(site, "nvidia-nccl-cu12", "2.21.5", {f"nvidia/nccl/lib/{NCCL}": nccl})
    found = rows(report(run("audit", site, "--supplied-by", old, "--json")))
    assert found[NCCL]["pinned"] == ["nvidia-nccl-cu12==2.21.5"]
    assert found[NCCL]["missing_symbols"] == ["ncclCommRegister"]
    assert found[CUDNN]["status"] == "missing"


def test_audit_supplied_by_checks_wheels_whose_libraries_no_file_names(
    run: Run, old: Path, new: Path, tmp_path: Path
) -> None:
    extras = ("nvidia-cudnn-cu12==9.1.0.70", "nvidia-cudnn-cu13; extra == 'cuda13'")
    path = put_wheel(tmp_path, {"example/_ext.so": elf(needed=("libc.so.6",))}, extras)
    fitting = report(run("audit", path, "--supplied-by", new, "--json"))
    assert [(row["soname"], row["kind"], row["status"]) for row in rows(fitting).values()] == [
        (CUDNN, "declared", "supplied")
    ]
    lacking = report(run("audit", path, "--supplied-by", old, "--json"))
    assert lacking["exit_code"] == 1
    assert "example 1.0 requires" in lacking["findings"][0]["message"]


@pytest.mark.parametrize(
    ("name", "code"), [("libcublas.so.11", 1), (CUBLAS, 0), ("libcufile_rdma.so.0", 0)]
)
def test_audit_supplied_by_another_version_of_an_opened_library_fails(
    run: Run, new: Path, tmp_path: Path, name: str, code: int
) -> None:
    content = elf(needed=("libc.so.6",), sections={".rodata": name.encode() + b"\0"})
    path = put_wheel(tmp_path, {"example/_ext.so": content}, ())
    expect_output(run("audit", path, "--supplied-by", new), code, "runs with")


def test_audit_supplied_by_another_cuda_major_warns(run: Run, new: Path, tmp_path: Path) -> None:
    files = {"example/_ext.so": elf(needed=(CUDNN,))}
    path = put_wheel(tmp_path, files, ("nvidia-cudnn-cu13>=9",))
    result = expect_output(run("audit", path, "--supplied-by", new), 0, ": yes,")
    assert "the set is for CUDA 12, unlike nvidia-cudnn-cu13>=9" in result.stdout


def test_audit_supplied_by_leaves_out_files_for_other_releases(
    run: Run, new: Path, tmp_path: Path
) -> None:
    files = {
        f"example/libx_cuda{release}.so": elf(needed=(soname,))
        for release, soname in {
            "118": "libcublas.so.11",
            "124": CUBLAS,
            "130": "libcublas.so.13",
        }.items()
    }
    path = put_wheel(tmp_path, files, ())
    found = rows(report(run("audit", path, "--supplied-by", new, "--json")))
    assert [(row["soname"], row["status"]) for row in found.values()] == [(CUBLAS, "supplied")]


def test_audit_supplied_by_skips_copies_in_the_wheel(run: Run, old: Path, tmp_path: Path) -> None:
    files = {"example/_ext.so": extension((CUDNN,)), f"example/{CUDNN}": elf(soname=CUDNN)}
    found = rows(report(run("audit", put_wheel(tmp_path, files), "--supplied-by", old, "--json")))
    assert found[CUDNN]["status"] == "bundled"


def test_audit_supplied_by_is_unknown_for_unread_files(run: Run, new: Path, tmp_path: Path) -> None:
    path = put_wheel(tmp_path, {"example/_ext.so": extension()[:200]})
    result = run("audit", path, "--supplied-by", new, "--json")
    assert report(result)["substitution"]["answer"] == "unknown"
    assert result.exit_code == 3


def test_audit_supplied_by_is_unknown_for_names_in_no_file(
    run: Run, new: Path, tmp_path: Path
) -> None:
    path = put_wheel(tmp_path, {"example/_ext.so": extension((), ("sm", 90, ""))}, ())
    expect_output(run("audit", path, "--supplied-by", new), 3, "unknown: no file or requirement")
    path = put_wheel(tmp_path, {"example/_ext.so": extension(())}, ())
    expect_output(run("audit", path, "--supplied-by", new), 0, "yes, it needs no library of the")


def test_audit_supplied_by_a_missing_file_suggests_to_build_it(run: Run, wheel: Path) -> None:
    expect_error(run("audit", wheel, "--supplied-by", "set.json"), 2, "set.json: no such file")


def test_audit_supplied_by_a_set_for_another_machine(run: Run, new: Path, tmp_path: Path) -> None:
    path = put_wheel(tmp_path, {"example/_ext.so": elf(needed=(NCCL,), machine="aarch64")})
    result = expect_output(run("audit", path, "--supplied-by", new), 1, "no: see the findings")
    assert "is for linux-x86_64, the program for linux-sbsa" in result.stdout
