"""audit as a user sees it, on small wheels, folders and archives, and on hostile ones."""

import json
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from shlex import split

import pytest
from conftest import Run
from support import binaries, wheels
from support.archives import ZipEntry, plain_tar, raw_zip
from support.binaries import Symbol, elf
from support.environments import install, user
from support.golden import Golden
from support.patching import Patch
from support.releases import put, release
from support.running import expect_error, expect_output, report, succeed
from typer.testing import Result

from cudaredist.store.cache import Cache

LABELS = ("12.4.1", "12.9.1")
NEWER = "cublasLtNewer"
"""A symbol that only the newer release exports."""
LT = "libcublasLt.so.12"


def make_gpu_data(root: Path) -> Path:
    """Put manifests, features and symbols of two small releases into `data/`; return it."""
    cudart = elf(symbols=[Symbol("cudaMalloc")], soname="libcudart.so.12")
    for label in LABELS:
        names = ["cublasLtCreate", *([NEWER] if label == LABELS[1] else [])]
        lt = elf(symbols=[Symbol(name, version=LT) for name in names], soname=LT, defines=[LT])
        packages = {
            "libcublas": {"linux-x86_64": {f"lib/{LT}": lt}},
            "cuda_cudart": {"linux-x86_64": {"lib/libcudart.so.12": cudart}},
        }
        files = release(label, packages)
        put(root / "source/compute/cuda/redist", files)
        manifests = {name: data for name, data in files.items() if "/" not in name}
        put(root / "data/manifests/cuda", manifests)
    folders = ("--data-dir", root / "data", "--cache-dir", root / "cache", "--quiet")
    for command in ("process-manifests", "update-symbols"):
        succeed(command, "--base-url", root / "source", *folders)
    return root / "data"


def extension(*symbols: str) -> bytes:
    """Return a library that takes symbols from cuBLASLt."""
    return user(LT, *symbols)


def kernels(*images: binaries.Image, needed: tuple[str, ...] = (), glibc: str = "2.17") -> bytes:
    """Return a library with device code."""
    code = binaries.fatbin(images, payload=bytes(4096))
    return binaries.elf(needed=needed, glibc=glibc, sections={".nv_fatbin": code})


