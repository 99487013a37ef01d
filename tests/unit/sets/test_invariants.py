"""Tests of package set invariants.

A small real set satisfies all of them, and each change violates exactly one."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from support.small_sets import make_data, make_sets

from cudaredist.binaries.file_facts import DeviceImages
from cudaredist.features.facts import Entry, Facts, facts_from_bytes, facts_to_bytes
from cudaredist.formats.packageset import PackageSet, SetPackage
from cudaredist.sets.invariants.documents import (
    RUN_INVARIANTS,
    SET_INVARIANTS,
    Violation,
    check_run,
    check_set,
)
from cudaredist.sets.invariants.files import FILE_INVARIANTS, check_files, read_files
from cudaredist.store.cache import Cache
from cudaredist.store.facts_cache import FACTS_KIND

Document: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[Document], object]
Edit: TypeAlias = Callable[[Entry], Entry]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a data folder and a cache that no test changes."""
    root = tmp_path_factory.mktemp("small")
    make_data(root)
    return root


@pytest.fixture(scope="module")
def sets(folder: Path) -> dict[str, PackageSet]:
    return make_sets(folder, "--also", "cudnn=8.9.7")


@pytest.fixture(scope="module")
def linux_set(sets: dict[str, PackageSet]) -> PackageSet:
    return sets["linux-x86_64"]


def changed(package_set: PackageSet, change: Change) -> PackageSet:
    """Return a set with an edited document."""
    document = package_set.model_dump(mode="json", by_alias=True)
    change(document)
    return PackageSet.model_validate_json(json.dumps(document))


def names(violations: list[Violation]) -> set[str]:
    return {violation.invariant for violation in violations}


# -- valid sets


def test_built_set_satisfies_every_invariant(folder: Path, sets: dict[str, PackageSet]) -> None:
    cache = Cache(folder / "cache")
    for package_set in sets.values():
        files = read_files(package_set, cache)
        assert (files.unknown, files.refused) == ((), ())
        assert check_set(package_set) + check_files(files) == []
    assert check_run(list(sets.values())) == [[], []]


def test_small_set_has_every_kind_of_entry(linux_set: PackageSet) -> None:
    entries = linux_set.packages
    statuses = {entry.status for entry in entries.values()}
    assert statuses == {"available", "unsupported", "withheld", "foreign"}
    assert entries["cccl"].alias_of == "cuda_cccl"
    assert entries["cudnn_8_9"].pname == "cudnn"
    assert entries["libcublas"].outputs == ("out", "include", "lib", "static", "stubs")
    assert entries["libcublas"].propagates
    assert [part.attr for part in entries["libcusolver"].depends] == ["libcublas"]


# -- violations in one document


def at(path: str, **fields: object) -> Change:
    """Return a change of the fields of an object in the document."""
    return lambda document: reduce(getitem, path.split("."), document).update(fields)


def of(name: str, **fields: object) -> Change:
    """Return a change of a package's fields."""
    return at(f"packages.{name}", **fields)


def depending(attr: str, output: str = "out") -> Change:
    dependency = {"attr": attr, "output": output, "kind": "runtime"}
    return lambda document: document["packages"]["libcusolver"]["depends"].append(dependency)


def need(document: Document, package: str, soname: str) -> Document:
    needs: list[Document] = document["packages"][package]["needs"]
    return next(entry for entry in needs if entry["soname"] == soname)


def satisfied(package: str, soname: str, by: object) -> Change:
    return lambda document: need(document, package, soname).update(satisfied_by=by)


def provide(name: str, soname: str, **fields: object) -> Change:
    """Return a change of a package's library and of its index entry."""

    def change(document: Document) -> None:
        provides = document["packages"][name]["provides"]
        for library in provides:
            if library["soname"] == soname:
                library.update(fields)
        document["sonames"][soname] = [
            {key: library[key] for key in ("path", "output", "stub")} | {"attr": name}
            for library in provides
            if library["soname"] == soname
        ]

    return change


def also_provided(document: Document) -> None:
    """Add a library of cuBLAS to cuDNN."""
    soname, library = "libcublas.so.12", {"path": "lib/x.so", "output": "lib", "stub": False}
    document["packages"]["cudnn"]["provides"].append(library | {"soname": soname})
    document["sonames"][soname].append(library | {"attr": "cudnn"})


