"""Which files of a source see a declaration."""

import pytest

from cudaredist.source_code import declarations
from cudaredist.source_code.declarations import Declarations, Includes, includes_of
from cudaredist.source_code.read_code import CodeFile

SHIM = 'void* cuFree;\n#include "types.h"\n'
FILES = {
    "shim/shim.h": SHIM,
    "shim/types.h": "",
    "all.h": '# include "shim/shim.h"\n',
    "a.cpp": '#include "all.h"\n#include <helper.h>\n',
    "helper.h": "",
    "b.cpp": '#include "other.h"\n',
    "other.h": '// #include "shim.h"\n',
    "c.cu": '#import "a.cpp"\n',
}


def declared(files: dict[str, str], path: str, *declaring: str) -> Declarations:
    """Return the declarations of the name cuFree in some of the files."""
    includes = Includes()
    for name, text in files.items():
        includes.add(name, includes_of(text.encode()))
    return Declarations(
        [CodeFile(path=one, own={"cuFree": 1}) for one in (path, *declaring)], includes
    )


def test_files_that_include_a_declaration_see_it() -> None:
    found = declared(FILES, "shim/shim.h")
    seeing = {path for path in FILES if found.releases("cuFree", path)}
    # `helper.h` is included after the declaration, and `types.h` in it.
    assert seeing == {"shim/shim.h", "shim/types.h", "all.h", "a.cpp", "helper.h", "c.cu"}
    assert found.releases("cuMalloc", "a.cpp") == 0


def test_files_that_include_each_other_see_one_declaration() -> None:
    files = {"a.h": '#include "b.h"', "b.h": '#include "a.h"', "c.h": ""}
    found = declared(files, "a.h")
    assert [found.releases("cuFree", path) for path in files] == [1, 1, 0]


def test_every_file_sees_declarations_above_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declarations, "_WORK_LIMIT", 0)
    found = declared({"a.c": "", "b.c": "", "c.c": ""}, "a.c", "b.c")
    assert [found.releases("cuFree", path) for path in ("a.c", "b.c", "c.c")] == [1, 1, 1]
