"""Properties of audit: any text of packages, files and systems ends in a report."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import examples
from hypothesis import example, given
from hypothesis import strategies as st
from support.environments import install, library, user
from support.programs import audit_data, cuda, cudnn, table

from cudaredist.commands.audit.text import audit_text
from cudaredist.environments.audit_program import audit_report
from cudaredist.environments.read_program import ProgramReader
from cudaredist.programs.program import AuditRequirements
from cudaredist.programs.report import AuditReport
from cudaredist.store.cache import Cache

CUBLAS = "libcublas.so.12"
DATA = audit_data(
    [*cuda("12.4.1", "13.0.2"), *cudnn("9.5.1", 12)],
    {CUBLAS: table(CUBLAS, {"12.4.1": ["old"]}, f"@@{CUBLAS}")},
)
ODD = ["\0", "\n", "\r", "\x85", "\u202e", "é", "\ud800", '"', "'", ",", ";", "(", "[", "\\", "#"]
NAMES = ["nvidia-cublas-cu12", "torch", "example", "a" * 300, "-", ""]
VERSIONS = ["==12.4.1.7", ">=1", "~=1", "===x", "<", "!=1.*", "@ https://a/b", "*"]
MARKERS = [
    *('os_name ~= "posix"', 'extra ~= "1"', 'extra == "gpu"', "python_version < '4'"),
    *('sys_platform == "linux" and', "((((", "'a' in extra", 'platform_machine > "x"'),
]


def pieces(*known: str) -> st.SearchStrategy[str]:
    """Return known parts, odd characters and other text in any order."""
    part = st.one_of(st.sampled_from([*known, *ODD]), st.text(max_size=5))
    return st.lists(part, max_size=12).map("".join)


def mixed(*known: str) -> st.SearchStrategy[bytes]:
    """Return bytes: lines of known parts, or anything."""
    lines = st.lists(pieces(*known), max_size=8).map("\n".join)
    return st.one_of(lines.map(lambda text: text.encode(errors="surrogatepass")), st.binary())


@pytest.fixture(scope="module")
def cache() -> Iterator[Cache]:
    folder = tempfile.mkdtemp()
    yield Cache(Path(folder))
    shutil.rmtree(folder)


def audited(root: Path, cache: Cache) -> AuditReport:
    """Return the report, and check that it can be printed."""
    program = ProgramReader(cache=cache, paths=[root]).read_all()
    assert program.errors == []
    report = audit_report(program, DATA, AuditRequirements())
    text = "\n".join(audit_text(report))
    text.encode()
    assert json.loads(report.model_dump_json())["exit_code"] == report.exit_code
    return report


def put_user(site: Path, runpath: str = "$ORIGIN/../nvidia/cublas/lib") -> None:
    folder = "nvidia/cublas/lib"
    install(site, "nvidia-cublas-cu12", "12.4.1.7", {f"{folder}/{CUBLAS}": library(CUBLAS, "old")})
    install(site, "example", "1.0", {"example/a.so": user(CUBLAS, "old", runpath=runpath)})


@given(
    metadata=mixed("Name: ", "Version: 1", "Requires-Dist: ", *NAMES, *VERSIONS, "; ", *MARKERS),
    record=mixed("example/a.so", ",sha256=", ",1216", ",,", "/", "..", '"a\nb"', f",,{'9' * 5000}"),
    installer=mixed("pip", "uv", "conda"),
)
@example(metadata=b"", record=b"example/a.so,," + b"9" * 5000, installer=b"")
@examples(0.3)
def test_any_metadata_ends_in_a_report(
    cache: Cache, metadata: bytes, record: bytes, installer: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        put_user(Path(folder))
        info = Path(folder) / "example-1.0.dist-info"
        (info / "METADATA").write_bytes(b"Name: example\nVersion: 1.0\n" + metadata)
        (info / "RECORD").write_bytes(record)
        (info / "INSTALLER").write_bytes(installer)
        report = audited(Path(folder), cache)
        assert {each.soname: each.found_by for each in report.environments[0].libraries} == {
            CUBLAS: "run-path"
        }


@given(
    requirement=st.sampled_from(NAMES),
    version=st.sampled_from(VERSIONS),
    marker=st.one_of(st.sampled_from(MARKERS), pieces(*MARKERS, " and ", " or ")),
)
@example(requirement="nvidia-cublas-cu12", version="===x", marker='extra == "gpu"')
@examples(0.5)
def test_any_marker_ends_in_a_report(
    cache: Cache, requirement: str, version: str, marker: str
) -> None:
    line = f"{requirement}{version}; {marker}".replace("\n", " ").replace("\r", " ")
    with tempfile.TemporaryDirectory() as folder:
        put_user(Path(folder))
        (Path(folder) / "example-1.0.dist-info" / "METADATA").write_bytes(
            f"Name: example\nVersion: 1.0\nProvides-Extra: gpu\nRequires-Dist: {line}\n".encode(
                errors="surrogatepass"
            )
        )
        assert audited(Path(folder), cache).exit_code in {0, 1}


@given(module=mixed("_preload_cuda_deps", CUBLAS, "libcublas.so.*[0-9]", "def ", "import "))
@examples(0.3)
def test_any_module_ends_in_a_report(cache: Cache, module: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        put_user(Path(folder), runpath="")
        install(Path(folder), "torch", "2.9", {"torch/__init__.py": module})
        audited(Path(folder), cache)


@given(runpath=pieces("$ORIGIN", "${ORIGIN}", "/", "..", ":", "../nvidia/cublas/lib", "x" * 300))
@examples(0.5)
def test_any_run_path_ends_in_a_report(cache: Cache, runpath: str) -> None:
    name = runpath.encode(errors="ignore").decode().replace("\0", "")
    with tempfile.TemporaryDirectory() as folder:
        put_user(Path(folder), runpath=name)
        audited(Path(folder), cache)


@given(
    lines=mixed("include ", "/", ".", "*", "**", "[", "?", "/usr/lib", "conf.d/*.conf", "../" * 99),
    included=mixed("include /etc/ld.so.conf", "/opt/cuda", "hwcap 0 x"),
)
@examples(0.3)
def test_any_configuration_of_the_loader_ends_in_a_report(
    cache: Cache, lines: bytes, included: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        put_user(root / "usr" / "lib" / "python3" / "dist-packages")
        (root / "etc" / "conf.d").mkdir(parents=True)
        (root / "etc" / "ld.so.conf").write_bytes(lines)
        (root / "etc" / "conf.d" / "a.conf").write_bytes(included)
        (environment,) = audited(root, cache).environments
        assert environment.kind == "root file system"