def unknown_owner(document: Document) -> None:
    by = {"external": "unknown"}
    for entry in document["packages"].values():
        for part in entry["needs"]:
            if part["soname"] == "libcuda.so.1":
                part["satisfied_by"] = by
    document["external"]["libcuda.so.1"]["owner"] = "unknown"


def coverage(**fields: object) -> Change:
    """Return a change of the coverage of one capability."""
    return at("packages.cudnn.coverage", **{"9.0": {"modules": 3, **fields}})


def contents(name: str, output: str, files: int) -> Change:
    return at(f"packages.{name}.contents", **{output: {"files": files, "bytes": 0}})


REASON = {"code": "marked-broken", "text": "it is", "subject": "x", "source": "x"}
CUDNN = {"code": "dependency-unavailable", "subject": "cudnn"}
BY_CUDNN = {"attr": "cudnn", "output": "lib"}
FOREIGN = REASON | {"code": "other-operating-system"}


def opening(by: Document | None, kind: str | None = None) -> Change:
    """Return a change that makes libcusolver open a library."""

    def change(document: Document) -> None:
        entry = document["packages"]["libcusolver"]
        load = {"soname": "libx.so.1", "by_path": "lib/libcusolver.so.11", "satisfied_by": by}
        entry["opens"] = [load]
        if by and kind:
            entry["depends"].append({**by, "kind": "dlopen", "is_optional": kind == "optional"})

    return change


