"""Device code in audit: modules that GPUs do not run, PTX and drivers, Jetsons, and cubins."""

from pathlib import Path

import pytest
from conftest import REPOSITORY
from support.binaries import container, cubin, elf, entry
from support.environments import install
from support.programs import audit_data

from cudaredist.commands.audit.text import audit_text
from cudaredist.environments.audit_program import audit_report
from cudaredist.environments.read_program import ProgramReader
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.programs.program import AuditRequirements
from cudaredist.programs.report import AuditReport
from cudaredist.store.cache import Cache

DRIVERS = DriverPolicy.model_validate_json((REPOSITORY / "data/policy/drivers.json").read_bytes())


def module(*images: str, ptx: tuple[int, int] = (8, 0)) -> bytes:
    """Return a container with images such as `sm_90a`, all with kernels."""
    entries = []
    for image in images:
        kind, _, target = image.partition("_")
        digits = target.rstrip("af")
        suffix = target.removeprefix(digits)
        entries.append(entry(kind, int(digits), suffix, payload=bytes(9000), ptx=ptx))
    return container(entries)


def with_code(*parts: bytes, machine: str = "x86_64") -> bytes:
    return elf(machine=machine, sections={".nv_fatbin": b"".join(parts)})


def audited(path: Path, *gpus: str, driver: str | None = None) -> AuditReport:
    reader = ProgramReader(cache=Cache(path.with_suffix(".cache")), paths=[path])
    data = audit_data()._replace(drivers=DRIVERS)
    return audit_report(reader.read_all(), data, AuditRequirements(gpus=gpus, driver=driver))


def messages(path: Path, *gpus: str, driver: str | None = None) -> list[tuple[int, str]]:
    kinds = {"gpu", "driver"} if driver else {"gpu"}
    found = audited(path, *gpus, driver=driver).findings
    return [(each.exit_code, each.message) for each in found if each.kind in kinds]


def answers(path: Path, *gpus: str) -> list[tuple[str, str]]:
    return [(each.answer, each.reason) for each in audited(path, *gpus).gpus]


def program(folder: Path, *parts: bytes) -> Path:
    path = folder / "prog"
    path.write_bytes(with_code(*parts))
    return path


# -- modules


def test_every_module_of_a_program_must_run(tmp_path: Path) -> None:
    path = program(tmp_path, module("sm_90"), module("sm_89"))
    words = "GPUs of capability 9.0 do not run 1 of 2 modules of prog (sm_89)"
    assert messages(path, "9.0") == [(1, words)]
    report = audited(path, "9.0")
    assert report.coverage is not None
    coverage = report.coverage["9.0"]
    assert (coverage.value, coverage.native, coverage.modules) == ("partial", 1, 2)


def test_empty_module_for_the_default_of_nvcc_does_not_count(tmp_path: Path) -> None:
    """Linking with nvcc adds a module without kernels for `sm_75`."""
    empty = container([entry("sm", 75, payload=bytes(1448))])
    assert messages(program(tmp_path, empty, module("sm_90")), "9.0") == []


@pytest.mark.parametrize("other", ["sm_100a", "sm_90a sm_120f"])
def test_program_selects_code_for_one_architecture(tmp_path: Path, other: str) -> None:
    path = program(tmp_path, module("sm_80"), module(*other.split()))
    assert messages(path, "8.0") == []


def installed(site: Path, **files: tuple[bytes, ...]) -> list[tuple[int, str]]:
    """Install a package, and return the findings about 9.0."""
    contents = {f"example/{name}.so": with_code(*parts) for name, parts in files.items()}
    install(site, "example", "1.0", contents)
    return messages(site, "9.0")


def test_file_of_a_package_for_another_family_is_a_warning(tmp_path: Path) -> None:
    found = installed(tmp_path, a=(module("sm_90"),), b=(module("sm_100"),), c=(module("sm_100f"),))
    words = "code for other GPUs only, which those of capability 9.0 do not run"
    files = "example/b.so (sm_100), example/c.so (sm_100f)"
    assert found == [(0, f"example 1.0: {words}: {files}")]


def test_file_of_a_package_for_the_same_architecture_is_a_finding(tmp_path: Path) -> None:
    files = {"example/a.so": with_code(module("sm_80")), "example/b.so": with_code(module("sm_86"))}
    install(tmp_path, "example", "1.0", files)
    words = "example 1.0: GPUs of capability 8.0 do not run example/b.so (sm_86)"
    assert messages(tmp_path, "8.0") == [(1, words)]
    assert messages(tmp_path, "8.6") == []


