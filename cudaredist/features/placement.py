"""Assignment of files to outputs, by path and kind.

The rules are those of nixpkgs' packages with several outputs, in one table. The first match
applies. Two rules are additional: Windows libraries, and documentation in `doc/` and `docs/`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from cudaredist.features.facts import Entry
from cudaredist.formats.base import OutputName

LibraryKind: TypeAlias = Literal["shared", "import", "static"]

_is_shared_name = re.compile(r".*\.so(?:\.[0-9]+)*").fullmatch
_PROGRAM_SUFFIXES = (".exe", ".dll", ".bat", ".cmd", ".ps1", ".com")
_ANY_EXECUTE = 0o111
_DESCRIPTORS = 3
"""Objects that Microsoft's linker adds to the import records of a DLL, as in nvJitLink.lib."""
_DEV_FOLDERS = ("lib/pkgconfig/", "share/pkgconfig/", "lib/cmake/", "share/aclocal/")
_DOC_FOLDERS = ("share/doc/", "share/gtk-doc/", "share/devhelp/", "doc/", "docs/")
_MANUAL_FOLDERS = ("share/man/", "share/info/")
_LIB_FOLDERS = ("lib/", "lib64/")


@dataclass(frozen=True, slots=True)
class Rule:
    """The preferred outputs for one kind of file, best first."""

    outputs: tuple[OutputName, ...]
    is_last_resort_out: bool = False
    """Whether the files go to `out` if no output is declared. If not, later rules apply."""


def library_kind(path: str, entry: Entry) -> LibraryKind | None:
    """Return the kind of a library by content, else by name."""
    binary = entry.binary
    name = path.rpartition("/")[2].lower()
    if binary is not None and binary.kind in {"elf", "pe"}:
        return "shared" if binary.is_shared else None
    if name.endswith(".lib") and binary is not None and binary.imports:
        others = binary.objects - binary.imports
        return "import" if others <= _DESCRIPTORS else "static"
    if name.endswith((".a", ".lib")):
        return "static"
    return "shared" if _is_shared_name(name) or name.endswith(".dll") else None


_INCLUDE = Rule(("include", "dev"), is_last_resort_out=True)
_DEV = Rule(("dev",), is_last_resort_out=True)
_DOC = Rule(("doc",), is_last_resort_out=True)
_MANUAL = Rule(("bin",), is_last_resort_out=True)
_STUBS, _STATIC = Rule(("stubs",)), Rule(("static",))
_LIB, _LATE_DEV = Rule(("lib",)), Rule(("dev",))
_BIN, _PYTHON, _SAMPLES = Rule(("bin",)), Rule(("python",)), Rule(("samples",))


def rules_for(path: str, kind: LibraryKind | None) -> list[Rule]:
    """Return the rules that a file matches, in order."""
    lower = path.lower()
    is_inside = "/" in path
    table = (
        (_INCLUDE, path.startswith("include/")),
        (_DEV, path.startswith(_DEV_FOLDERS)),
        (_DOC, path.startswith(_DOC_FOLDERS)),
        (_MANUAL, path.startswith(_MANUAL_FOLDERS)),
        (_STUBS, is_stub(path)),
        (_STATIC, is_inside and lower.endswith((".a", ".lib")) and kind != "import"),
        (_LIB, path.startswith(_LIB_FOLDERS)),
        (_LATE_DEV, is_inside and lower.endswith((".pc", ".cmake"))),
        (_BIN, path.startswith("bin/")),
        (_PYTHON, is_inside and lower.endswith(".whl")),
        (_SAMPLES, path.startswith("samples/")),
    )
    return [rule for rule, matches in table if matches]


def is_stub(path: str) -> bool:
    """Check if a file is a stub (in a stubs folder)."""
    folders = path.split("/")[:-1]
    return "stubs" in folders and folders[0] in {"stubs", "lib", "lib64"}


class Placed(NamedTuple):
    """A file of a tree and the output it belongs to."""

    entry: Entry
    output: OutputName


def place_all(files: Mapping[str, Entry]) -> dict[str, Placed]:
    """Return each file with its first declared output, else `out`.

    An output is declared if some file requires it: `bin` requires a program in that folder, `lib` a
    shared or import library, and any other output a file assigned to it. A folder of the same name
    is not enough.
    """
    rules: dict[str, tuple[Rule, ...]] = {}
    combinations: dict[tuple[Rule, ...], tuple[Rule, ...]] = {}
    declared: set[OutputName] = {"out"}
    for path, entry in files.items():
        kind = library_kind(path, entry)
        matched = tuple(rules_for(path, kind))
        # There may be a million files, but only a few combinations of rules.
        rules[path] = combinations.setdefault(matched, matched)
        first = matched[0].outputs[0] if matched else "out"
        if first == "bin" and path.startswith("bin/"):
            counts = _is_program(path, entry)
        else:
            counts = first == "lib" and kind in {"shared", "import"}
        if counts:
            declared.add(first)
    for matched in combinations:
        for rule in matched:
            output = rule.outputs[0]
            if output not in {"bin", "lib"}:
                declared.add(output)
            if output in declared or rule.is_last_resort_out:
                break
    return {path: Placed(entry, _first(rules[path], declared)) for path, entry in files.items()}


def _first(rules: Sequence[Rule], declared: set[OutputName]) -> OutputName:
    for rule in rules:
        for output in rule.outputs:
            if output in declared:
                return output
        if rule.is_last_resort_out:
            break
    return "out"


def _is_program(path: str, entry: Entry) -> bool:
    """Check if a file is executable by mode, content or extension."""
    if entry.mode & _ANY_EXECUTE or path.lower().endswith(_PROGRAM_SUFFIXES):
        return True
    return entry.binary is not None and entry.binary.kind in {"elf", "pe"}
