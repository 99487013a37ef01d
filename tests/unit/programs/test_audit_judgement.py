"""audit's judgement: libraries, releases, CUDA majors, GPUs, floors, requirements and gates."""

from collections.abc import Mapping, Sequence

import pytest
from packaging.requirements import Requirement
from support.golden import Golden
from support.programs import cuda, cudnn, defined, file, judged, known, table, undefined

from cudaredist.commands.audit.needed_lists import exclude_lines, requirement_lines
from cudaredist.commands.audit.text import audit_text
from cudaredist.programs.library_names import family_of, original_name, possible_sonames
from cudaredist.programs.program import AuditRequirements as Required
from cudaredist.programs.program import ProgramFile
from cudaredist.programs.report import AuditInput, AuditReport, AuditReports, Floor
from cudaredist.tables.symbols.symbol_table import SymbolColumns

RELEASES = ("12.4.1", "12.6.3", "12.9.1")
CUBLAS = "libcublas.so.12"


def statuses(report: AuditReport) -> dict[str, str]:
    return {library.soname: library.status for library in report.libraries}


def kinds(report: AuditReport) -> list[str]:
    return [finding.kind for finding in report.findings]


def lines(report: AuditReport) -> list[str]:
    return [f"{wheel.project}{wheel.specifier}" for wheel in report.requirements]


def cublas(exports: Mapping[str, Sequence[str]], version: str = "") -> dict[str, SymbolColumns]:
    """Return the table of cuBLAS with the exports of some releases."""
    return {CUBLAS: table(CUBLAS, exports, version)}


# -- names


@pytest.mark.parametrize(
    ("name", "original", "family"),
    [
        (CUBLAS, CUBLAS, "libcublas"),
        ("libcudart-9335f6a2.so.11.0", "libcudart.so.11.0", "libcudart"),
        ("libcudart.3eda8113.so.13", "libcudart.so.13", "libcudart"),
        ("libcudart-d0da41ae.so.12.4.127", "libcudart.so.12.4.127", "libcudart"),
        ("libnvrtc-builtins.so.12.4", "libnvrtc-builtins.so.12.4", "libnvrtc-builtins"),
        ("libnvrtc-builtins.alt.so.12.9", "libnvrtc-builtins.alt.so.12.9", "libnvrtc-builtins"),
        ("cublas64_12.dll", "cublas64_12.dll", "cublas"),
        ("cudnn_ops64_9.dll", "cudnn_ops64_9.dll", "cudnn_ops"),
        ("nvJitLink_120_0.dll", "nvJitLink_120_0.dll", "nvjitlink"),
        ("nvrtc64_120_0.alt.dll", "nvrtc64_120_0.alt.dll", "nvrtc"),
        ("cudart64_12-0123456789abcdef0123456789abcdef.dll", "cudart64_12.dll", "cudart"),
    ],
)
def test_library_name_loses_hash_and_version(name: str, original: str, family: str) -> None:
    assert original_name(name) == original
    assert family_of(name) == family


def test_possible_sonames_are_shortened() -> None:
    name = "libcudart.so.12"
    sonames = possible_sonames("libcudart-d0da41ae.so.12.4.127")
    assert list(sonames) == [f"{name}.4.127", f"{name}.4", name]


# -- libraries


@pytest.mark.parametrize(
    ("needed", "status", "is_cuda"),
    [
        (CUBLAS, "provided", True),
        ("libcublas.so.10", "missing", True),
        ("libcuda.so.1", "external", True),
        ("libc.so.6", "external", False),
        ("libown.so", "bundled", False),
        ("libcudart-9335f6a2.so.12.4.127", "bundled", True),
        ("libsomething.so.1", "unknown", False),
        # A file for another machine.
        ("libarm.so", "unknown", False),
        # The name of a link.
        ("libown.so.1", "bundled", False),
    ],
)
def test_needed_library_has_a_status(needed: str, status: str, *, is_cuda: bool) -> None:
    program = [
        file("a.so", needed),
        file("lib/libown.so", names=["libown.so.1"]),
        file("lib/libcudart-9335f6a2.so.12.4.127"),
        file("lib/libarm.so", machine="aarch64"),
    ]
    (found,) = [each for each in judged(program, cuda("12.4.1")).libraries if each.by]
    assert (found.soname, found.status, found.cuda) == (needed, status, is_cuda)
    assert (found.kind, found.by) == ("needed", ("a.so",))


