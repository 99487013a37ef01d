"""Which output each file of a package belongs to: a pure function of paths and kinds of file.

The rules are those of nixpkgs' packages with several outputs, as one table, first match wins. Two
more cases are decided here: Windows' libraries, and documentation in `doc/` and `docs/`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cudaredist.features.facts import Entry
from cudaredist.schema import OutputName

LibraryKind: TypeAlias = Literal["shared", "import", "static"]

_MENTIONED = re.compile(r"\.so(?:\.[0-9]+)*$")
_PROGRAM_SUFFIXES = (".exe", ".dll", ".bat", ".cmd", ".ps1", ".com")
_ANY_EXECUTE = 0o111
_DESCRIPTORS = 3
"""Objects that Microsoft's linker puts beside the import records of a DLL, as in nvJitLink.lib."""
_DEV_FOLDERS = ("lib/pkgconfig/", "share/pkgconfig/", "lib/cmake/", "share/aclocal/")
_DOC_FOLDERS = ("share/doc/", "share/gtk-doc/", "share/devhelp/", "doc/", "docs/")
_MANUAL_FOLDERS = ("share/man/", "share/info/")
_LIB_FOLDERS = ("lib/", "lib64/")


@dataclass(frozen=True, slots=True)
class Rule:
    """Files of one sort, and the outputs they go to: the first declared one."""

    outputs: tuple[OutputName, ...]
    is_last_resort_out: bool = False
    """Whether they go to `out` where none of the outputs is declared, or on to later rules."""


def library_kind(path: str, entry: Entry) -> LibraryKind | None:
    """Say what sort of library a file is, by its content, else by its name; None for all others."""
    binary = entry.binary
    name = path.rpartition("/")[2].lower()
    if binary is not None:
        match binary.kind:
            case "elf" | "pe":
                return "shared" if binary.is_shared else None
            case "ar" if name.endswith((".lib", ".a")):
                others = binary.objects - binary.imports
                return "import" if binary.imports and others <= _DESCRIPTORS else "static"
            case "script":
                return "shared" if _MENTIONED.search(name) else None
            case _:
                pass
    if name.endswith(".a"):
        return "static"
    if name.endswith(".lib"):
        return "static"
    return "shared" if _MENTIONED.search(name) or name.endswith(".dll") else None


def rules_for(path: str, kind: LibraryKind | None) -> Iterable[Rule]:  # noqa: C901 - one table
    """Yield the rules that a file matches, in order."""
    lower = path.lower()
    is_inside = "/" in path
    if path.startswith("include/"):
        yield Rule(("include", "dev"), is_last_resort_out=True)
    if path.startswith(_DEV_FOLDERS):
        yield Rule(("dev",), is_last_resort_out=True)
    if path.startswith(_DOC_FOLDERS):
        yield Rule(("doc",), is_last_resort_out=True)
    if path.startswith(_MANUAL_FOLDERS):
        yield Rule(("bin",), is_last_resort_out=True)
    if is_stub(path):
        yield Rule(("stubs",))
    if is_inside and (lower.endswith(".a") or (lower.endswith(".lib") and kind != "import")):
        yield Rule(("static",))
    if path.startswith(_LIB_FOLDERS):
        yield Rule(("lib",))
    if is_inside and lower.endswith((".pc", ".cmake")):
        yield Rule(("dev",))
    if path.startswith("bin/"):
        yield Rule(("bin",))
    if is_inside and lower.endswith(".whl"):
        yield Rule(("python",))
    if path.startswith("samples/"):
        yield Rule(("samples",))


def is_stub(path: str) -> bool:
    """Say whether a file stands in for one of the driver's: it lies in a folder of stubs."""
    folders = path.split("/")[:-1]
    return "stubs" in folders and folders[0] in {"stubs", "lib", "lib64"}


def declared_outputs(files: Mapping[str, Entry]) -> frozenset[OutputName]:
    """Return the outputs that a tree's files call for.

    `bin` needs a program below it, `lib` a shared or import library: a folder of that name alone is
    not enough. Each of the others needs a file that goes there.
    """
    rules = {
        path: list(rules_for(path, library_kind(path, entry))) for path, entry in files.items()
    }
    found: set[OutputName] = {"out"}
    for path, matched in rules.items():
        first = matched[0].outputs[0] if matched else "out"
        is_manual = path.startswith(_MANUAL_FOLDERS)
        if (first == "bin" and not is_manual and _is_program(path, files[path])) or (
            first == "lib" and library_kind(path, files[path]) in {"shared", "import"}
        ):
            found.add(first)
    for matched in rules.values():
        for rule in matched:
            wanted = rule.outputs[0]
            if wanted not in {"bin", "lib"}:
                found.add(wanted)
            if wanted in found or rule.is_last_resort_out:
                break
    return frozenset(found)


def place(path: str, kind: LibraryKind | None, declared: frozenset[OutputName]) -> OutputName:
    """Return the one output that a file belongs to."""
    for rule in rules_for(path, kind):
        for output in rule.outputs:
            if output in declared:
                return output
        if rule.is_last_resort_out:
            break
    return "out"


def _is_program(path: str, entry: Entry) -> bool:
    """Say whether a file can be run: by its mode, its content, or on Windows by its name."""
    if entry.mode & _ANY_EXECUTE or path.lower().endswith(_PROGRAM_SUFFIXES):
        return True
    return entry.binary is not None and entry.binary.kind in {"elf", "pe"}