@pytest.mark.parametrize(("count", "code"), [(1, 1), (2, 0)])
def test_package_must_run_most_modules_of_a_file(tmp_path: Path, count: int, code: int) -> None:
    found = installed(tmp_path, a=(module("sm_90"),) * count + (module("sm_75"),))
    assert [each for each, _ in found] == [code]


def test_finding_names_the_files_of_the_package(tmp_path: Path) -> None:
    found = installed(tmp_path, a=(module("sm_75"),), b=(module("sm_80"),))
    words = "the code of example/a.so (sm_75), example/b.so (sm_80) does not run on them"
    assert found == [(1, f"example 1.0: GPUs of capability 9.0 do not run it: {words}")]
    (finding,) = (each for each in audited(tmp_path, "9.0").findings if each.kind == "gpu")
    assert finding.path == "example/a.so"


def test_modules_outside_of_the_sections_for_code_are_selected(tmp_path: Path) -> None:
    """cuRAND 10.4.5 has a table of such containers, one for each GPU, in `.data`."""
    sections = {
        ".nv_fatbin": module("sm_75", "compute_75"),
        ".data": module("sm_80") + module("sm_90") * 3,
    }
    path = tmp_path / "prog"
    path.write_bytes(elf(sections=sections))
    assert answers(path, "7.5", "9.0") == [("yes", "natively"), ("yes", "natively")]
    assert messages(path, "7.5", "9.0") == []


def test_counts_of_modules_have_one_denominator(tmp_path: Path) -> None:
    """The oracle is the list of cubins, as `cuobjdump -lelf` prints it: one of five runs."""
    parts = (module("sm_75"), module("sm_80"), module("sm_90a") * 3)
    path = program(tmp_path, *parts)
    words = "4 of 5 modules of prog (sm_80 sm_90a)"
    assert messages(path, "7.5") == [(1, f"GPUs of capability 7.5 do not run {words}")]
    report = audited(path, "7.5")
    assert report.coverage is not None
    coverage = report.coverage["7.5"]
    assert (coverage.native + coverage.ptx, coverage.modules) == (1, 5)
    assert answers(path, "7.5") == [("in part", f"not {words}")]


# -- files without device code


@pytest.mark.parametrize("needed", [(), ("libcublas.so.12",)])
def test_file_without_device_code_runs_on_every_gpu(
    tmp_path: Path, needed: tuple[str, ...]
) -> None:
    """A program that only calls cuBLAS ran on an H200."""
    path = tmp_path / "prog"
    path.write_bytes(elf(needed=needed))
    report = audited(path, "7.5", "12.0")
    assert [each for each in report.findings if each.kind == "gpu"] == []
    words = "no device code of its own; its libraries decide"
    assert answers(path, "7.5", "12.0") == [("yes", words)] * 2


# -- device linking


def linked(folder: Path, code: bytes, linker_input: bytes) -> Path:
    path = folder / "prog"
    path.write_bytes(elf(sections={".nv_fatbin": code, "__nv_relfatbin": linker_input}))
    return path


@pytest.mark.parametrize(("target", "answer"), [("sm_90", "yes"), ("sm_120", "no")])
def test_lto_input_of_a_linked_file_does_not_count(
    tmp_path: Path, target: str, answer: str
) -> None:
    """Linked with `-dlto` for `sm_90`, a program ran on an H200; for `sm_120`, it did not."""
    path = linked(tmp_path, module(target), module("lto_90") * 2)
    assert [each for each, _ in answers(path, "9.0")] == [answer]
    assert len(messages(path, "9.0")) == (answer == "no")


def test_driver_links_ptx_again(tmp_path: Path) -> None:
    """ "JIT Linking Support" of nvcc's documentation: all objects need PTX or machine code."""
    path = linked(tmp_path, module("sm_80"), module("sm_80", "compute_80") * 2)
    assert answers(path, "9.0", "8.0") == [("yes", "from PTX"), ("yes", "natively")]
    path = linked(tmp_path, module("sm_80"), module("sm_80", "compute_80") + module("lto_80"))
    assert [each for each, _ in answers(path, "9.0")] == ["no"]


def test_lto_code_of_an_object_must_be_linked(tmp_path: Path) -> None:
    path = tmp_path / "a.o"
    path.write_bytes(elf(sections={"__nv_relfatbin": module("lto_90")}))
    assert answers(path, "9.0") == [("no", "the code of a.o (lto_90) must be linked first")]


# -- the text


def test_report_begins_with_the_gpu(tmp_path: Path) -> None:
    path = program(tmp_path, module("sm_90"))
    lines = list(audit_text(audited(path, "9.0")))
    assert lines[0] == "GPUs of capability 9.0: yes, natively"
    lines = list(audit_text(audited(path, "8.0")))
    words = "no: the code of prog (sm_90) does not run on them"
    assert lines[0] == f"GPUs of capability 8.0: {words}"
    assert "The exit code 1 comes from the GPU." in lines


