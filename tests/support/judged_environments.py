"""audit of small environments with cuBLAS, judged by made releases."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cudaredist.environments.audit_program import audit_report
from cudaredist.environments.environment import JudgedEnvironment
from cudaredist.environments.load_all import load_all
from cudaredist.environments.read_program import ProgramReader
from cudaredist.programs.finding import Finding
from cudaredist.programs.program import AuditRequirements, KnownLibrary
from cudaredist.programs.report import LoadedFile
from cudaredist.store.cache import Cache
from cudaredist.tables.symbols.symbol_table import SymbolColumns
from support.environments import install, library
from support.programs import audit_data, cuda, cudnn, table

CUBLAS = "libcublas.so.12"
FOLDER = "nvidia/cublas/lib"
TO_CUBLAS = "$ORIGIN/../nvidia/cublas/lib"
LABELS = ("12.4.1", "12.5.1", "13.0.2")
TABLES = {CUBLAS: table(CUBLAS, {"12.4.1": ["old"], "12.5.1": ["old", "new"]}, f"@@{CUBLAS}")}


def judge(
    folder: Path,
    tables: Mapping[str, SymbolColumns] = TABLES,
    libraries: Sequence[KnownLibrary] = (*cuda(*LABELS), *cudnn("9.5.1", 12)),
) -> JudgedEnvironment:
    reader = ProgramReader(cache=Cache(folder.with_suffix(".cache")), paths=[folder])
    (environment,) = reader.read_all().environments
    data = audit_data(libraries, tables)
    return JudgedEnvironment(load_all(environment, data), data)


def loaded(folder: Path, soname: str = CUBLAS) -> list[LoadedFile]:
    return [each for each in judge(folder).report().libraries if each.soname == soname]


def findings(folder: Path) -> list[Finding]:
    return list(judge(folder).findings())


def kinds_of_report(folder: Path) -> set[str]:
    """Return the kinds of all findings, also of those about all files together."""
    reader = ProgramReader(cache=Cache(folder.with_suffix(".cache")), paths=[folder]).read_all()
    data = audit_data(cuda(*LABELS), TABLES)._replace(exporters=lambda _: {"old": [CUBLAS]})
    return {each.kind for each in audit_report(reader, data, AuditRequirements()).findings}


def put_cublas(site: Path, *exports: str, version: str = "12.4.1.7", name: str = CUBLAS) -> None:
    install(site, "nvidia-cublas-cu12", version, {f"{FOLDER}/{name}": library(CUBLAS, *exports)})


def put_example(site: Path, content: bytes, *requires: str) -> None:
    install(site, "example", "1.0", {"example/a.so": content}, requires)
