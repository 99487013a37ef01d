"""Tests of audit: METADATA and RECORD of installed packages."""

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from support import judged_environments
from support.binaries import elf
from support.cost import calls
from support.environments import install, library
from support.judged_environments import CUBLAS, FOLDER
from support.programs import audit_data, known

from cudaredist.environments.environment import JudgedEnvironment
from cudaredist.environments.installed import find_environment
from cudaredist.environments.load_all import load_all
from cudaredist.environments.read_program import ProgramReader
from cudaredist.environments.requirements_in_use import extra_with, requirements_in_use
from cudaredist.programs.finding import Finding
from cudaredist.store.cache import Cache

NCCL = "nvidia/nccl/lib/libnccl.so.2"
CUDNN = "nvidia-cudnn-cu12"
LIBRARIES = [
    known("libnccl.so.2", "2.29.7", "nccl", "nvidia-nccl-cu12", redist="nccl"),
    known("libnccl.so.2", "2.29.7", "nccl", "nvidia-nccl-cu13", redist="nccl"),
    known("libcudnn.so.9", "9.5.1", "cudnn", CUDNN, redist="cudnn"),
    known("libcublas.so.12", "12.9.1"),
]


def findings(folder: Path) -> list[Finding]:
    reader = ProgramReader(cache=Cache(folder.with_suffix(".cache")), paths=[folder])
    (environment,) = reader.read_all().environments
    data = audit_data(LIBRARIES)
    return list(JudgedEnvironment(load_all(environment, data), data).findings())


def put(site: Path, project: str, version: str, files: Mapping[str, bytes]) -> None:
    """Install a package with hashes and sizes in RECORD."""
    install(site, project, version, files)
    record = site / f"{project.replace('-', '_')}-{version}.dist-info/RECORD"
    digests = {name: urlsafe_b64encode(sha256(data).digest()) for name, data in files.items()}
    rows = (f"{n},sha256={digests[n].decode().rstrip('=')},{len(d)}\n" for n, d in files.items())
    record.write_text("".join(rows))


# -- METADATA


@pytest.mark.parametrize(
    ("requires", "version", "message"),
    [
        ([f"{CUDNN}>=9.10"], "9.5.1.17", f"requires {CUDNN}>=9.10, but 9.5.1.17 is installed"),
        ([f"{CUDNN}>=9.10; extra == 'cuda'"], "9.5.1.17", "but 9.5.1.17 is installed"),
        ([f"{CUDNN}>=9.10"], "9.10.1", ""),
        ([f"{CUDNN}==9.5.*; extra == 'a'", f"{CUDNN}==9.10.*; extra == 'b'"], "9.5.1.17", ""),
        (["other>=2"], "9.5.1.17", ""),
    ],
    ids=["too old", "of an extra", "fits", "of one of two extras", "not of CUDA"],
)
def test_version_outside_of_a_requirement_is_a_finding(
    tmp_path: Path, requires: Sequence[str], version: str, message: str
) -> None:
    """jax-cuda12-plugin 0.12.0.1 fails with cuDNN 9.5.1."""
    install(tmp_path, "example", "1.0", {}, requires, extras=["cuda", "a", "b"])
    install(tmp_path, CUDNN, version, {})
    install(tmp_path, "other", "1.0", {})
    found = findings(tmp_path)
    assert len(found) == bool(message)
    for finding in found:
        assert (finding.kind, finding.exit_code) == ("requirement", 1)
        assert finding.message.endswith(message)
        assert finding.hint == f"pip install '{CUDNN}>=9.10'"


def test_extra_of_a_metapackage_counts_if_a_package_requires_it(tmp_path: Path) -> None:
    """cuda-toolkit pins each wheel in an extra of its own, and torch pins a newer cuBLAS."""
    requires = [f"{name}==1; extra == 'a'" for name in (CUDNN, "nvidia-cublas-cu12")]
    install(tmp_path, "cuda-toolkit", "13.0.2", {}, requires, extras=["a"])
    install(tmp_path, CUDNN, "9.5.1.17", {})
    assert findings(tmp_path) == []
    install(tmp_path, "example", "1.0", {}, ["cuda-toolkit[a]"])
    assert [each.kind for each in findings(tmp_path)] == ["requirement"]


def test_extra_that_only_another_unused_extra_requires_does_not_count(tmp_path: Path) -> None:
    """cuda-bindings requires more of cuda-toolkit in an extra than torch does."""
    names = (CUDNN, "nvidia-cublas-cu12", "nvidia-nccl-cu12", "nvidia-cufft-cu12")
    requires = [f"{name}; extra == '{name[7:11]}'" for name in names]
    extras = [name[7:11] for name in names]
    install(tmp_path, "cuda-toolkit", "13.0.2", {}, requires, extras=extras)
    for project in names[1:]:
        install(tmp_path, project, "1.0", {})
    install(tmp_path, "torch", "2.12", {}, [f"cuda-toolkit[{','.join(extras[1:])}]"])
    bindings = ["cuda-toolkit[cudn]; extra == 'all'"]
    install(tmp_path, "cuda-bindings", "13.5", {}, bindings, extras=["all"])
    assert findings(tmp_path) == []
    install(tmp_path, "other", "1.0", {}, ["cuda-bindings[all]"])
    assert [each.kind for each in findings(tmp_path)] == ["requirement"]


