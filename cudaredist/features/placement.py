"""Assignment of files to outputs, by path and kind.

The rules are those of nixpkgs' packages with several outputs, in one table. The first match
applies. Two rules are additional: Windows libraries, and documentation in `doc/` and `docs/`.

To change a rule, also raise `RULES` in `derive.py`: stored features have the outputs of files.
"""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from cudaredist.features.facts import Entry
from cudaredist.formats.names import OutputName

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


def preferred_outputs(path: str, kind: LibraryKind | None) -> tuple[OutputName, ...]:
    """Return the outputs that a file prefers, best first.

    Each rule has its outputs. If the last one is `out`, which every archive has, later rules do not
    apply.
    """
    lower = path.lower()
    is_inside = "/" in path
    table: tuple[tuple[tuple[OutputName, ...], bool], ...] = (
        (("include", "dev", "out"), path.startswith("include/")),
        (("dev", "out"), path.startswith(_DEV_FOLDERS)),
        (("doc", "out"), path.startswith(_DOC_FOLDERS)),
        (("bin", "out"), path.startswith(_MANUAL_FOLDERS)),
        (("stubs",), is_stub(path)),
        (("static",), is_inside and lower.endswith((".a", ".lib")) and kind != "import"),
        (("lib",), path.startswith(_LIB_FOLDERS)),
        (("dev",), is_inside and lower.endswith((".pc", ".cmake"))),
        (("bin",), path.startswith("bin/")),
        (("python",), is_inside and lower.endswith(".whl")),
        (("samples",), path.startswith("samples/")),
    )
    return tuple(output for outputs, matches in table if matches for output in outputs)


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
    preferred: dict[str, tuple[OutputName, ...]] = {}
    combinations: dict[tuple[OutputName, ...], tuple[OutputName, ...]] = {}
    declared: set[OutputName] = {"out"}
    for path, entry in files.items():
        kind = library_kind(path, entry)
        outputs = preferred_outputs(path, kind)
        # There may be a million files, but only a few combinations of outputs.
        preferred[path] = combinations.setdefault(outputs, outputs)
        is_program = path.startswith("bin/") and _is_program(path, entry)
        if outputs[:1] == ("bin",) and is_program:
            declared.add("bin")
        if outputs[:1] == ("lib",) and kind in {"shared", "import"}:
            declared.add("lib")
    for outputs in combinations:
        for output in outputs:
            if output not in {"bin", "lib"}:
                declared.add(output)
            if output in declared:
                break
    return {
        path: Placed(
            entry, next((output for output in preferred[path] if output in declared), "out")
        )
        for path, entry in files.items()
    }


def _is_program(path: str, entry: Entry) -> bool:
    """Check if a file is executable by mode, content or extension."""
    if entry.mode & _ANY_EXECUTE or path.lower().endswith(_PROGRAM_SUFFIXES):
        return True
    return entry.binary is not None and entry.binary.kind in {"elf", "pe"}