@pytest.mark.parametrize(
    "user", [file("a.so", "libcublas.so.10"), file("a.so", CUBLAS, machine="aarch64")]
)
def test_missing_library_is_a_finding_with_known_versions(user: ProgramFile) -> None:
    report = judged([user], cuda("12.4.1"))
    assert statuses(report) == {user.binary.needed[0]: "missing"}
    assert (kinds(report), report.exit_code) == (["missing-library"], 1)
    assert "known: libcublas.so.12" in report.findings[0].message


def test_opened_libraries_are_those_of_cuda() -> None:
    opens = (CUBLAS, "libcuda.so.1", "libfoo.so", "libcublas.so")
    report = judged([file("a.so", opens=opens)], cuda("12.4.1"))
    assert statuses(report) == {CUBLAS: "provided", "libcuda.so.1": "external"}
    assert {library.kind for library in report.libraries} == {"opened"}
    assert [wheel.is_guess for wheel in report.requirements] == [True]


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ([file("a.so", CUBLAS), file("b.so", opens=(CUBLAS,))], "needed"),
        ([file("a.so"), file(f"lib/{CUBLAS}", soname=CUBLAS)], "bundled"),
    ],
    ids=["needed and opened", "copy"],
)
def test_library_is_listed_once(program: list[ProgramFile], kind: str) -> None:
    found = judged(program, cuda("12.4.1")).libraries
    assert [(library.soname, library.kind) for library in found] == [(CUBLAS, kind)]


@pytest.mark.parametrize(
    ("other", "found"),
    [("y/libcudart-9335f6a2.so.12.4.127", ["duplicate-library"]), ("x/libcudart.so", [])],
    ids=["in another folder", "in place of a link"],
)
def test_second_copy_of_a_library_is_a_warning(other: str, found: list[str]) -> None:
    soname = "libcudart.so.12"
    program = [file(f"x/{soname}", soname=soname), file(other, soname=soname)]
    report = judged(program, cuda("12.4.1"))
    assert (kinds(report), report.exit_code) == (found, 0)
    counts = "Only 1 warning" if found else "No findings"
    assert report.checked == ("CUDA libraries", "symbols")
    text = audit_text(report.model_copy(update={"paths": ("example",)}))
    subject = "CUDA libraries and symbols of example"
    assert f"{counts} about {subject}. Compared with these libraries." in text


# -- releases


def program_with(*symbols: tuple[str, str, str]) -> list[ProgramFile]:
    return [file("a.so", CUBLAS, symbols=undefined(*symbols))]


VERSIONED = ("new", CUBLAS, CUBLAS)
OLD: dict[str, list[str]] = {label: [] for label in RELEASES}
NEW = {label: ["new"] for label in RELEASES}
SINCE_12_6 = {**NEW, "12.4.1": []}


@pytest.mark.parametrize(
    ("symbol", "exports", "version", "lowest", "decisive"),
    [
        (None, OLD, "", "12.4.1", ()),
        (VERSIONED, SINCE_12_6, "", "12.6.3", ("new",)),
        (VERSIONED, SINCE_12_6, f"@@{CUBLAS}", "12.6.3", ("new",)),
        (VERSIONED, NEW, "@@other", None, ()),
        (("new", "", ""), {**OLD, "12.9.1": ["new"]}, "", "12.9.1", ("new",)),
        # Other libraries may have a copy of it.
        (("_ZSt4copy", "", ""), {n: ["_ZSt4copy"] for n in RELEASES[1:]}, "", "12.6.3", ()),
        # Not known to be a symbol of this library.
        (("elsewhere", "", ""), NEW, "", "12.4.1", ()),
        # The symbols of the oldest release are unknown.
        (VERSIONED, {n: ["new"] for n in RELEASES[1:]}, "", "12.6.3", ()),
        (VERSIONED, {}, "", None, ()),
    ],
)
def test_lowest_release_exports_all_symbols(
    symbol: tuple[str, str, str] | None,
    exports: dict[str, list[str]],
    version: str,
    lowest: str | None,
    decisive: tuple[str, ...],
) -> None:
    program = program_with(*filter(None, [symbol]))
    (release,) = judged(program, cuda(*RELEASES), cublas(exports, version)).releases
    assert (release.lowest, release.decisive) == (lowest, decisive)
    assert release.unknown == tuple(label for label in RELEASES if label not in exports)