def put_gpu_wheel(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Put a wheel with an extension into a folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "example-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
    path.write_bytes(wheels.wheel("example", "1.0", files))
    return path


FILES = {
    "example/__init__.py": b"",
    "example/_ext.so": extension("cublasLtCreate", NEWER),
    "example/_kernels.so": kernels(
        ("sm", 80, ""), ("compute", 80, ""), needed=("libcudart.so.12", "libc.so.6"), glibc="2.28"
    ),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with two releases of CUDA and their symbols."""
    return make_gpu_data(tmp_path_factory.mktemp("gpu"))


@pytest.fixture
def audit(run: Run, data: Path) -> Run:
    """Audit by that data folder, with an index that all tests share."""
    options = ("--data-dir", data, "--cache-dir", data.with_name("cache"))
    return lambda *arguments: run("audit", *arguments, *options)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel that needs a symbol of CUDA 12.9."""
    return put_gpu_wheel(tmp_path / "dist", FILES)


@pytest.mark.parametrize(
    "form", ["text", "markdown", "packages", "nix", "github", "auditwheel-exclude"]
)
def test_audit_prints_its_report_in_each_form(
    audit: Run, wheel: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(wheel.parent)
    result = audit(wheel.name, "--format", form, "--require-cuda", "12.4", "--require-gpu", "7.5")
    assert result.exit_code == 1
    assert "CUDA 12.4.1 does not export cublasLtNewer" in result.output
    golden.check("audit.txt", form, result.stdout.rstrip("\n"))


def test_audit_removes_old_facts_of_folders(
    run: Run, data: Path, wheel: Path, tmp_path: Path
) -> None:
    cache = Cache(tmp_path / "cache")
    entries = [("folders/1", 31), ("folders/0", 31), ("folders/1", 29), ("facts/1", 31)]
    for number, (kind, days) in enumerate(entries):
        cache.put(kind, str(number) * 64, b"facts")
        (path,) = (tmp_path / "cache").rglob(str(number) * 64)
        os.utime(path, (time.time() - days * 86400,) * 2)
    run("audit", wheel, "--data-dir", data, "--cache-dir", tmp_path / "cache")
    remaining = [kind for n, (kind, _) in enumerate(entries) if cache.get(kind, str(n) * 64)]
    assert remaining == ["folders/1", "facts/1"]


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFDIR])
def test_member_that_pip_installs_as_a_file_is_read(audit: Run, tmp_path: Path, kind: int) -> None:
    wheel = tmp_path / "user-1.0-py3-none-any.whl"
    content = elf(needed=["libcublasLt.so.12"])
    extension = ZipEntry(name=b"user/_ext.so", content=content, mode=kind | 0o644)
    metadata = b"Metadata-Version: 2.1\nName: user\nVersion: 1.0\n"
    about = ZipEntry(name=b"user-1.0.dist-info/METADATA", content=metadata)
    wheel.write_bytes(raw_zip(extension, about))
    (library,) = report(audit(wheel, "--json"))["libraries"]
    assert library["soname"] == "libcublasLt.so.12"


def two_wheels(folder: Path) -> list[Path]:
    """Return a wheel that needs a library of its own, and another one that contains it."""
    user = elf(needed=["libown.so.1", "libcudart.so.12"])
    owner = elf(soname="libown.so.1", needed=["libcublasLt.so.12"])
    return [
        put_gpu_wheel(folder / "user", {"user/_ext.so": user}),
        put_gpu_wheel(folder / "owner", {"owner/libown.so.1": owner}),
    ]


def test_audit_examines_each_wheel_alone(audit: Run, tmp_path: Path) -> None:
    alone = report(audit(*two_wheels(tmp_path), "--json"))["programs"]
    statuses = [{n["soname"]: n["status"] for n in each["libraries"]} for each in alone]
    assert statuses == [
        {"libcudart.so.12": "provided", "libown.so.1": "unknown"},
        {"libcublasLt.so.12": "provided"},
    ]
    together = report(audit(*two_wheels(tmp_path), "--json", "--together"))
    assert {n["soname"]: n["status"] for n in together["libraries"]} == {
        "libcublasLt.so.12": "provided",
        "libcudart.so.12": "provided",
        "libown.so.1": "bundled",
    }


def test_audit_of_wheels_and_other_paths_has_one_program_of_the_others(
    audit: Run, wheel: Path
) -> None:
    others = [wheel.with_name("a.so"), wheel.with_name("b.so")]
    put(wheel.parent, dict.fromkeys(("a.so", "b.so"), FILES["example/_ext.so"]))
    answer = report(audit(others[0], wheel, others[1], "--json"))
    assert [each["paths"] for each in answer["programs"]] == [[str(wheel)], [*map(str, others)]]


@pytest.mark.parametrize("form", ["text", "markdown", "packages", "nix", "github"])
def test_audit_of_several_wheels_prints_each_and_a_table(
    audit: Run, wheel: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(wheel.parent)
    put_gpu_wheel(Path("other"), {"other/_ext.so": elf(needed=["libcudart.so.12"])})
    result = audit(wheel.name, f"other/{wheel.name}", "--require-cuda", "12.4", "--format", form)
    assert result.exit_code == 1
    golden.check("audit.txt", f"several wheels: {form}", result.stdout.rstrip("\n"))


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("nowhere", 2, "no such file or folder"),
        (os.devnull, 2, "not a file or folder"),
        ("pipe", 2, "pipe"),
        ("n" * 300, 3, "cannot read"),
        ("text", 5, "text"),
    ],
)
def test_audit_of_unreadable_path_is_refused(
    audit: Run, name: str, code: int, message: str
) -> None:
    Path("text").write_text("nothing")
    os.mkfifo("pipe")
    expect_error(audit(name), code, message)


def test_audit_takes_a_folder_an_archive_and_a_file(audit: Run, tmp_path: Path) -> None:
    folder = tmp_path / "root"
    put(folder, {**FILES, "example/libmore.so.1": elf(needed=("libown.so",))})
    (folder / "example/libown.so").symlink_to("_kernels.so")
    answer = report(audit(folder, "--json"))
    assert answer["inputs"] == [{"path": str(folder), "files": 4, "binaries": 3}]
    libraries = {each["soname"]: each for each in answer["libraries"]}
    assert libraries["libown.so"]["bundled"] == ["example/_kernels.so"]
    assert answer["glibc"] == {"version": "2.28", "by": ["example/_kernels.so"], "unread": []}
    (release,) = report(audit(folder / "example/_ext.so", "--json"))["releases"]
    assert (release["lowest"], release["decisive"]) == ("12.9.1", [NEWER])
    both = report(audit(folder / "example/_ext.so", folder / "example", "--json"))
    assert [each["binaries"] for each in both["inputs"]] == [1, 3]
    assert both["releases"][0]["lowest"] == "12.9.1"