SET_CHANGES: list[tuple[str, str, Change]] = [
    ("I1", "another attr", of("cuda_nvcc", attr="nvcc")),
    ("I1", "available with a reason", of("cuda_nvcc", reasons=[REASON])),
    ("I1", "available without an archive", of("cuda_nvcc", archive=None)),
    ("I1", "withheld without a reason", of("nvlsm", reasons=[])),
    ("I1", "alias of nothing", of("cccl", alias_of="nothing")),
    ("I1", "alias that differs", of("cccl", version="1.0")),
    ("I2", "another hash", at("packages.cudnn.archive", sha256="0" * 64)),
    ("I2", "another address", at("packages.cudnn.archive", url="https://example.org/x.tar.xz")),
    ("I2", "another platform", at("packages.cudnn.archive", platform="linux-sbsa")),
    ("I3", "wrong order", of("cudnn", outputs=["out", "lib", "include"])),
    ("I3", "without out", of("cudnn", outputs=["include", "lib"], propagates={})),
    ("I3", "outputs of a missing package", of("nvlsm", outputs=["out", "lib"])),
    ("I3", "undeclared contents", contents("cudnn", "static", 1)),
    ("I3", "an empty output", contents("cudnn", "lib", 0)),
    ("I3", "an undeclared library", provide("libcusolver", "libcusolver.so.11", output="doc")),
    ("I5", "undeclared", of("cudnn", propagates={"out": ["static"]})),
    ("I5", "an undeclared source", of("cudnn", propagates={"dev": ["lib"]})),
    ("I5", "itself", of("cudnn", propagates={"out": ["out"]})),
    ("I5", "twice", of("cudnn", propagates={"out": ["lib", "lib"]})),
    ("I5", "both ways", of("cudnn", propagates={"out": ["lib"], "lib": ["out"]})),
    ("I6", "no provider", satisfied("libcusolver", "libcublas.so.12", None)),
    ("I6", "wrong provider", satisfied("libcusolver", "libcublas.so.12", BY_CUDNN)),
    ("I6", "a stub only", provide("libcublas", "libcublas.so.12", stub=True)),
    ("I6", "an owner that is not listed", lambda document: document["external"].clear()),
    ("I6", "an unknown owner", unknown_owner),
    ("I8", "two packages", also_provided),
    ("I8", "not in the index", lambda document: document["sonames"].pop("libcublas.so.12")),
    ("I10", "on stubs", depending("libcublas", "stubs")),
    ("I10", "no run path to the driver", of("libcublas", driver_runpath=False)),
    ("I10", "the compatibility driver for some", of("libcublas", compat_runpath=True)),
    ("I11", "on a withheld package", depending("nvlsm")),
    ("I11", "on a missing package", depending("nothing")),
    ("I11", "on a missing output", depending("cudnn", "static")),
    ("I11", "another CUDA", of("cuda_nvcc", release="12.8.1")),
    ("I11", "built for another CUDA", of("cudnn", release="9.10.2-cuda13.0")),
    ("I11", "another variant", at("packages.cudnn.archive", cuda_variant="cuda13")),
    ("I12", "not supported", at("capabilities", default=["1.0"])),
    ("I12", "not requested", at("capabilities", requested=["7.5"])),
    ("I12", "other flags", at("capabilities", gencode=[])),
    ("I12", "other portable code", at("capabilities", forward_compat=False)),
    ("I12", "other LTO code", at("capabilities", lto_arches=["lto_90"])),
    ("I13", "beyond what nvcc accepts", at("host_compiler.gcc", selected=99)),
    ("I13", "not the default", at("host_compiler.gcc", default=13, selected=12, uses_default=True)),
    ("I13", "wrong flag", at("host_compiler.gcc", uses_default=True)),
    ("I13", "an older run-time library", at("host_compiler", cxx_runtime="default")),
    ("I14", "for Windows only", of("cuda_nvcc", platforms=["windows-x86_64"])),
    ("I14", "withheld under another name", of("nvlsm", pname="cudnn")),
    ("I14", "wrong reason for another operating system", of("nvlsm", reasons=[FOREIGN])),
    ("I14", "withheld for lack of a present one", of("nvlsm", reasons=[REASON | CUDNN])),
    ("I29", "no provider", opening(None)),
    ("I29", "not a dependency", opening({"attr": "cudnn", "output": "lib"})),
    ("I29", "only an optional dependency", opening({"attr": "cudnn", "output": "lib"}, "optional")),
    ("I26", "coverage of no capability", of("cuda_nvcc", coverage={})),
    ("I26", "coverage of a withheld package", of("nvlsm", coverage={"9.0": {"value": "unknown"}})),
    ("I26", "native without modules", coverage(value="native", files=1, all_files=1)),
    ("I26", "native in some files", coverage(value="native", files=1, all_files=2, native=1)),
    ("I26", "none with modules", coverage(value="none", all_files=1, ptx=1)),
    ("I26", "partial in all files", coverage(value="partial", files=1, all_files=1, lto=1)),
    ("I26", "host-only with files", coverage(value="host-only", all_files=1)),
    ("I26", "more modules than any GPU", coverage(value="ptx", files=1, all_files=1, ptx=9)),
]


@pytest.mark.parametrize(
    ("invariant", "change"),
    [pytest.param(name, change, id=f"{name} {what}") for name, what, change in SET_CHANGES],
)
def test_changed_document_violates_one_invariant(
    linux_set: PackageSet, invariant: str, change: Change
) -> None:
    assert names(check_set(changed(linux_set, change))) == {invariant}


def test_violation_names_package(linux_set: PackageSet) -> None:
    violations = check_set(changed(linux_set, satisfied("libcusolver", "libcublas.so.12", None)))
    assert [str(violation) for violation in violations] == [
        "I6 libcusolver: lib/libcusolver.so.11 needs libcublas.so.12, which has no provider"
    ]


# -- exceptions


@pytest.mark.parametrize("kind", ["optional", "required"])
def test_opened_library_may_be_required_or_optional(linux_set: PackageSet, kind: str) -> None:
    def change(document: Document) -> None:
        opening({"attr": "cudnn", "output": "lib"}, kind)(document)
        document["packages"]["libcusolver"]["opens"][0]["is_optional"] = kind == "optional"

    assert check_set(changed(linux_set, change)) == []


def unexamined(document: Document) -> None:
    for entry in document["packages"].values():
        entry.update(contents={}, outputs=["out"], propagates={}, collapsed=None)
        entry.update(provides=[], needs=[], depends=[])
    document.update(sonames={}, external={})