@pytest.mark.parametrize(
    ("redist", "labels", "lowest"),
    [
        ("cuda", ("12.5.1", "12.6.3"), "12.6.3 or an earlier patch"),
        ("cuda", ("12.5.1", "12.6.0"), "12.6.0"),
        ("cuda", ("12.6.1", "12.6.3"), "12.6.3"),
        # All of its releases are in the data.
        ("nccl", ("2.27.7", "2.28.3"), "2.28.3"),
    ],
)
def test_lowest_release_may_be_an_earlier_patch(
    redist: str, labels: tuple[str, str], lowest: str
) -> None:
    libraries = [known(CUBLAS, label, redist=redist) for label in labels]
    exports = {labels[0]: [], labels[1]: ["new"]}
    report = judged(program_with(VERSIONED), libraries, cublas(exports))
    (release,) = report.releases
    assert release.may_be_earlier == lowest.endswith("patch")
    words = f"{lowest} is the first with all symbols, including new"
    assert [line for line in audit_text(report) if line.endswith(words)]


@pytest.mark.parametrize(
    ("needed", "lowest"), [((CUBLAS,), "12.6.3"), ((CUBLAS, "librapids_logger.so"), "12.4.1")]
)
def test_symbol_in_the_namespace_of_another_library_is_of_that(
    needed: Sequence[str], lowest: str
) -> None:
    """Libraries such as nvCOMP export a copy of other ones."""
    name = "_ZN13rapids_logger4sinkD2Ev"
    program = [file("a.so", *needed, symbols=undefined((name, "", "")))]
    exports = cublas({**{label: [name] for label in RELEASES}, "12.4.1": []})
    (release,) = judged(program, cuda(*RELEASES), exports).releases
    assert release.lowest == lowest


def test_symbol_that_the_program_exports_is_its_own() -> None:
    program = [*program_with(("new", "", "")), file("libown.so", symbols=defined("new"))]
    (release,) = judged(program, cuda(*RELEASES), cublas(SINCE_12_6)).releases
    assert release.lowest == "12.4.1"


def test_symbol_with_a_stated_library_is_not_one_of_the_program() -> None:
    program = [
        *program_with(VERSIONED),
        file("b.so", CUBLAS, symbols=undefined(("new", "", ""))),
        file("libown.so", symbols=defined("new")),
    ]
    (release,) = judged(program, cuda(*RELEASES), cublas(SINCE_12_6)).releases
    assert release.lowest == "12.6.3"


def test_unknown_symbols_name_the_command_for_the_channel() -> None:
    report = judged(program_with(VERSIONED), cuda(*RELEASES), required=Required(cuda="12.4"))
    command = "cudaredist update-symbols --channel wheels --redist cuda"
    assert [finding.hint for finding in report.findings] == [f"{command} --version 12.4.1"]
    assert f"run `{command}`" in "\n".join(audit_text(report))


def test_device_code_of_an_unreadable_file_is_unknown() -> None:
    report = judged([file("a.so", unread=("needed",))], required=Required(gpus=("9.0",)))
    assert report.coverage is not None
    assert {part.value for part in report.coverage.values()} == {"unknown"}
    assert (kinds(report), report.exit_code) == (["unknown"], 3)
    assert list(requirement_lines(report)) == ["# Unknown: a.so cannot be read"]


def test_requirements_of_several_programs_have_headings() -> None:
    first, second = judged([file("a.so", CUBLAS)], cuda("12.4.1")), judged([file("b.so")])
    programs = (
        first.model_copy(update={"paths": ("a.whl",)}),
        second.model_copy(update={"paths": ("b\x1b.whl",)}),
    )
    assert list(requirement_lines(AuditReports(programs=programs, exit_code=0))) == [
        "# a.whl:",
        "nvidia-cublas-cu12>=12.4.1.7,<13  # libcublas.so.12; lowest version unknown",
        "# b\\x1b.whl:",
        "# No file needs a wheel of NVIDIA",
    ]


def test_symbols_of_unreadable_files_and_other_archives_are_unknown() -> None:
    unread = [file("a.so", CUBLAS, unread=("symbols",))]
    others = [library._replace(archive="other") for library in cuda(*RELEASES)]
    for program, libraries in ((unread, cuda(*RELEASES)), (program_with(VERSIONED), others)):
        (release,) = judged(program, libraries, cublas(OLD)).releases
        assert (release.lowest, release.unknown) == (None, RELEASES)