@pytest.mark.parametrize("requires", ["cuda-toolkit[rt,nccl]", ""], ids=["of an extra", "none"])
def test_extra_does_not_count_if_other_packages_require_its_wheels(
    tmp_path: Path, requires: str
) -> None:
    """numba-cuda[cu12] requires most wheels of the unused extra of cuda-bindings."""
    names = ("nvidia-cublas-cu12", "nvidia-nccl-cu12")
    toolkit = [f"{names[0]}; extra == 'rt'", f"{names[1]}; extra == 'nccl'"]
    install(tmp_path, "cuda-toolkit", "12.9", {}, toolkit, extras=["rt", "nccl"])
    for project in names:
        install(tmp_path, project, "1.0", {})
    bindings = [f"{name}; extra == 'all'" for name in (CUDNN, *names)]
    install(tmp_path, "cuda-bindings", "12.9", {}, bindings, extras=["all"])
    extra = [f"{requires}; extra == 'cu12'"] if requires else []
    install(tmp_path, "numba-cuda", "0.30", {}, extra, extras=["cu12"])
    assert [each.kind for each in findings(tmp_path)] == ([] if requires else ["requirement"])


def test_extra_does_not_count_if_a_smaller_one_requires_its_wheels(tmp_path: Path) -> None:
    names = ("nvidia-cublas-cu12", "nvidia-nccl-cu12")
    for project in names:
        install(tmp_path, project, "1.0", {})
    small = [f"{name}; extra == 'cu12'" for name in names]
    large = [f"{name}; extra == 'all'" for name in (CUDNN, *names)]
    install(tmp_path, "example", "1.0", {}, [*small, *large], extras=["cu12", "all"])
    assert findings(tmp_path) == []


def test_extra_is_compared_by_its_normalized_name(tmp_path: Path) -> None:
    """The extra of numba-cuda requires an extra that is not whole, so it is not whole either."""
    names = ("nvidia-cublas-cu12", "nvidia-nccl-cu12")
    toolkit = [f"{name}; extra == 'cu_x'" for name in (*names, "nvidia-cufft-cu12")]
    install(tmp_path, "cuda-toolkit", "12.9", {}, toolkit, extras=["cu_x"])
    for project in names:
        install(tmp_path, project, "1.0", {})
    bindings = [f"{name}; extra == 'all'" for name in (CUDNN, *names)]
    install(tmp_path, "cuda-bindings", "12.9", {}, bindings, extras=["all"])
    extra = ["cuda-toolkit[cu-x]; extra == 'cu12'"]
    install(tmp_path, "numba-cuda", "0.30", {}, extra, extras=["cu12"])
    assert [each.kind for each in findings(tmp_path)] == ["requirement"]


@pytest.mark.parametrize(("installed", "count"), [(2, 1), (1, 0), (0, 0)])
def test_wheel_that_is_not_installed_counts_if_most_others_are(
    tmp_path: Path, installed: int, count: int
) -> None:
    """Users may have cuDNN of the system."""
    others = ["nvidia-cublas-cu12", "nvidia-nccl-cu12"]
    requires = [f"{name}; extra == 'cuda'" for name in (CUDNN, *others)]
    install(tmp_path, "example", "1.0", {}, requires, extras=["cuda"])
    for project in others[:installed]:
        install(tmp_path, project, "1.0", {})
    found = findings(tmp_path)
    assert [each.message for each in found] == [
        f"example 1.0 requires {CUDNN}, which is not installed"
    ] * count
    assert [each.hint for each in found] == [f"pip install {CUDNN}"] * count


# -- RECORD


@pytest.mark.parametrize("is_same_size", [False, True])
def test_file_of_two_packages_has_the_owner_of_its_bytes(
    tmp_path: Path, *, is_same_size: bool
) -> None:
    """NCCL for CUDA 12 was installed over that for CUDA 13, which torch requires."""
    older = library("libnccl.so.2", "ncclOldFunction")
    newer = library("libnccl.so.2", "ncclNewFunction" if is_same_size else "ncclNew")
    put(tmp_path, "nvidia-nccl-cu13", "2.29.7", {NCCL: newer})
    put(tmp_path, "nvidia-nccl-cu12", "2.29.3", {NCCL: older})
    install(tmp_path, "torch", "2.12", {}, ["nvidia-nccl-cu13==2.29.7"])
    (finding,) = findings(tmp_path)
    assert (finding.kind, finding.exit_code, finding.path) == ("shared-file", 1, NCCL)
    assert finding.message == (
        f"nvidia-nccl-cu12 2.29.3 and nvidia-nccl-cu13 2.29.7 both contain {NCCL}; installed is "
        "the one of nvidia-nccl-cu12 2.29.3"
    )
    assert finding.hint == (
        "pip uninstall --yes nvidia-nccl-cu12 && "
        "pip install --force-reinstall --no-deps nvidia-nccl-cu13==2.29.7"
    )


