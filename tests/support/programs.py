"""Programs, libraries and tables of symbols for audit, made to order."""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from conftest import REPOSITORY

from cudaredist.binaries.file_facts import Binary, CodeSection, DeviceImages
from cudaredist.binaries.symbols import SymbolTable, pack_groups
from cudaredist.environments.audit_program import audit_report
from cudaredist.environments.read_program import ProgramReader
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.library_policy import LibraryPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import Gpus
from cudaredist.grouping import grouped
from cudaredist.primitives import parse_label
from cudaredist.programs.declared import Declared
from cudaredist.programs.program import (
    AuditData,
    AuditRequirements,
    Catalog,
    KnownLibrary,
    ProgramFile,
    WheelMember,
)
from cudaredist.programs.report import AuditReport
from cudaredist.store.cache import Cache
from cudaredist.tables.gpus.coverage import CoverageRules
from cudaredist.tables.symbols.symbol_table import Column, Export, Provider, SymbolColumns

DATA = REPOSITORY / "data"


def undefined(*symbols: tuple[str, str, str]) -> SymbolTable:
    """Return a table of undefined symbols, each with its name, version and library."""
    groups = [
        (("undefined", "global", "func", "", version, library), [name.encode()])
        for name, version, library in symbols
    ]
    return SymbolTable(exports=0, imports=len(groups), packed=pack_groups(groups))


def defined(*names: str) -> SymbolTable:
    """Return a table of defined symbols."""
    properties = ("defined", "global", "func", "default", "section", "", "", "")
    groups = [(properties, [name.encode() for name in names])]
    return SymbolTable(exports=len(names), imports=0, packed=pack_groups(groups))


def file(
    path: str,
    *needed: str,
    soname: str | None = None,
    code: Mapping[str, int] | None = None,
    names: Iterable[str] = (),
    machine: str = "x86_64",
    kind: str = "elf",
    symbols: SymbolTable | None = None,
    installed: str | None = None,
    **facts: object,
) -> ProgramFile:
    """Return a binary of a program; `code` has the number of images by architecture."""
    values: dict[str, object] = {"is_shared": True, **facts}
    if code:
        modules = {" ".join(code): max(code.values())}
        section = CodeSection(
            section=".nv_fatbin", is_declared=True, counts=dict(code), kernels=modules
        )
        values["device_code"] = (section,)
        values["images"] = DeviceImages(sizes=dict.fromkeys(code, (9000, 9000)), modules=modules)
    binary = Binary(
        kind=kind,  # type: ignore[arg-type] # one of its kinds
        machine=machine,
        soname=soname,
        needed=needed,
        symbols=symbols or undefined(),
        **values,  # type: ignore[arg-type] # any other facts
    )
    own = {path.rpartition("/")[2], *names, *([soname] if soname else [])}
    member = None if installed is None else WheelMember("dist/x-1.0-py3-none-any.whl", installed)
    return ProgramFile(display_path=path, binary=binary, names=frozenset(own), member=member)


def known(
    soname: str,
    label: str,
    package: str = "libcublas",
    project: str = "nvidia-cublas-cu12",
    *,
    redist: str = "cuda",
    version: str | None = None,
    variant: str | None = None,
    platform: str = "linux-x86_64",
) -> KnownLibrary:
    """Return a library of a wheel; its version is the label unless another one is given."""
    name = project.replace("-", "_")
    version = version or f"{label}.7"
    return KnownLibrary(
        soname=soname,
        redist=redist,
        label=parse_label(label),
        package=package,
        platform=platform,
        variant=variant,
        archive=label,
        wheel=f"{project}/{name}-{version}-py3-none-manylinux_2_27_x86_64.whl",
    )


def cuda(*labels: str) -> list[KnownLibrary]:
    """Return the libraries of some CUDA releases: cuBLAS, cuRAND and the runtime."""
    found = []
    for label in labels:
        major = label.partition(".")[0]
        end = f"-cu{major}" if int(major) < 13 else ""
        runtime = "11.0" if major == "11" else major
        found += [
            known(f"libcublas.so.{major}", label, "libcublas", f"nvidia-cublas{end}"),
            known(f"libcublasLt.so.{major}", label, "libcublas", f"nvidia-cublas{end}"),
            known(f"libcudart.so.{runtime}", label, "cuda_cudart", f"nvidia-cuda-runtime{end}"),
            known("libcurand.so.10", label, "libcurand", f"nvidia-curand{end}", version="10.3.1"),
        ]
    return found


def cudnn(label: str, *majors: int) -> list[KnownLibrary]:
    """Return a release of cuDNN for some CUDA majors."""
    return [
        known(
            "libcudnn.so.9",
            label,
            "cudnn",
            f"nvidia-cudnn-cu{major}",
            redist="cudnn",
            variant=f"cuda{major}",
        )
        for major in majors
    ]


def table(soname: str, exports: Mapping[str, Sequence[str]], version: str = "") -> SymbolColumns:
    """Return a table of libcublas with the exports of each release."""
    columns = SymbolColumns(soname)
    provider = Provider("wheels", "cuda", "libcublas", "linux-x86_64", "", stub=False)
    for label, names in exports.items():
        columns.add(Column(provider, label, label), [Export(name, version) for name in names])
    return columns


@cache
def policy() -> LibraryPolicy:
    return read_own_file((DATA / "policy/libraries.json").read_bytes(), LibraryPolicy)


@cache
def coverage_rules() -> CoverageRules:
    return CoverageRules(read_own_file((DATA / "gpus.json").read_bytes(), Gpus))


def audit_data(
    libraries: Iterable[KnownLibrary] = (), tables: Mapping[str, SymbolColumns] | None = None
) -> AuditData:
    """Return some libraries and tables, and the GPUs of the shipped data."""
    return AuditData(
        drivers=DriverPolicy(schema_version=1, lowest={}),
        title="these libraries",
        channel="wheels",
        catalog=Catalog(libraries),
        policy=policy(),
        rules=coverage_rules(),
        tables=lambda _: tables or {},
        exporters=lambda _: grouped(
            (each.name, soname) for soname, one in (tables or {}).items() for each in one.exports
        ),
        device_code=lambda _: {},
    )


def judged(
    files: Sequence[ProgramFile],
    libraries: Iterable[KnownLibrary] = (),
    tables: Mapping[str, SymbolColumns] | None = None,
    required: AuditRequirements | None = None,
    declared: list[Declared] | None = None,
) -> AuditReport:
    """Judge a program by some libraries and tables, and by the GPUs of the shipped data."""
    program = ProgramReader(
        cache=Cache(Path(os.environ["CUDAREDIST_CACHE_DIR"])), files=[*files], declared=declared
    )
    return audit_report(program, audit_data(libraries, tables), required or AuditRequirements())