@pytest.mark.parametrize(
    ("exports", "message"),
    [
        ({"12.4.1": ["old"]}, "cuda 12.4.1 does not export new"),
        ({"12.4.1": ["old"], "12.9.1": ["old"]}, "no release of cuda exports new"),
        (
            {"12.4.1": ["old"], "12.9.1": ["new"]},
            "no release of cuda exports all symbols: 12.9.1 lacks old",
        ),
    ],
)
def test_symbols_that_no_release_exports_are_a_finding(
    exports: dict[str, list[str]], message: str
) -> None:
    program = program_with(("old", "", CUBLAS), ("new", "", CUBLAS))
    report = judged(program, cuda(*exports), cublas(exports))
    assert [(each.kind, each.message) for each in report.findings] == [("missing-symbols", message)]
    assert report.exit_code == 1
    unresolved = "new" if message.endswith("new") else "all symbols"
    assert any(f"no release exports {unresolved}" in line for line in audit_text(report))


def test_symbols_of_a_dll_are_found_in_any_case() -> None:
    """cupy for Windows needs `cuTENSOR.dll`, and NVIDIA's file is `cutensor.dll`."""
    details = {"project": "cutensor-cu12", "platform": "windows-x86_64"}
    libraries = [known("cutensor.dll", label, **details) for label in RELEASES]
    symbols = undefined(("new", "", "cuTENSOR.dll"))
    program = [file("a.pyd", "cuTENSOR.dll", kind="pe", symbols=symbols)]
    tables = {"cutensor.dll": table("cutensor.dll", SINCE_12_6)}
    (release,) = judged(program, libraries, tables).releases
    assert (release.lowest, release.decisive) == ("12.6.3", ("new",))


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("12", ["nvidia-cublas-cu12>=12.4.1.7,<=12.9.1.7", "nvidia-cudnn-cu12>=9.5.1.7,<10"]),
        ("12.9", ["nvidia-cublas-cu12==12.9.1.7", "nvidia-cudnn-cu12>=9.5.1.7,<10"]),
        ("13.0.2", []),
    ],
)
def test_requirements_for_a_release_have_only_its_wheels(release: str, expected: list[str]) -> None:
    libraries = [*cuda("12.4.1", "12.9.1", "13.0.2"), *cudnn("9.5.1", 11, 12, 13)]
    program = [file("a.so", CUBLAS, "libcudnn.so.9")]
    report = judged(program, libraries, required=Required(cuda=release))
    assert lines(report) == expected
    if not expected:
        comment = "# No file needs a wheel of NVIDIA for CUDA 13.0.2"
        assert list(requirement_lines(report)) == [comment]


def test_requirements_of_a_mixed_file_are_marked() -> None:
    program = [file("a.so", CUBLAS), file("b.so", "libcudart.so.12", "libcublas.so.13")]
    report = judged(program, cuda("12.4.1", "13.0.2"))
    assert kinds(report) == ["mixed-cuda"]
    mark = "; lowest version unknown; needed by a file of several CUDA majors"
    assert list(requirement_lines(report)) == [
        "nvidia-cublas-cu12>=12.4.1.7,<13  # libcublas.so.12; lowest version unknown",
        f"nvidia-cublas>=13.0.2.7,<14  # libcublas.so.13{mark}",
        f"nvidia-cuda-runtime-cu12>=12.4.1.7,<13  # libcudart.so.12{mark}",
    ]


@pytest.mark.parametrize(
    ("exports", "reason", "mark"),
    [
        (NEW, "oldest in the data with all of its libraries", "oldest version in the data"),
        (SINCE_12_6, "first with all symbols, including new", ""),
        (
            {"12.9.1": ["new"]},
            "oldest in the data with known symbols; symbols of 12.4.1, 12.6.3 unknown",
            "oldest version in the data",
        ),
        ({}, "", "lowest version unknown"),
        (OLD, "", "no known version has all symbols"),
        # The symbols of another release are unknown.
        ({"12.4.1": []}, "", "lowest version unknown"),
    ],
)
def test_lowest_release_is_described_by_its_evidence(
    exports: dict[str, list[str]], reason: str, mark: str
) -> None:
    bounds = {
        "": "symbols",
        "lowest version unknown": "unknown",
        "oldest version in the data": "oldest",
    }
    report = judged(program_with(VERSIONED), cuda(*RELEASES), cublas(exports))
    (wheel,), (line,) = report.requirements, requirement_lines(report)
    assert wheel.lower_bound == bounds.get(mark, "none")
    assert line.partition("  # ")[2] == (f"{CUBLAS}; {mark}" if mark else CUBLAS)
    reasons = [text for text in audit_text(report) if " is the " in text]
    assert [text.partition(" is the ")[2] for text in reasons] == ([reason] if reason else [])


