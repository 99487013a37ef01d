"""Tests of audit: the requirements that wheels declare, and the libraries that files need."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support import wheels
from support.binaries import elf
from support.programs import audit_data, cuda, file, judged, known, table, undefined

from cudaredist.commands.audit.needed_lists import requirement_lines
from cudaredist.commands.audit.text import audit_text
from cudaredist.environments.audit_program import audit_report
from cudaredist.environments.read_program import ProgramReader
from cudaredist.programs.declared import Declared, read_declared
from cudaredist.programs.program import AuditRequirements
from cudaredist.programs.report import AuditReport
from cudaredist.store.cache import Cache

CUBLAS = "libcublas.so.12"
LIBRARIES = [
    *cuda("12.4.1", "12.9.1", "13.0.2"),
    known("libcufile.so.0", "13.0.2", "libcufile", "nvidia-cufile"),
    known("libnccl.so.2", "2.27.3", "nccl", "nvidia-nccl-cu12", redist="nccl"),
    known(
        *("libcustatevec.so.1", "26.09.0", "custatevec", "custatevec-cu12"),
        redist="cuquantum",
        version="1.15.0",
        variant="cuda12",
    ),
]
TABLES = {CUBLAS: table(CUBLAS, {"12.4.1": ["old"], "12.9.1": ["old", "new"]})}


def declaring(requires: Sequence[str], *needed: str, symbols: Sequence[str] = ()) -> AuditReport:
    """Return the report on a file of a wheel with some requirements."""
    taken = undefined(*((name, "", "") for name in symbols))
    declared = [Declared("example 1.0", Requirement(line)) for line in requires]
    program = [file("example/a.so", *needed, symbols=taken)]
    return judged(program, LIBRARIES, TABLES, declared=declared)


def kinds(report: AuditReport) -> list[str]:
    return [finding.kind for finding in report.findings if finding.exit_code]


@pytest.mark.parametrize(
    ("requirement", "finding"),
    [
        ("nvidia-cublas-cu12", None),
        ("nvidia_cublas_cu12>=12.5", None),
        ("nvidia-cublas-cu12; sys_platform == 'linux'", None),
        ("nvidia-cublas-cu12; extra == 'gpu'", None),
        ("cuda-toolkit[cublas]==12.*", None),
        ("cuda-toolkit[all]==12.*", None),
        ("torch>=2", None),
        ("numpy", "undeclared"),
        ("nvidia-cublas-cu12; sys_platform == 'win32'", "undeclared"),
        ("nvidia-nccl-cu12", "undeclared"),
        ("cuda-toolkit[cudart]==12.*", "undeclared"),
        ("cuda-toolkit[cublas]==13.*", "declared"),
        ("nvidia-cublas", "declared"),
        ("nvidia-cublas-cu12<12", "declared"),
    ],
)
def test_needed_library_is_declared(requirement: str, finding: str | None) -> None:
    report = declaring([requirement], CUBLAS)
    assert kinds(report) == ([finding] if finding else [])
    assert report.exit_code == (1 if finding else 0)


@pytest.mark.parametrize(
    ("requirement", "found"),
    [
        ("custatevec-cu12>=1.15", []),
        ("cuquantum-cu12==26.9.*", []),
        ("cuquantum-cu12<26", ["declared"]),
        ("cuquantum-cu13", ["declared"]),
        ("cuda-toolkit[all]", ["undeclared"]),
        ("nvpl", ["undeclared"]),
    ],
)
def test_metapackage_of_a_variant_declares_its_libraries(
    requirement: str, found: list[str]
) -> None:
    assert kinds(declaring([requirement], "libcustatevec.so.1")) == found


@pytest.mark.parametrize(
    ("specifier", "found"),
    [
        ("", []),
        (">=12.4", []),
        ("<13", []),
        ("==12.9.1.7", []),
        ("==12.4.1.7", ["declared"]),
        ("<12.9", ["declared"]),
    ],
)
def test_declared_range_has_a_release_with_all_symbols(specifier: str, found: list[str]) -> None:
    report = declaring([f"nvidia-cublas-cu12{specifier}"], CUBLAS, symbols=["new"])
    assert kinds(report) == found


@pytest.mark.parametrize(
    ("specifier", "found"),
    [("", ["missing-symbols"]), ("==12.4.1.7", ["missing-symbols", "declared"])],
)
def test_declared_range_with_newest_release_may_have_symbols_of_later_ones(
    specifier: str, found: list[str]
) -> None:
    program = [file("example/a.so", CUBLAS, symbols=undefined(("later", "", CUBLAS)))]
    declared = [Declared("example 1.0", Requirement(f"nvidia-cublas-cu12{specifier}"))]
    assert kinds(judged(program, LIBRARIES, TABLES, declared=declared)) == found


def test_wheel_that_no_file_needs_is_listed_as_declared() -> None:
    lines = ["nvidia-nccl-cu12>=2; sys_platform == 'linux'", "cuda-toolkit[cufile]==13.*"]
    report = declaring([*lines, "nvidia-cublas-cu12; extra == 'blas'"])
    assert kinds(report) == []
    assert list(requirement_lines(report)) == [
        "nvidia-nccl-cu12>=2  # declared; no file needs it by name",
        "cuda-toolkit[cufile]==13.*  # declared; no file needs it by name",
        "# nvidia-cublas-cu12  # declared; no file needs it by name",
    ]


def put_wheel(folder: Path, requires: Sequence[str]) -> Path:
    path = folder / "example-1.0-py3-none-any.whl"
    path.write_bytes(wheels.wheel("example", "1.0", {"example/a.so": elf()}, requires=requires))
    return path


@pytest.mark.parametrize("requires", [["numpy", "nvidia-nccl-cu12>=2", "not valid ="], []])
def test_requirements_of_a_wheel_are_read(tmp_path: Path, requires: Sequence[str]) -> None:
    declared = read_declared(put_wheel(tmp_path, requires))
    assert declared is not None
    lines = [(each.package, str(each)) for each in declared]
    assert lines == [("example 1.0", line) for line in requires[:2]]


def test_text_lists_declared_wheels(tmp_path: Path) -> None:
    path = put_wheel(tmp_path, ["nvidia-nccl-cu12>=2"])
    reader = ProgramReader(cache=Cache(tmp_path / "cache"), paths=[path]).read_all()
    text = "\n".join(audit_text(audit_report(reader, audit_data(LIBRARIES), AuditRequirements())))
    assert "Wheels of NVIDIA that it declares, but that no file needs by name:" in text
    assert "nvidia-nccl-cu12>=2  by example 1.0" in text
    assert "needs no CUDA library" not in text


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06" + bytes(18)], ids=["no zip", "empty"])
def test_unreadable_metadata_is_no_list(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "example-1.0-py3-none-any.whl"
    path.write_bytes(data)
    assert read_declared(path) is None


def test_requirement_of_a_needed_library_is_not_listed_twice() -> None:
    report = declaring(["nvidia-cublas-cu12"], CUBLAS)
    assert [wheel.sonames for wheel in report.declared] == [(CUBLAS,)]
    assert [line.partition(" ")[0] for line in requirement_lines(report)] == [
        "nvidia-cublas-cu12>=12.4.1.7,<13"
    ]