def test_gpu_without_newer_compilers_has_a_last_release(tmp_path: Path) -> None:
    """CUDA 13 removed 6.1, by its release notes."""
    ((answer, reason),) = answers(program(tmp_path, module("sm_90")), "6.1")
    assert answer == "no"
    assert reason.endswith("; CUDA 12.9 is the last release that supports them")


# -- cubins


def test_cubins_of_a_package_are_device_code(tmp_path: Path) -> None:
    files = {f"example/{number}.cubin": cubin(number, size=9000) for number in (90, 100)}
    install(tmp_path, "example", "1.0", files)
    assert messages(tmp_path, "9.0", "10.3") == []
    (found,) = messages(tmp_path, "8.0")
    assert found[1].startswith("example 1.0: GPUs of capability 8.0 do not run it: the code of ")
    report = audited(tmp_path)
    assert [part.architectures for part in report.device_code] == [("sm_100",), ("sm_90",)]
    assert report.coverage is not None
    runs = [name for name, part in report.coverage.items() if part.value == "native"]
    assert runs == ["9.0", "10.0", "10.3", "10.7"]


# -- drivers and PTX


@pytest.mark.parametrize(("ptx", "code"), [((9, 0), None), ((9, 5), 1)])
def test_driver_must_compile_ptx(tmp_path: Path, ptx: tuple[int, int], code: int | None) -> None:
    path = program(tmp_path, module("compute_80", ptx=ptx))
    found = messages(path, driver="580")
    assert [each for each, _ in found] == ([] if code is None else [code])
    if code:
        words = "prog has PTX 9.5 of CUDA 13.5, which driver 580 does not compile"
        assert found[0][1] == words


@pytest.mark.parametrize(("gpus", "codes"), [((), [0]), (("8.0",), []), (("9.0",), [1])])
def test_ptx_is_only_needed_without_machine_code(
    tmp_path: Path, gpus: tuple[str, ...], codes: list[int]
) -> None:
    path = program(tmp_path, module("sm_80", "compute_80", ptx=(9, 5)))
    assert [code for code, _ in messages(path, *gpus, driver="580")] == codes


def test_driver_of_an_unknown_release_is_unknown(tmp_path: Path) -> None:
    path = program(tmp_path, module("compute_80", ptx=(9, 5)))
    found = [each for each in audited(path, driver="620").findings if "PTX" in each.message]
    assert [(each.kind, each.exit_code) for each in found] == [("unknown", 3)]


def test_release_of_ptx_answers_the_driver_of_a_static_program(tmp_path: Path) -> None:
    """PTX 8.5 is that of CUDA 12.5, whose release notes require driver 555.42."""
    path = program(tmp_path, module("compute_80", ptx=(8, 5)))
    assert audited(path, driver="555.42.02").findings == ()
    found = audited(path, driver="535.54.03").findings
    words = "prog has PTX 8.5 of CUDA 12.5, which driver 535.54.03 does not compile"
    assert [each.message for each in found] == [words]


# -- Jetsons


@pytest.mark.parametrize(("machine", "count"), [("x86_64", 1), ("aarch64", 0)])
def test_jetson_runs_no_program_for_x86(tmp_path: Path, machine: str, count: int) -> None:
    path = tmp_path / "prog"
    path.write_bytes(with_code(module("sm_80", "sm_87", "compute_80"), machine=machine))
    found = messages(path, "8.7", "8.0")
    words = "Jetsons of capability 8.7 do not run it: it is for linux-x86_64"
    assert found == [(1, words)] * count


def test_orin_may_run_program_for_other_gpus(tmp_path: Path) -> None:
    path = tmp_path / "prog"
    path.write_bytes(with_code(module("sm_80"), machine="aarch64"))
    ((answer, reason),) = answers(path, "8.7")
    assert answer == "unknown"
    assert reason == "only code for other GPUs, which is known to run from CUDA 13.2 on"
    report = audited(path, "8.7")
    (finding,) = report.findings
    assert "jax 40492" in finding.message
    assert "bitsandbytes 1939" in finding.message
    assert report.exit_code == 3
    assert "unknown" in next(iter(audit_text(report)))
    assert answers(path, "7.2")[0][0] == "no"


def test_jetson_runs_no_package_for_x86(tmp_path: Path) -> None:
    install(tmp_path, "example", "1.0", {"example/a.so": with_code(module("sm_87"))})
    assert [text for _, text in messages(tmp_path, "8.7")] == [
        "Jetsons of capability 8.7 do not run it: it is for linux-x86_64"
    ]