def test_missing_library_leaves_its_product_without_bounds() -> None:
    """dgl-cu110 needs libcusolver.so.10 of CUDA 11.0, which has no wheels."""
    libraries = [
        *cuda("11.8.0", "12.4.1"),
        known("libcusolver.so.11", "11.8.0", "libcusolver", "nvidia-cusolver-cu11"),
        *cudnn("9.5.1", 11),
    ]
    program = [
        file("a.so", "libcublas.so.11", "libcusolver.so.10", "libcudnn.so.9"),
        file("b.so", CUBLAS),
    ]
    exports = {"libcudnn.so.9": table("libcudnn.so.9", {"9.5.1": []})}
    report = judged(program, libraries, exports, Required(cuda="11.8"))
    assert (kinds(report), report.exit_code) == (["missing-library", "cuda"], 1)
    assert report.findings[1].message == "CUDA 11.8.0 does not have libcusolver.so.10"
    report = judged(program, libraries, exports)
    assert lines(report) == [
        "nvidia-cublas-cu11",
        "nvidia-cudnn-cu11>=9.5.1.7,<10",
        "nvidia-cublas-cu12>=12.4.1.7,<13",
    ]
    assert [(n.redist, n.first, n.lowest) for n in report.releases if n.redist == "cuda"] == [
        ("cuda", None, None),
        ("cuda", "12.4.1", None),
    ]
    assert "another library of its release is missing" in "".join(requirement_lines(report))


@pytest.mark.parametrize(
    ("needed", "copy", "shared", "versions"),
    [
        ("libcudart-f9a9d13a.so.11.4.108", "libcudart-f9a9d13a.so.11.4.108", 1, ("11.4.108",)),
        ("libcudart.so.11.0", "libcudart.so.11.4.108", 1, ("11.4.108",)),
        ("libcudart.so.11.0", "libcudart.so.11.0", 1, ()),
        ("libown.so", "libcudart.so.11.4.108", 0, ("11.4.108",)),
    ],
)
def test_runtime_of_a_copy_has_the_version_in_its_name(
    needed: str, copy: str, shared: int, versions: tuple[str, ...]
) -> None:
    """spconv-cu114 renames its copy."""
    program = [file("a.so", needed, code={"sm_80": 1}), file(f"libs/{copy}")]
    runtime = judged(program, cuda("11.8.0")).runtime
    assert (len(runtime.shared), runtime.versions) == (shared, versions)


@pytest.mark.parametrize(
    ("needed", "projects"),
    [
        (["libnvinfer.so.10"], "tensorrt-cu12-libs or tensorrt-cu13-libs"),
        (["libnvinfer.so.10", CUBLAS], "tensorrt-cu12-libs"),
        (["libnvimgcodec.so.0", "libcublas.so.13"], "nvidia-nvimgcodec-cu13"),
    ],
)
def test_library_outside_the_data_names_its_wheel(needed: list[str], projects: str) -> None:
    report = judged([file("a.so", *needed)], cuda("12.4.1", "13.0.2"))
    comment = f"{needed[0]}; not in the data, so the version is unknown"
    assert f"# {projects}  # {comment}" in list(requirement_lines(report))
    inputs = (AuditInput(path="a.so", files=1, binaries=1),)
    text = "\n".join(audit_text(report.model_copy(update={"inputs": inputs})))
    assert f"with unknown versions:\n  {projects}  {needed[0]}" in text


def test_excluded_libraries_are_those_that_nvidia_or_the_driver_provides() -> None:
    needed = (CUBLAS, "libcuda.so.1", "libnvinfer.so.10", "libc.so.6", "libown.so")
    program = [file("a.so", *needed), file("libown.so", "libcudart.so.12"), file("libcudart.so.12")]
    report = judged(program, cuda("12.4.1"))
    assert list(exclude_lines(report)) == [
        "--exclude libcublas.so.12",
        "--exclude libcuda.so.1",
        "--exclude libnvinfer.so.10",
    ]


