"""Tests of audit: the commands that resolve findings, for the installer of the environment."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support.binaries import elf
from support.environments import install, library, user
from support.programs import audit_data, cuda, cudnn

from cudaredist.commands.audit.text import audit_text
from cudaredist.environments.audit_program import audit_report
from cudaredist.environments.read_program import ProgramReader
from cudaredist.programs.program import AuditRequirements
from cudaredist.programs.report import AuditReport
from cudaredist.store.cache import Cache

CUBLAS, CUDART = "libcublas.so.12", "libcudart.so.12"
FOLDER = "nvidia/cublas/lib"
RUN_PATHS = f"$ORIGIN/../{FOLDER}:$ORIGIN/../nvidia/cuda_runtime/lib"
LIBRARIES = [
    *cuda("11.8.0", "12.4.1", "12.9.1", "13.0.2"),
    *cudnn("9.5.1", 12),
    *cudnn("9.8.0", 12),
    *cudnn("9.8.0", 11),
]


def audit(site: Path) -> AuditReport:
    reader = ProgramReader(cache=Cache(site.with_suffix(".cache")), paths=[site])
    return audit_report(reader.read_all(), audit_data(LIBRARIES), AuditRequirements())


def hints(report: AuditReport) -> list[str | None]:
    return [each.hint for each in report.findings if each.exit_code]


def fix(report: AuditReport) -> str | None:
    return report.environments[0].fix


def made_by(site: Path, installer: str) -> None:
    """Let a program be the installer of all packages."""
    for folder in site.glob("*.dist-info"):
        (folder / "INSTALLER").write_text(f"{installer}\n")


def put_example(site: Path, *sonames: str, requires: Sequence[str] = ()) -> None:
    files = {f"example/{name}.so": user(name, runpath=RUN_PATHS) for name in sonames}
    install(site, "example", "1.0", files, requires)


# -- other requirements


@pytest.mark.parametrize(
    ("requires", "hint"),
    [
        ([], "pip install 'nvidia-cublas-cu12>=12.4.1.7'"),
        (["nvidia-cublas-cu12==12.9.1.7"], "pip install nvidia-cublas-cu12==12.9.1.7"),
        (["nvidia-cublas-cu12<12.9"], "pip install 'nvidia-cublas-cu12>=12.4.1.7,<12.9'"),
        (["nvidia-cublas-cu12==12.9.*"], "pip install 'nvidia-cublas-cu12==12.9.*,>=12.4.1.7'"),
        (["nvidia-cublas-cu12==12.0.1"], None),
        (["nvidia-cublas-cu12<12"], None),
    ],
)
def test_command_fits_the_requirements_of_other_packages(
    tmp_path: Path, requires: Sequence[str], hint: str | None
) -> None:
    put_example(tmp_path, CUBLAS)
    install(tmp_path, "torch", "2.6.0", {}, requires)
    report = audit(tmp_path)
    assert hints(report) == [hint]
    message = report.findings[0].message
    assert (f"but torch 2.6.0 requires {''.join(requires)}" in message) == (hint is None)


def test_requirements_that_contradict_each_other_have_no_command(tmp_path: Path) -> None:
    put_example(tmp_path, requires=["nvidia-cudnn-cu12==9.5.1.7"])
    install(tmp_path, "torch", "2.6.0", {}, ["nvidia-cudnn-cu12==9.8.0.7"])
    install(tmp_path, "nvidia-cudnn-cu12", "9.8.0.7", {})
    assert hints(audit(tmp_path)) == [None]


def test_file_of_another_major_needs_another_build(tmp_path: Path) -> None:
    files = {"nvidia/cu13/lib/libcublas.so.13": library("libcublas.so.13")}
    install(tmp_path, "nvidia-cublas", "13.0.2.7", files)
    torch = user("libcublas.so.13", runpath="$ORIGIN/../nvidia/cu13/lib")
    install(tmp_path, "torch", "2.12", {"torch/libtorch.so": torch})
    both = elf(needed=[CUDART, "libtorch.so"], runpath="$ORIGIN/../torch")
    install(tmp_path, "example", "1.0", {"example/a.so": both})
    report = audit(tmp_path)
    assert hints(report) == [None, None]
    message = next(each.message for each in report.findings if each.kind == "missing-library")
    assert message.endswith("but the environment needs the build of example 1.0 for CUDA 13")


def put_wheel(site: Path, project: str, soname: str) -> None:
    install(site, project, "1.0", {f"nvidia/lib/{soname}": library(soname)})


@pytest.mark.parametrize(
    ("project", "installed", "hint"),
    [
        ("onnxruntime-gpu", CUDART, "pip install 'onnxruntime-gpu[cuda,cudnn]>=1.21,<1.27'"),
        (
            "onnxruntime-gpu",
            "libcudart.so.13",
            "pip install 'onnxruntime-gpu[cuda,cudnn]>=1.28'",
        ),
        (
            "cupy-cuda11x",
            CUDART,
            "pip uninstall --yes cupy-cuda11x && pip install cupy-cuda12x",
        ),
        (
            "mooncake-transfer-engine",
            "libcudart.so.13",
            "pip uninstall --yes mooncake-transfer-engine && "
            "pip install 'mooncake-transfer-engine-cuda13>=0.3.13'",
        ),
        # No build is known, so the libraries of its CUDA major are installed.
        ("example", CUDART, "pip install 'nvidia-cuda-runtime-cu11>=11.8.0.7'"),
    ],
)
def test_build_for_another_major_is_replaced_first(
    tmp_path: Path, project: str, installed: str, hint: str
) -> None:
    """onnxruntime-gpu 1.18 in an environment for CUDA 12."""
    end = "" if installed.endswith("13") else "-cu12"
    put_wheel(tmp_path, f"nvidia-cuda-runtime{end}", installed)
    install(tmp_path, project, "1.18", {"example/a.so": user("libcudart.so.11.0")})
    assert hints(audit(tmp_path)) == [hint]


@pytest.mark.parametrize(
    ("requires", "hint"),
    [
        ([], "pip uninstall --yes nvidia-cudnn-cu11 && pip install nvidia-cudnn-cu12"),
        (["nvidia-cudnn-cu11"], "pip install 'nvidia-cuda-runtime-cu11>=11.8.0.7'"),
    ],
    ids=["installed by the user", "required by a package"],
)
def test_wheel_of_nvidia_for_another_major_is_replaced_unless_it_is_required(
    tmp_path: Path, requires: Sequence[str], hint: str
) -> None:
    """cuDNN for CUDA 11 next to torch for CUDA 12."""
    put_wheel(tmp_path, "nvidia-cuda-runtime-cu12", CUDART)
    cudnn_11 = elf(soname="libcudnn.so.9", needed=["libcudart.so.11.0"])
    install(tmp_path, "nvidia-cudnn-cu11", "9.8.0.7", {"nvidia/lib/libcudnn.so.9": cudnn_11})
    install(tmp_path, "example", "1.0", {}, requires)
    assert hints(audit(tmp_path)) == [hint]


@pytest.mark.parametrize(
    ("version", "hint"), [("2.11.0", "pip install 'torchaudio==2.6.*'"), ("2.6.1", None)]
)
def test_package_that_follows_torch_gets_the_minor_of_torch(
    tmp_path: Path, version: str, hint: str | None
) -> None:
    """torchaudio 2.11 needs CUDA 13, and requires no version of torch."""
    put_wheel(tmp_path, "nvidia-cuda-runtime-cu12", CUDART)
    put_wheel(tmp_path, "nvidia-cuda-runtime", "libcudart.so.13")
    torch = user(CUDART, runpath="$ORIGIN/../nvidia/lib")
    install(tmp_path, "torch", "2.6.0", {"torch/libtorch.so": torch})
    both = elf(needed=["libcudart.so.13", "libtorch.so"], runpath="$ORIGIN/../nvidia/lib")
    files = {f"torchaudio/{name}.so": both for name in "ab"}
    install(tmp_path, "torchaudio", version, files)
    report = audit(tmp_path)
    mixed = [finding for finding in report.findings if finding.kind == "mixed-cuda"]
    assert [finding.hint for finding in mixed] == [hint]
    assert mixed[0].message.startswith("torchaudio/a.so, torchaudio/b.so use libraries of several")


# -- one command


def put_broken(site: Path) -> None:
    """Install a package without the runtime, with another cuDNN, and with a damaged cuBLAS."""
    put_example(site, CUBLAS, CUDART, requires=["nvidia-cudnn-cu12==9.8.0.7"])
    install(site, "nvidia-cublas-cu12", "12.9.1.7", {f"{FOLDER}/{CUBLAS}": b""})
    install(site, "nvidia-cudnn-cu12", "9.5.1.7", {})


@pytest.mark.parametrize(
    ("installer", "command"),
    [
        (
            "pip",
            "pip install 'nvidia-cuda-runtime-cu12>=12.4.1.7' nvidia-cudnn-cu12==9.8.0.7 && "
            "pip install --force-reinstall --no-deps nvidia-cublas-cu12==12.9.1.7",
        ),
        (
            "uv",
            "uv pip install 'nvidia-cuda-runtime-cu12>=12.4.1.7' nvidia-cudnn-cu12==9.8.0.7 && "
            "uv pip install --reinstall --no-deps nvidia-cublas-cu12==12.9.1.7",
        ),
    ],
)
def test_one_command_resolves_all_findings(tmp_path: Path, installer: str, command: str) -> None:
    put_broken(tmp_path)
    made_by(tmp_path, installer)
    report = audit(tmp_path)
    assert len({*hints(report)}) == 3
    assert fix(report) == command
    assert f"all findings: run `{command}`" in list(audit_text(report))


def test_single_command_is_not_repeated(tmp_path: Path) -> None:
    put_example(tmp_path, CUBLAS)
    report = audit(tmp_path)
    assert (len(hints(report)), fix(report)) == (1, None)


def test_conda_installs_its_own_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conda-meta").mkdir()
    put_example(tmp_path / "lib/python3.11/site-packages", CUBLAS, CUDART)
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path))
    command = "conda install 'libcublas>=12.4.1.7' 'cuda-cudart>=12.4.1.7'"
    assert fix(audit(tmp_path)) == command


@pytest.mark.parametrize(
    ("wheels", "command"),
    [
        ({"nvidia-cublas-cu12": "pip"}, "pip install"),
        ({"nvidia-cublas-cu12": "uv", "other": "conda"}, "uv pip install"),
        ({"other": "uv"}, "conda install"),
    ],
)
def test_conda_environment_with_wheels_keeps_their_installer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wheels: Mapping[str, str], command: str
) -> None:
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path))
    (tmp_path / "conda-meta").mkdir()
    site = tmp_path / "lib/python3.11/site-packages"
    put_example(site, CUDART)
    for project, installer in wheels.items():
        install(site, project, "12.9.1.7", {})
        (site / f"{project.replace('-', '_')}-12.9.1.7.dist-info/INSTALLER").write_text(installer)
    (hint,) = hints(audit(tmp_path))
    assert hint is not None
    assert hint.startswith(f"{command} ")


def test_installer_of_most_packages_is_used(tmp_path: Path) -> None:
    put_example(tmp_path, CUBLAS)
    install(tmp_path, "torch", "2.6.0", {})
    made_by(tmp_path, "pip")
    install(tmp_path, "other", "1.0", {})
    (tmp_path / "other-1.0.dist-info/INSTALLER").write_text("uv\n")
    assert hints(audit(tmp_path)) == ["pip install 'nvidia-cublas-cu12>=12.4.1.7'"]


def test_run_path_to_a_missing_wheel_is_added_at_once(tmp_path: Path) -> None:
    """libcudensitymat.so.0 has run paths to cuBLAS, but none to cuSPARSE.

    `ldd` of cudensitymat-cu12 0.7.0 found both libraries after this command.
    """
    put_example(tmp_path, CUDART)
    content = user(CUBLAS, runpath="$ORIGIN/../nvidia/cuda_runtime/lib")
    needs_both = elf(needed=[CUBLAS, CUDART], runpath="$ORIGIN/../nvidia/cuda_runtime/lib")
    files: dict[str, bytes | str] = {"a/a.so": needs_both, "b/b.so": content}
    install(tmp_path, "more", "1.0", files)
    command = f"patchelf --add-rpath '$ORIGIN/../{FOLDER}' {tmp_path}/a/a.so"
    assert (fix(audit(tmp_path)) or "").endswith(f" && {command}")
    # A module may load the library instead.
    (tmp_path / "a/__init__.py").write_text("ctypes.CDLL(path)")
    assert "patchelf" not in (fix(audit(tmp_path)) or "")