def broken_for_lack_of(code: str) -> Change:
    """Return a change that makes the provider of a needed library unavailable."""

    def change(document: Document) -> None:
        reason = REASON | {"subject": "libx.so.1", "code": code}
        document["packages"]["libcusolver"].update(status="broken", reasons=[reason])
        need(document, "libcusolver", "libc.so.6").update(soname="libcuda.so.1", satisfied_by=None)
        outside = {"owner": "unknown", "provider": None, "needed_by": ["libcusolver"]}
        document["external"]["libx.so.1"] = outside
        document["sonames"].pop("libcusolver.so.11")

    return change


def test_unexamined_packages_violate_nothing(folder: Path, linux_set: PackageSet) -> None:
    bare = changed(linux_set, unexamined)
    assert check_set(bare) == []
    assert check_files(read_files(bare, Cache(folder / "cache"))) == []


def test_unavailable_dependency_explains_broken_package(linux_set: PackageSet) -> None:
    assert check_set(changed(linux_set, broken_for_lack_of("dependency-unavailable"))) == []
    assert names(check_set(changed(linux_set, broken_for_lack_of("unresolved-library")))) == {"I6"}


def test_empty_output_of_broken_package_is_accepted(linux_set: PackageSet) -> None:
    def change(document: Document) -> None:
        reason = REASON | {"code": "outputs-empty"}
        document["packages"]["libcusolver"].update(status="broken", reasons=[reason])
        contents("libcusolver", "include", 0)(document)
        document["sonames"].pop("libcusolver.so.11")

    assert check_set(changed(linux_set, change)) == []


def test_name_of_link_is_a_provider(linux_set: PackageSet) -> None:
    def change(document: Document) -> None:
        need(document, "libcusolver", "libcublas.so.12").update(soname="libcublas.so")

    assert check_set(changed(linux_set, change)) == []


def test_archive_in_pool_has_address_of_pool(linux_set: PackageSet) -> None:
    path, url = "../../../pool/cudnn.tar.xz", "https://example.org/compute/pool/cudnn.tar.xz"
    pool = at("packages.cudnn.archive", relative_path=path, url=url)
    assert check_set(changed(linux_set, pool)) == []


def test_run_paths_on_windows_violate_invariant(linux_set: PackageSet) -> None:
    to_windows = at("platform", redist_system="windows-x86_64", elf_machine=None)
    assert "I10" in names(check_set(changed(linux_set, to_windows)))


# -- violations by archive files


def altered(package: str, edit: Edit, folder: Path, cache: Cache, linux_set: PackageSet) -> None:
    """Store the facts of a set in another cache, with one package's facts edited."""
    for entry in linux_set.packages.values():
        facts = known_facts(folder, entry)
        if facts is not None and entry.archive is not None:
            members = facts.members
            if entry.attr == package:
                members = tuple(edit(member) for member in members)
            data = facts_to_bytes(replace(facts, members=members))
            cache.put(FACTS_KIND, entry.archive.sha256, data)


def known_facts(folder: Path, entry: SetPackage) -> Facts | None:
    sha256 = entry.archive.sha256 if entry.archive else ""
    data = Cache(folder / "cache").get(FACTS_KIND, sha256)
    return None if data is None else facts_from_bytes(data)


def named(ending: str, name: str) -> Edit:
    return lambda member: replace(member, name=re.sub(f"{ending}$", name, member.name))


def with_binary(**fields: Any) -> Edit:
    """Return an edit of the facts of binaries."""
    return lambda m: replace(m, binary=replace(m.binary, **fields)) if m.binary else m


IMAGES = DeviceImages(sizes={"sm_90": (9000, 9000)}, modules={"sm_90": 3})


FILE_CHANGES: list[tuple[str, str, str, Edit]] = [
    ("I4", "in another output", "cudnn", named("include/cudnn.h", "share/doc/cudnn.h")),
    ("I4", "of another size", "cudnn", lambda member: replace(member, size=member.size + 1)),
    ("I4", "never installed", "cudnn", lambda member: replace(member, mode=0o4755)),
    ("I7", "one path", "cudnn", named("cudnn.h", "cublas_v2.h")),
    ("I9", "another machine", "libcusolver", with_binary(machine="aarch64")),
    ("I27", "device code", "libcusolver", with_binary(images=IMAGES)),
]