def test_unknown_library_names_no_wheel() -> None:
    report = judged([file("a.so", "libnvinfer.so.7", "libcublas.so.11")], cuda("11.8.0"))
    assert [library.projects for library in report.libraries] == [(), ()]


# -- CUDA majors


def test_libraries_for_each_major_are_separate_parts() -> None:
    program = [file("cu12.so", CUBLAS), file("cu13.so", "libcublas.so.13")]
    report = judged(program, cuda("12.4.1", "13.0.2"))
    assert report.findings == ()
    releases = {each.cuda_majors: each.first for each in report.releases}
    assert releases == {(12,): "12.4.1", (13,): "13.0.2"}
    assert lines(report) == ["nvidia-cublas-cu12>=12.4.1.7,<13", "nvidia-cublas>=13.0.2.7,<14"]


def test_copy_that_no_file_needs_states_no_major_for_the_others() -> None:
    """The wheel of triton 3.6 for CUDA 13 contains libcupti.so.12."""
    copy = file("libcudart.so.12")
    program = [file("a.so", "libcublas.so.13", "libcurand.so.10"), copy]
    libraries = cuda("12.4.1", "13.0.2")
    assert judged(program, libraries).cuda_majors == (13,)
    assert judged([file("a.so", "libcurand.so.10"), copy], libraries).cuda_majors == (12,)


@pytest.mark.parametrize(
    "program",
    [
        [file("a.so", CUBLAS, "libcudart.so.13")],
        [file("a.so", CUBLAS, "libb.so"), file("libb.so", "libcudart.so.13")],
        [file("a.so", CUBLAS, "libcudart-9335f6a2.so.11.0"), file("libcudart-9335f6a2.so.11.0")],
    ],
    ids=["needs", "through its own library", "bundled"],
)
def test_file_with_libraries_of_several_majors_is_a_finding(program: list[ProgramFile]) -> None:
    report = judged(program, cuda("11.8.0", "12.4.1", "13.0.2"))
    assert "mixed-cuda" in kinds(report)
    assert report.findings[0].path == "a.so"
    assert report.exit_code == 1


def test_majors_pass_through_many_libraries_and_cycles() -> None:
    chain = [file(f"lib{n}.so", f"lib{n + 1}.so", "lib0.so") for n in range(3000)]
    program = [file("a.so", CUBLAS, "lib0.so"), *chain, file("lib3000.so", "libcudart.so.13")]
    report = judged(program, cuda("12.4.1", "13.0.2"))
    assert [each.path for each in report.findings] == ["a.so"]


def test_variant_follows_the_other_libraries() -> None:
    libraries = [*cuda("12.4.1", "13.0.2"), *cudnn("9.5.1", 12, 13)]
    report = judged([file("a.so", "libcudnn.so.9", CUBLAS)], libraries)
    assert lines(report) == ["nvidia-cublas-cu12>=12.4.1.7,<13", "nvidia-cudnn-cu12>=9.5.1.7,<10"]
    (wheel,) = judged([file("a.so", "libcudnn.so.9")], libraries).requirements
    assert wheel.project is None
    assert wheel.alternatives == ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13")


def test_requirements_are_lines_for_pip(golden: Golden) -> None:
    program = [
        file("cu12.so", CUBLAS, "libcudnn.so.9", opens=("libcurand.so.10",)),
        file("cu13.so", "libcublas.so.13"),
    ]
    report = judged(
        program, [*cuda("12.4.1", "13.0.2"), *cudnn("9.5.1", 12, 13)], cublas(SINCE_12_6)
    )
    text = "\n".join(requirement_lines(report))
    for line in text.splitlines():
        assert line.startswith("#") or Requirement(line.partition("  #")[0]).specifier
    golden.check("audit.txt", "requirements", text)


# -- device code, runtime and floors


def test_gpus_are_those_of_own_device_code() -> None:
    program = [
        file("a.so", code={"sm_80": 4, "compute_80": 4}),
        file(CUBLAS, soname=CUBLAS, code={"sm_50": 4}),
    ]
    report = judged(program, cuda("12.4.1"))
    assert report.coverage is not None
    values = {name: part.value for name, part in report.coverage.items()}
    expected = {"7.5": "none", "8.0": "native", "8.6": "native", "9.0": "ptx"}
    assert {name: values[name] for name in expected} == expected
    assert "8.7" not in values
    assert [each.path for each in report.device_code] == ["a.so"]


REGISTER = ("__cudaRegisterFatBinary", "", "")
CODE = {"sm_80": 1}