def test_audit_by_a_set_finds_what_it_lacks(audit: Run, data: Path, wheel: Path) -> None:
    found = {}
    for label in ("12.4.1", "12.9.1"):
        path = wheel.parent / f"{label}.json"
        options = ("--cuda", label, "--platform", "linux-x86_64", "-o", path, "--allow-hollow")
        succeed("build", *options, "--data-dir", data)
        result = audit(wheel, "--set", path, "--json")
        found[label] = [each["kind"] for each in report(result)["findings"]]
    assert found == {"12.4.1": ["missing-symbols"], "12.9.1": []}


@pytest.mark.parametrize(
    ("passes", "fails", "message"),
    [
        ("--require-gpu rtx3090", "--require-gpu 'RTX 2080'", "capability 7.5 do not run it"),
        ("--require-glibc 2.28", "--require-glibc 2.17", "needs glibc 2.28, not 2.17"),
        ("--require-cuda 12.9", "--require-cuda 12.4", f"CUDA 12.4.1 does not export {NEWER}"),
        (
            "--require-driver 550.54",
            "--require-driver 520.61.05",
            "CUDA 12.9.1 does not run on driver 520.61.05 on Linux: 525.60.13 is the lowest",
        ),
        (
            "--require-driver 525.60.13 --require-cuda 12.9",
            "--require-driver 525.60.12 --require-cuda 12.9",
            "on driver 525.60.12",
        ),
        ("--no-bundled", "--no-bundled --require-gpu 7.0", "capability 7.0"),
    ],
)
def test_audit_gate_decides_the_exit_code(
    audit: Run, wheel: Path, passes: str, fails: str, message: str
) -> None:
    assert audit(wheel, *split(passes)).exit_code == 0
    expect_output(audit(wheel, *split(fails)), 1, message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--require-gpu", "8"), "no compute capability is called '8'"),
        (("--require-cuda", "11.8"), "no local release of CUDA is called"),
        (("--require-cuda", "latest"), "no local release of CUDA is called"),
        (("--require-driver", "550.x"), "no driver is called '550.x'"),
        (("--require-glibc", "new"), "--require-glibc new: expected"),
        (("--format", "requirements"), "--channel wheels`"),
    ],
)
def test_audit_refuses_unusable_values(
    audit: Run, wheel: Path, options: tuple[str, ...], message: str
) -> None:
    expect_error(audit(wheel, *options), 2, message)


@pytest.mark.parametrize(
    ("name", "content", "answer"),
    [
        ("_ext.so", kernels(("sm", 80, "")), "No file needs a CUDA library, but the program may"),
        ("_ext.so", elf(needed=["libc.so.6"]), "It needs no CUDA library."),
        ("__init__.py", b"", "It contains no program or library."),
    ],
    ids=["device code", "host code", "no binary"],
)
def test_audit_of_a_program_without_libraries_of_cuda(
    audit: Run, tmp_path: Path, name: str, content: bytes, answer: str
) -> None:
    """xgboost loads NCCL from Python, and jax-cuda12-plugin opens all of its CUDA libraries."""
    expect_output(audit(put_gpu_wheel(tmp_path, {f"example/{name}": content})), 0, answer)


def test_audit_continues_after_a_broken_archive(audit: Run, wheel: Path) -> None:
    broken = wheel.with_name("broken.whl")
    broken.write_bytes(wheel.read_bytes()[:-100])
    result = expect_output(audit(broken, wheel, "--json"), 5)
    failed, examined = report(result)["programs"]
    assert (failed["paths"], examined["paths"]) == ([str(broken)], [str(wheel)])
    assert (failed["inputs"], [e["kind"] for e in failed["errors"]]) == ([], ["invalid-archive"])
    assert (examined["errors"], examined["exit_code"]) == ([], 0)
    assert audit(broken, wheel).stdout.splitlines()[-2].split()[-1] == "invalid-archive"
    assert audit(broken).stdout == ""


# -- hostile wheels


def many_names() -> bytes:
    needed = [f"lib{number}.so.1" for number in range(5000)]
    return binaries.elf(needed=needed)


def test_audit_reports_unsafe_names_in_printable_form(audit: Run, tmp_path: Path) -> None:
    entries = [
        ZipEntry(b"../../etc/x.so", FILES["example/_ext.so"]),
        ZipEntry(b"a\x1b[31m.so", FILES["example/_ext.so"]),
        ZipEntry(b"example/_ext.so", FILES["example/_ext.so"]),
    ]
    path = tmp_path / "names.whl"
    path.write_bytes(raw_zip(*entries))
    result = audit(path, "--json")
    answer = report(result)
    assert answer["inputs"][0]["binaries"] == 1
    assert any("unsafe name" in note for note in answer["notes"])
    assert "\x1b" not in audit(path).output