@pytest.mark.parametrize(
    ("required", "code", "hint"),
    [
        ([], 1, "pip uninstall --yes nvidia-nccl-cu13 && "),
        (["nvidia-nccl-cu13"], 1, "pip uninstall --yes nvidia-nccl-cu12 && "),
        (["nvidia-nccl-cu12", "nvidia-nccl-cu13"], 0, None),
    ],
    ids=["by none", "by one package", "by two packages"],
)
def test_file_of_two_packages_has_a_command_unless_others_require_both(
    tmp_path: Path, required: list[str], code: int, hint: str | None
) -> None:
    put(tmp_path, "nvidia-nccl-cu13", "2.29.7", {NCCL: library("libnccl.so.2", "new")})
    put(tmp_path, "nvidia-nccl-cu12", "2.29.3", {NCCL: library("libnccl.so.2", "older")})
    for number, project in enumerate(required):
        install(tmp_path, f"user{number}", "1.0", {}, [project])
    (finding,) = findings(tmp_path)
    assert (finding.kind, finding.exit_code) == ("shared-file", code)
    assert (finding.hint or "").startswith(hint or "")
    assert finding.message.endswith("required by user0 1.0, user1 1.0") == (not code)
    assert (finding.hint is None) == (not code)


@pytest.mark.parametrize(("symbol", "code"), [("old", 0), ("other", 1)])
def test_changed_file_with_the_symbols_of_its_release_is_a_warning(
    tmp_path: Path, symbol: str, code: int
) -> None:
    """The command for a missing run path changes a file with patchelf."""
    content = library(CUBLAS, symbol)
    put(tmp_path, "nvidia-cublas-cu12", "12.4.1.7", {f"{FOLDER}/{CUBLAS}": content})
    assert judged_environments.findings(tmp_path) == []
    changed = library(CUBLAS, symbol, runpath="$ORIGIN/../../longer")
    (tmp_path / FOLDER / CUBLAS).write_bytes(changed)
    (finding,) = judged_environments.findings(tmp_path)
    assert (finding.kind, finding.exit_code) == ("changed-file", code)
    assert finding.message.endswith("such as after patchelf") == (not code)


@pytest.mark.parametrize(("project", "code"), [("nvidia-nccl-cu12", 1), ("example", 0)])
def test_file_with_another_size_than_in_record(tmp_path: Path, project: str, code: int) -> None:
    put(tmp_path, project, "1.0", {NCCL: library("libnccl.so.2")})
    assert findings(tmp_path) == []
    content = elf(soname="libnccl.so.2", runpath="/a/longer/one")
    (tmp_path / NCCL).write_bytes(content)
    (finding,) = findings(tmp_path)
    assert (finding.kind, finding.exit_code) == ("changed-file", code)
    start = f"RECORD of {project} 1.0 has another size of {NCCL} ({len(content):,} bytes instead of"
    assert finding.message.startswith(start)
    assert (finding.hint is None) == (code == 0)


def test_thousands_of_extras_take_little_time(tmp_path: Path) -> None:
    extras = [f"e{number}" for number in range(4000)]
    requires = [f"p{extra}; extra == '{extra}'" for extra in extras]
    install(tmp_path, "example", "1.0", {}, requires, extras)
    environment = find_environment(tmp_path)
    assert environment is not None
    environment.add_package(tmp_path / "example-1.0.dist-info")
    package = environment.distributions["example"]
    assert extra_with(package, "pe7") == "e7"
    packages = environment.distributions
    assert calls(lambda: requirements_in_use(packages, ["pe7"])) < 500_000


# -- required packages that are not installed


@pytest.mark.parametrize(
    ("required", "hint"),
    [
        ("rapids-logger==0.2.*", "pip install 'rapids-logger==0.2.*'"),
        ("librapids-logger-cu12", "pip install librapids-logger-cu12"),
        ("rapids", None),
    ],
)
def test_library_with_the_name_of_an_absent_package_is_a_finding(
    tmp_path: Path, required: str, hint: str | None
) -> None:
    """`ldd` of libcudf.so without rapids-logger: `librapids_logger.so => not found`."""
    files = {"example/a.so": elf(needed=["librapids_logger.so"])}
    install(tmp_path, "example", "1.0", files, [required])
    assert [each.hint for each in findings(tmp_path)] == ([] if hint is None else [hint])
