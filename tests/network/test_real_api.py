"""Compare the shipped tables of APIs with g++: three pairs of releases.

For each header, one program uses all names that the later release lacks, and one all names that it
adds. Each line of these programs must compile with one release and not with the other. All
functions are declared again with the signature of the tables, so that g++ compares the types. g++
and the system's headers take no part in `update-api`.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import REPOSITORY
from support.optional_programs import needs

from cudaredist.archives.header_members import headers_of_wheel
from cudaredist.formats.api_tables import ApiForm, ApiTable
from cudaredist.primitives import parse_label
from cudaredist.sources.protocol import Settings
from cudaredist.sources.ranged_file import RangedFile
from cudaredist.sources.wheel_source import WheelSource
from cudaredist.tables.api.api_columns import without_parameter_names
from cudaredist.tables.api.api_packages import INCLUDED_PACKAGES, PLATFORM, is_read
from cudaredist.tables.api.include_tree import INCLUDE_FOLDERS
from cudaredist.tables.api.stub_headers import MISSING_HEADERS
from cudaredist.tables.symbols.symbol_table import labels_in

pytestmark = pytest.mark.network

PAIRS = (
    ("cuda", "cuda_nvml_dev", "12.9.1", "13.0.0"),
    ("cuda", "libcublas", "12.9.1", "13.0.0"),
    ("cuda", "libcusolver", "12.9.1", "13.0.0"),
)
CUDA_OF_PRODUCTS, VARIANT = "12.9.1", "cuda12"
MANIFESTS = REPOSITORY / "data/manifests/wheels"


class Name(NamedTuple):
    kind: str
    parent: str
    name: str


Forms = dict[Name, ApiForm]


def table_of(package: str) -> ApiTable:
    data = (REPOSITORY / f"data/api/{package}.json").read_bytes()
    return ApiTable.model_validate_json(data)


def headers_at(table: ApiTable, redist: str, label: str) -> dict[str, Forms]:
    """Return the forms of each C header in a release. Other headers do not count."""
    (position,) = (
        position
        for position, one in enumerate(table.providers)
        if one.redist == redist and one.variant in {None, VARIANT}
    )
    labels = sorted(table.providers[position].releases, key=parse_label)

    def has(releases: tuple[str, ...]) -> bool:
        return not releases or label in labels_in(releases[position], labels)

    headers: dict[str, Forms] = {}
    for path, header in table.headers.items():
        if has(header.releases) and not any(has(one.releases) for one in header.unread):
            forms = (
                form for group in header.groups if has(group.releases) for form in group.forms()
            )
            headers[path] = {
                Name(form.kind, form.parent, form.name): form
                for form in forms
                if form.kind != "name"
            }
    return headers


@cache
def source() -> WheelSource:
    return WheelSource(Settings())


@cache
def headers_of(path: str, package: str) -> Mapping[str, bytes]:
    read = source().part_reader(path)
    assert read is not None
    return headers_of_wheel(RangedFile(read, 1 << 20), path, lambda name: is_read(package, name))


def include_folder(folder: Path, redist: str, package: str, label: str) -> Path:
    """Write the headers of a release with those of CUDA that they include."""
    folder.mkdir()
    of_cuda = label if redist == "cuda" else CUDA_OF_PRODUCTS
    releases = [("cuda", of_cuda, INCLUDED_PACKAGES), (redist, label, frozenset({package}))]
    contents: dict[str, bytes] = dict(MISSING_HEADERS)
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


def wrong_lines(include: Path, header: str, lines: Iterable[str]) -> set[int] | None:
    """Return the lines with an error, None if the header itself does not compile."""
    listed = [f'#include "{header}"', *lines]
    command = ["g++", "-x", "c++", "-std=gnu++17", "-fsyntax-only", "-fpermissive", "-w"]
    command += ["-fmax-errors=0", "-fno-diagnostics-show-caret"]
    command += [f"-I{include / name}" for name in INCLUDE_FOLDERS]
    text = "\n".join(listed) + "\n"
    result = subprocess.run(
        [*command, "-"], input=text, capture_output=True, text=True, check=False
    )
    errors = re.findall(r"^(.+?):(\d+):(?:\d+:)? (?:fatal )?error:", result.stderr, re.MULTILINE)
    if any(file != "<stdin>" or line == "1" for file, line in errors):
        return None
    return {int(line) - 1 for _, line in errors}


def uses(names: Iterable[Name]) -> list[str]:
    """Return a line of code that uses each name."""
    return [f"typedef {_type_with(name)} use_{number};" for number, name in enumerate(names, 1)]


def _type_with(name: Name) -> str:
    if name.kind == "field":
        return f"decltype((({name.parent} *)0)->{name.name})"
    if name.kind == "function":
        return f"decltype(&{name.name})"
    return f"decltype({name.name})" if name.kind == "enumerator" else name.name


def macros_defined(include: Path, header: str, names: Iterable[Name]) -> set[str]:
    command = [
        "g++",
        "-x",
        "c++",
        "-E",
        "-dM",
        *(f"-I{include / name}" for name in INCLUDE_FOLDERS),
    ]
    text = f'#include "{header}"\n'
    result = subprocess.run(
        [*command, "-"], input=text, capture_output=True, text=True, check=False
    )
    defined = set(re.findall(r"^#define (\w+)", result.stdout, re.MULTILINE))
    return {one.name for one in names if one.name in defined}


def differences(here: Path, there: Path, header: str, only: Iterable[Name]) -> Iterator[str]:
    """Yield the names of only one release on which g++ disagrees."""
    plain = [name for name in only if name.kind != "macro"]
    macros = [name for name in only if name.kind == "macro"]
    wrong_here = wrong_lines(here, header, uses(plain))
    wrong_there = wrong_lines(there, header, uses(plain))
    assert wrong_here is not None
    assert wrong_there is not None
    yield from (f"{plain[line - 1]} does not compile in its release" for line in wrong_here)
    compiling = set(range(1, len(plain) + 1)) - wrong_there
    yield from (f"{plain[line - 1]} compiles in the other release" for line in compiling)
    defined = macros_defined(here, header, macros)
    yield from (f"{one} is not defined" for one in macros if one.name not in defined)
    yield from (f"{one} is defined elsewhere" for one in macros_defined(there, header, macros))


def names_in_headers(headers: Mapping[str, Forms]) -> frozenset[str]:
    """Return all names but fields. A name can move to another header or become another kind."""
    return frozenset(
        name.name for forms in headers.values() for name in forms if name.kind != "field"
    )


def redeclared(forms: Iterable[ApiForm]) -> list[str]:
    return [f'extern "C" {form.signature};' for form in forms]


def types_that_differ(
    folders: tuple[Path, Path], header: str, before: Forms, after: Forms
) -> Iterator[str]:
    """Yield the functions of both releases on whose types g++ disagrees."""
    names = [name for name in sorted(before.keys() & after.keys()) if name.kind == "function"]
    of_c: set[Name] = set(names)
    for folder, forms in zip(folders, (before, after), strict=True):
        listed = [forms[name] for name in names]
        conflicts = wrong_lines(folder, header, redeclared(listed)) or set()
        inline = wrong_lines(folder, header, [f"{one.signature};" for one in listed]) or set()
        # Functions of C++, which are inline, have other types as overloads.
        of_c -= {names[line - 1] for line in conflicts - inline}
        yield from (f"{listed[line - 1]} conflicts with its header" for line in conflicts & inline)
    both = [(before[name], after[name]) for name in names if name in of_c]
    conflicts = wrong_lines(folders[1], header, redeclared(one for one, _ in both)) or set()
    for line, (earlier, later) in enumerate(both, 1):
        is_changed = type_of(earlier) != type_of(later)
        if is_changed != (line in conflicts):
            yield f"{earlier.signature} and {later.signature}"


def type_of(form: ApiForm) -> str:
    return without_parameter_names(form.signature.replace(f"{form.name}(", " (", 1))


@needs("g++")
@pytest.mark.parametrize(("redist", "package", "old", "new"), PAIRS)
def test_differences_of_a_pair_agree_with_compiler(
    redist: str, package: str, old: str, new: str, tmp_path: Path
) -> None:
    table = table_of(package)
    before, after = headers_at(table, redist, old), headers_at(table, redist, new)
    known_before, known_after = names_in_headers(before), names_in_headers(after)
    folders = (
        include_folder(tmp_path / "old", redist, package, old),
        include_folder(tmp_path / "new", redist, package, new),
    )
    wrong: list[str] = []
    compiled = removed = added = 0
    for header in sorted(before.keys() & after.keys()):
        if any(wrong_lines(folder, header, ()) is None for folder in folders):
            continue  # This machine has no OpenGL or EGL, or the header is only for nvcc.
        compiled += 1
        names, later = before[header].keys(), after[header].keys()
        gone = [one for one in sorted(names - later) if one.name not in known_after]
        new_names = [one for one in sorted(later - names) if one.name not in known_before]
        wrong += differences(folders[0], folders[1], header, gone)
        wrong += differences(folders[1], folders[0], header, new_names)
        wrong += types_that_differ(folders, header, before[header], after[header])
        removed, added = removed + len(gone), added + len(new_names)
    sys.stdout.write(
        f"{package} {old} {new}: {compiled} headers, {removed} removed, {added} added\n"
    )
    assert compiled
    assert not wrong, wrong[:20]
    assert removed