@pytest.mark.parametrize(
    ("invariant", "package", "edit"),
    [pytest.param(name, *rest, id=f"{name} {what}") for name, what, *rest in FILE_CHANGES],
)
def test_changed_files_violate_one_invariant(
    folder: Path, tmp_path: Path, linux_set: PackageSet, invariant: str, package: str, edit: Edit
) -> None:
    cache = Cache(tmp_path / "other")
    altered(package, edit, folder, cache, linux_set)
    assert names(check_files(read_files(linux_set, cache))) == {invariant}


def test_files_missing_from_cache_are_named(tmp_path: Path, linux_set: PackageSet) -> None:
    files = read_files(linux_set, Cache(tmp_path / "empty"))
    assert "libcublas" in files.unknown
    assert "cccl" not in files.unknown
    assert check_files(files) == []


def test_same_file_in_two_packages_is_accepted(
    folder: Path, tmp_path: Path, linux_set: PackageSet
) -> None:
    """cudnn and its second version share headers, and every archive has a LICENSE."""
    files = read_files(linux_set, Cache(folder / "cache"))
    trees = {package.entry.attr: package.tree.files for package in files.known}
    assert "include/cudnn.h" in trees["cudnn"].keys() & trees["cudnn_8_9"].keys()
    assert check_files(files) == []


def test_coverage_of_another_table_is_not_checked(
    folder: Path, tmp_path: Path, linux_set: PackageSet
) -> None:
    def change(document: Document) -> None:
        for entry in document["inputs"]:
            entry["sha256"] = "0" * 64

    altered("libcusolver", with_binary(images=IMAGES), folder, Cache(tmp_path / "other"), linux_set)
    files = read_files(changed(linux_set, change), Cache(tmp_path / "other"))
    assert files.rules is None
    assert check_files(files) == []


def test_set_of_earlier_version_violates_nothing(linux_set: PackageSet) -> None:
    def change(document: Document) -> None:
        for entry in document["packages"].values():
            entry.pop("coverage", None)

    assert check_set(changed(linux_set, change)) == []


# -- violations between documents


def for_an_older_patch(document: Document) -> None:
    at("platform", redist_system="linux-x86_64")(document)
    at("cuda", release="1.0.0")(document)


RUN_CHANGES: list[tuple[str, str, Change]] = [
    ("I15", "missing name", lambda document: document["packages"].pop("nvlsm")),
    ("I19", "no reason", of("libcusolver", reasons=[])),
    ("I25", "name of another set", for_an_older_patch),
]


@pytest.mark.parametrize(
    ("invariant", "change"),
    [pytest.param(name, change, id=f"{name} {what}") for name, what, change in RUN_CHANGES],
)
def test_inconsistent_sets_violate_one_invariant(
    sets: dict[str, PackageSet], invariant: str, change: Change
) -> None:
    first, second = sets["linux-x86_64"], changed(sets["linux-sbsa"], change)
    good, bad = check_run([first, second])
    assert (good, names(bad)) == ([], {invariant})


def test_sets_of_different_channels_are_not_compared(linux_set: PackageSet) -> None:
    def to_wheels(document: Document) -> None:
        document["channel"] = "wheels"
        document["packages"].pop("nvlsm")

    assert check_run([linux_set, changed(linux_set, to_wheels)]) == [[], []]


# -- the registries


def test_every_invariant_has_a_violating_test() -> None:
    assert {name for name, *_ in SET_CHANGES} == SET_INVARIANTS.keys()
    assert {name for name, *_ in FILE_CHANGES} == FILE_INVARIANTS.keys()
    assert {name for name, *_ in RUN_CHANGES} == RUN_INVARIANTS.keys()


def test_invariant_numbers_are_complete() -> None:
    """I16 belongs to diff, I17 and I18 to build, and I20 to I24 to the exporters.

    I25 to I27 and I29 were added later, and I28 needs the tables of symbols.
    """
    known = SET_INVARIANTS.keys() | FILE_INVARIANTS.keys() | RUN_INVARIANTS.keys()
    assert known == {f"I{number}" for number in (*range(1, 16), 19, 25, 26, 27, 29)}
