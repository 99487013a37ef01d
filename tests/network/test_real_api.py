"""Compare the shipped tables of APIs with GCC and a plain reader: ten pairs of releases.

For each release, a plain reader lists the words of each preprocessed header that can be names, and
GCC compiles a line with each of them. The names of one release that the other lacks must be those
of `diff --api`. GCC compares the types of all functions and the fields of all structs, too. GCC and
the system's headers take no part in `update-api`.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import REPOSITORY, Run
from support.compiler_names import Compiler, declared, fields_of, functions_of_types
from support.optional_programs import needs

from cudaredist.archives.header_members import headers_of_wheel
from cudaredist.formats.api_tables import ApiForm, ApiTable
from cudaredist.primitives import parse_label
from cudaredist.sources.protocol import Settings
from cudaredist.sources.ranged_file import RangedFile
from cudaredist.sources.wheel_source import WheelSource
from cudaredist.tables.api.api_packages import INCLUDED_PACKAGES, PLATFORM, is_included
from cudaredist.tables.api.include_tree import INCLUDE_FOLDERS
from cudaredist.tables.api.stub_headers import MISSING_HEADERS
from cudaredist.tables.symbols.symbol_table import labels_in

pytestmark = pytest.mark.network

PAIRS = (
    ("cuda", "cuda_cudart", "11.8.0", "12.0.0"),
    ("cuda", "cuda_cudart", "12.9.1", "13.0.0"),
    ("cuda", "cuda_cupti", "12.9.1", "13.0.0"),
    ("cuda", "cuda_nvml_dev", "12.9.1", "13.0.0"),
    ("cuda", "libcublas", "12.9.1", "13.0.0"),
    ("cuda", "libcusolver", "12.9.1", "13.0.0"),
    ("cuda", "libcusparse", "11.8.0", "12.0.0"),
    ("cuda", "libnpp", "12.9.1", "13.0.0"),
    ("cudnn", "cudnn", "8.9.7", "9.1.1"),
    ("cutensor", "libcutensor", "1.7.0", "2.0.0"),
)
CUDA_OF_PRODUCTS, VARIANT = "12.9.1", "cuda12"
MANIFESTS = REPOSITORY / "data/manifests/wheels"
HEADERS_OF_CPP = {"cstdint": b"#include <stdint.h>\n"}
"""Headers of the C++ library that headers of C include."""


class Name(NamedTuple):
    """A name, with the struct of a field."""

    parent: str
    name: str


class Release(NamedTuple):
    """The headers of a package in one release, as GCC sees them."""

    label: str
    compiler: Compiler
    headers: list[str]
    """The headers of C that compile alone."""
    uncompiled: set[str]
    """Those that do not, because this machine has no OpenGL, or because they are for nvcc."""
    names: dict[Name, str]
    """Functions, types, variables, enumerators, macros and fields, with the header of each."""


@cache
def source() -> WheelSource:
    return WheelSource(Settings())


@cache
def headers_of(path: str, package: str) -> Mapping[str, bytes]:
    read = source().part_reader(path)
    assert read is not None
    headers = headers_of_wheel(RangedFile(read, 1 << 20), path)
    return {name: data for name, data in headers.items() if is_included(package, name)}


def include_folder(folder: Path, redist: str, package: str, label: str) -> Path:
    """Write the headers of a release with those of CUDA that they include."""
    folder.mkdir()
    of_cuda = label if redist == "cuda" else CUDA_OF_PRODUCTS
    releases = [("cuda", of_cuda, INCLUDED_PACKAGES), (redist, label, frozenset({package}))]
    contents: dict[str, bytes] = {**MISSING_HEADERS, **HEADERS_OF_CPP}
    for name, of_label, packages in releases:
        manifest = json.loads((MANIFESTS / name / f"redistrib_{of_label}.json").read_bytes())
        for one in sorted(packages & manifest.keys()):
            archive = manifest[one].get(PLATFORM, {})
            archive = archive.get(VARIANT, archive)
            if "relative_path" in archive:
                contents |= headers_of(archive["relative_path"], one)
    for path, data in contents.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder


def functions_at(table: ApiTable, redist: str, label: str) -> dict[str, dict[str, ApiForm] | None]:
    """Return the functions of each header in a release. None: the header does not parse as C."""
    (position,) = (
        position
        for position, one in enumerate(table.providers)
        if one.redist == redist and one.variant in {None, VARIANT}
    )
    labels = sorted(table.providers[position].releases, key=parse_label)

    def has(releases: tuple[str, ...]) -> bool:
        return not releases or label in labels_in(releases[position], labels)

    headers: dict[str, dict[str, ApiForm] | None] = {}
    for path, header in table.headers.items():
        if has(header.releases):
            forms = [f for group in header.groups if has(group.releases) for f in group.forms()]
            is_read = bool(forms) and not any(has(one.releases) for one in header.unread)
            functions = {form.name: form for form in forms if form.kind == "function"}
            headers[path] = functions if is_read else None
    return headers


def read_release(folder: Path, label: str, known: Mapping[str, object]) -> Release:
    """Return the names of the headers by GCC and a plain reader."""
    compiler = Compiler(folder / name for name in INCLUDE_FOLDERS)
    headers: list[str] = []
    names: dict[Name, str] = {}
    for header in sorted(known):
        text = compiler.text(header, folder / header)
        words = None if known[header] is None else declared(compiler, header, text.words)
        if words is None:
            continue
        headers.append(header)
        macros = {name for name in text.macros if not name.startswith("_")}
        names |= {Name("", name): header for name in words | macros}
        names |= {Name(*pair): header for pair in fields_of(compiler, header, text.fields)}
    return Release(label, compiler, headers, known.keys() - set(headers), names)


def missing_names(release: Release, other: Release) -> set[Name]:
    """Return the names of a release that the other one lacks."""
    candidates = {
        name: header
        for name, header in release.names.items()
        if name not in other.names and header not in other.uncompiled
    }
    # The header of another package can declare a name.
    for header in other.headers:
        listed = {
            name.name: "" for name, own in candidates.items() if own == header and not name.parent
        }
        still = declared(other.compiler, header, listed) or set()
        candidates = {
            name: own for name, own in candidates.items() if name.parent or name.name not in still
        }
    return {
        name
        for name in candidates
        # The fields of a missing struct are not listed.
        if not name.parent or Name("", name.parent) in other.names
    }


def reported_names(
    changes: Iterable[Mapping[str, str]],
    package: str,
    status: str,
    releases: tuple[Release, Release],
) -> set[Name]:
    """Return the names of a report whose headers compile in both releases.

    Nested fields do not count.
    """
    uncompiled = releases[0].uncompiled | releases[1].uncompiled
    names: set[Name] = set()
    for change in changes:
        is_listed = change["kind"] not in {"name", "header"} and change["package"] == package
        if not is_listed or change["status"] != status or change["header"] in uncompiled:
            continue
        full_name = change["name"]
        parent, _, name = full_name.rpartition(".")
        if "." not in parent:
            names.add(Name(parent, name))
    return names


def types_that_differ(
    releases: tuple[Release, Release],
    functions: tuple[Mapping[str, Mapping[str, ApiForm] | None], ...],
    changed: set[str],
) -> Iterator[str]:
    """Yield the functions of both releases on whose types g++ disagrees."""
    old, new = releases
    for header in sorted(set(old.headers) & set(new.headers)):
        before, after = (own[header] or {} for own in functions)
        names = sorted(before.keys() & after.keys())
        earlier = [(name, before[name].signature) for name in names]
        later = [(name, after[name].signature) for name in names]
        fits_old = functions_of_types(old.compiler, header, earlier)
        fits_new = functions_of_types(new.compiler, header, later)
        still = functions_of_types(new.compiler, header, earlier)
        if fits_old is None or fits_new is None or still is None:
            continue
        for name in names:
            # A function of C++ can have overloads.
            if name not in fits_old or name not in fits_new:
                yield f"{header}: {name} has another type in its release"
            elif (name in still) == (name in changed):
                yield f"{header}: {before[name].signature} and {after[name].signature}"


@needs("gcc", "g++")
@pytest.mark.parametrize(("redist", "package", "old", "new"), PAIRS)
def test_differences_of_a_pair_agree_with_compiler(
    run: Run, redist: str, package: str, old: str, new: str, tmp_path: Path
) -> None:
    data = (REPOSITORY / f"data/api/{package}.json").read_bytes()
    table = ApiTable.model_validate_json(data)
    functions = tuple(functions_at(table, redist, label) for label in (old, new))
    first, second = (
        read_release(include_folder(tmp_path / label, redist, package, label), label, known)
        for label, known in zip((old, new), functions, strict=True)
    )
    releases = first, second
    report = json.loads(run("diff", "--api", f"{redist}@{old}", f"{redist}@{new}", "--json").stdout)
    changes = report["changes"]
    removed, added = missing_names(first, second), missing_names(second, first)
    wrong = removed ^ reported_names(changes, package, "removed", releases)
    wrong_added = added ^ reported_names(changes, package, "added", releases)
    changed = {one["name"] for one in changes if one["status"] == "changed"}
    types = list(types_that_differ(releases, functions, changed))
    sys.stdout.write(
        f"{package} {old} {new}: {len(first.headers)} headers, {len(removed)} removed, "
        f"{len(added)} added, {len(changed)} changed\n"
    )
    assert first.headers
    assert removed
    assert (wrong, wrong_added, types) == (set(), set(), [])