def test_audit_states_that_names_are_unread(audit: Run, tmp_path: Path) -> None:
    path = put_gpu_wheel(tmp_path, {"example/_ext.so": many_names()})
    answer = report(audit(path, "--json"))
    assert answer["libraries"] == []
    assert answer["notes"] == ["example/_ext.so: not read: needed, opens"]
    assert "Its needed libraries are unknown: example/_ext.so" in audit(path).stdout


GATES = (
    "--require-cuda",
    "12.9",
    "--no-bundled",
    "--require-glibc",
    "2.28",
    "--require-gpu",
    "8.6",
)
LARGE = kernels(("sm", 80, ""), needed=("libcudart.so.12",), glibc="2.28")
UNREAD = {
    "file cut in its code": [ZipEntry(b"example/_cut.so", LARGE[:3000])],
    "file cut in its first bytes": [ZipEntry(b"example/_cut.so", LARGE[:3])],
    "unsafe name": [ZipEntry(b"../example/_cut.so", LARGE)],
    "name below a file": [ZipEntry(b"example/_kernels.so/_cut.so", LARGE)],
    "file beyond a limit": [ZipEntry(b"example/_cut.so", many_names())],
}


def expect_unknown_gates(result: Result, cause: str = "") -> None:
    """Check that each gate is unknown for a cause."""
    gates = [option for option in GATES if option.startswith("--")]
    expect_output(result, 3, *(f"unknown: {gate} is unknown: {cause}" for gate in gates))


@pytest.mark.parametrize("cause", UNREAD)
def test_audit_gates_are_unknown_if_a_file_is_unread(
    audit: Run, tmp_path: Path, cause: str
) -> None:
    path = tmp_path / "cut.whl"
    files = [ZipEntry(name.encode(), content) for name, content in FILES.items()]
    path.write_bytes(raw_zip(*files))
    assert audit(path, *GATES).exit_code == 0
    path.write_bytes(raw_zip(*files, *UNREAD[cause]))
    assert audit(path).exit_code == 0
    expect_unknown_gates(audit(path, *GATES))


@pytest.mark.parametrize("project", ["example", "nvidia-cublas-cu12"])
def test_audit_gates_are_unknown_if_an_installed_file_is_cut(
    audit: Run, tmp_path: Path, project: str
) -> None:
    files = {"example/_ext.so": LARGE, "example/libcublas.so.12": LARGE[:3000]}
    install(tmp_path, "other", "1.0", {"other/_ext.so": LARGE})
    install(tmp_path, project, "1.0", files)
    expect_unknown_gates(audit(tmp_path, *GATES), "example/libcublas.so.12")


@pytest.mark.parametrize(
    ("link", "target", "code"),
    [
        ("libx.so.1", "elsewhere/_ext.so", 3),
        ("package", "elsewhere", 3),
        ("libx.so.1", "root/_ext.so", 0),
        ("package", "root", 0),
        ("python", "elsewhere/_ext.so", 0),
        ("libx.so.1", "nowhere", 0),
    ],
)
def test_audit_gates_are_unknown_if_a_link_leads_to_a_library_elsewhere(
    audit: Run, tmp_path: Path, link: str, target: str, code: int
) -> None:
    for folder in ("root", "elsewhere"):
        put(tmp_path / folder, {"_ext.so": FILES["example/_kernels.so"]})
    (tmp_path / "root" / link).symlink_to(tmp_path / target)
    result = audit(tmp_path / "root", *GATES)
    if code == 0:
        assert result.exit_code == 0
    else:
        expect_unknown_gates(result)


@pytest.mark.parametrize("has_headers", [True, False], ids=["sections", "no sections"])
def test_required_gpu_is_unknown_for_a_file_cut_at_any_length(
    audit: Run, tmp_path: Path, *, has_headers: bool
) -> None:
    """The parts before the cut have readable facts, and other device code for the GPU."""
    first = binaries.fatbin([("sm", 80, "")], payload=bytes(4096))
    whole = binaries.elf(sections={".nv_fatbin": first * 2}, has_section_headers=has_headers)
    path = tmp_path / "libcut.so"
    path.write_bytes(whole[:100])
    assert "Its device code is unknown: libcut.so cannot be read." in audit(path).stdout
    for end in (100, 3000, 6000, 9000, len(whole) - 1):
        path.write_bytes(whole[:end])
        expect_output(audit(path, "--require-gpu", "8.6"), 3)
    path.write_bytes(whole)
    assert audit(path, "--require-gpu", "8.6").exit_code == (0 if has_headers else 3)