@pytest.mark.parametrize(
    ("program", "linking"),
    [
        (file("a.so", "libcudart.so.12", code=CODE), "shared"),
        # As in tensorflow, where another of its libraries has a substitute.
        (file("a.so", code=CODE, symbols=undefined(REGISTER)), "unknown"),
        (
            file("a.so", code=CODE, opens=("libcuda.so.1",), symbols=undefined(REGISTER)),
            "unknown",
        ),
        (file("a.so", code=CODE, opens=("libcuda.so.1",)), "static"),
        # XLA's substitute opens the runtime itself.
        (file("a.so", code=CODE), "unknown"),
        (file("a.so", code=CODE, opens=("libcuda.so.1",), unread=("symbols",)), "unknown"),
        (file("a.so", opens=("libcuda.so.1",)), None),
    ],
)
def test_linking_of_the_runtime(program: ProgramFile, linking: str | None) -> None:
    runtime = judged([program], cuda("12.4.1")).runtime.model_dump()
    assert {key for key, files in runtime.items() if files} == ({linking} if linking else set())


def test_floor_is_the_newest_version() -> None:
    program = [
        file("a.so", glibc="2.9", libstdcxx="3.4.9"),
        file("b.so", glibc="2.28", libstdcxx="3.4.21"),
        file("c.so", unread=("glibc",)),
    ]
    report = judged(program)
    assert report.glibc == Floor(version="2.28", by=("b.so",), unread=("c.so",))
    assert report.libstdcxx.version == "3.4.21"


# -- gates


WITH_CODE = file("a.so", CUBLAS, code=CODE, symbols=undefined(VERSIONED), glibc="2.28")
COPY = file(CUBLAS, soname=CUBLAS)


@pytest.mark.parametrize(
    ("required", "program", "found", "code"),
    [
        (Required(gpus=("8.0",)), [WITH_CODE], [], 0),
        (Required(gpus=("8.6", "8.9")), [WITH_CODE], [], 0),
        (Required(gpus=("8.0", "9.0", "7.5")), [WITH_CODE], ["gpu", "gpu"], 1),
        (Required(gpus=("8.0",)), [file("a.so")], [], 0),
        (Required(gpus=("8.0",)), [WITH_CODE, file("b.so", code={"sm_90": 1})], ["gpu"], 1),
        (Required(max_glibc="2.28"), [WITH_CODE], [], 0),
        (Required(max_glibc="2.28"), [file("a.so")], [], 0),
        (Required(max_glibc="2.17"), [WITH_CODE], ["glibc"], 1),
        (Required(max_glibc="2.28"), [file("a.so", unread=("glibc",))], ["unknown"], 3),
        (Required(cuda="12.6"), [WITH_CODE], [], 0),
        (Required(cuda="12.9.1"), [WITH_CODE], [], 0),
        (Required(cuda="12.4"), [WITH_CODE], ["cuda"], 1),
        (Required(cuda="12"), [WITH_CODE], [], 0),
        (Required(cuda="13.0"), [WITH_CODE], ["cuda"], 1),
        (Required(cuda="12.8"), [WITH_CODE], ["unknown"], 3),
        (Required(cuda="12.4"), [file("a.so")], [], 0),
        (Required(no_bundled=True), [WITH_CODE], [], 0),
        (Required(no_bundled=True), [WITH_CODE, COPY], ["bundled"], 1),
    ],
)
def test_gate_passes_or_has_a_finding(
    required: Required, program: list[ProgramFile], found: list[str], code: int
) -> None:
    report = judged(program, cuda(*RELEASES, "12.8.1", "13.0.2"), cublas(SINCE_12_6), required)
    assert kinds(report) == found
    assert report.exit_code == code


# -- drivers


@pytest.mark.parametrize(
    ("program", "is_checked"),
    [
        (file("pip/t64.exe", "kernel32.dll", kind="pe"), False),
        (file("example/a.so", CUBLAS), True),
        (file("example/a.so", code={"sm_80": 1}), True),
    ],
    ids=["launcher of pip", "needs CUDA", "has device code"],
)
def test_only_files_that_use_cuda_need_a_driver(program: ProgramFile, *, is_checked: bool) -> None:
    required = Required(cuda="12.9", driver="525.85")
    report = judged([program], cuda(*RELEASES), required=required)
    assert any("drivers of CUDA" in each.message for each in report.findings) == is_checked