def test_audit_gates_are_unknown_for_a_folder_of_archives_and_a_pipe(
    audit: Run, wheel: Path
) -> None:
    os.mkfifo(wheel.parent / "pipe")
    (wheel.parent / "loop").symlink_to(".")
    expect_output(audit(wheel.parent), 0, "1 archive in it is not read")
    expect_unknown_gates(audit(wheel.parent, *GATES))


def test_audit_of_a_folder_with_too_many_files_is_incomplete(
    audit: Run, tmp_path: Path, patch: Patch
) -> None:
    patch("cudaredist.environments.read_program._FILES_LIMIT", 1)
    put(tmp_path / "many", {"a": b"", "b": b""})
    expect_error(audit(tmp_path / "many"), 3, "more than 1 files")


def test_audit_takes_a_root_file_system(audit: Run, tmp_path: Path) -> None:
    path = tmp_path / "root.tar"
    path.write_bytes(plain_tar())
    assert audit(path).exit_code == 0


def test_audits_on_github_annotate_the_wheel_and_write_several_reports(
    audit: Run, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = wheel.parent / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("RUNNER_TEMP", str(tmp_path / "temp"))
    result = audit(wheel, "--format", "github", "--require-gpu", "7.5")
    assert f"::error file={wheel},title=gpu::" in result.stdout
    assert "cudaredist audit" in summary.read_text()
    audit(wheel, "--format", "github", "--require-gpu", "8.0")
    assert len(list((tmp_path / "temp").iterdir())) == 2


def test_audit_on_github_without_report_prints_annotations(
    audit: Run, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temp").write_text("")
    monkeypatch.setenv("RUNNER_TEMP", str(tmp_path / "temp"))
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    result = audit(wheel, "--format", "github", "--require-gpu", "7.5")
    expect_output(result, 1, "::error file=")
    assert "cannot write" in result.stderr
    assert "report=\n" in (tmp_path / "output").read_text()


@pytest.mark.parametrize("form", ["text", "markdown", "github", "requirements"])
def test_audit_escapes_the_name_of_its_file(
    audit: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    path = tmp_path / "a\x1b[31m\n::add-mask::\u202eb.so"
    path.write_bytes(FILES["example/_ext.so"])
    output = audit(path, "--require-glibc", "2.0", "--format", form).output
    output += summary.read_text() if summary.exists() else ""
    for line in output.split("\n"):
        assert line.isprintable(), line
        assert not line.startswith("::add-mask")


def test_audit_json_is_one_document_after_an_error(audit: Run, tmp_path: Path) -> None:
    answer = json.loads(audit(tmp_path / "absent.whl", "--json").stdout)
    assert answer["error"]["kind"] == "usage"


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ("printf '9.0\\n9.0\\n'", 1, "GPUs of capability 9.0 do not run it"),
        ("printf '8.0\\n'", 0, "No findings"),
        ("echo 'No devices were found'", 2, "reports no GPU"),
        ("echo 8.0; exit 9", 2, "reports no GPU"),
        (None, 2, "--require-gpu 9.0`"),
    ],
    ids=["other GPU", "GPU", "no device", "failed", "no driver"],
)
def test_audit_asks_the_driver_for_the_gpus(
    audit: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str | None,
    code: int,
    message: str,
) -> None:
    if script is not None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin/nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "a.so").write_bytes(kernels(("sm", 80, "")))
    result = audit(tmp_path / "a.so", "--require-gpu", "host")
    assert result.exit_code == code, result.output
    assert message in result.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("soname", "bound"),
    [
        # That of 13.0 lost its run path, so it does not find its builtins.
        ("libnvrtc.so.13", "nvidia-cuda-nvrtc>=13.1.80,<14  # libnvrtc.so.13; first version that"),
        ("libnvJitLink.so.13", "nvidia-nvjitlink>=13.0.39,<14  # libnvJitLink.so.13; oldest"),
    ],
)
def test_lower_bound_is_a_version_that_finds_its_own_libraries(
    run: Run, tmp_path: Path, soname: str, bound: str
) -> None:
    path = tmp_path / "a.so"
    path.write_bytes(elf(needed=[soname]))
    assert bound in run("audit", path, "--format", "requirements").stdout
