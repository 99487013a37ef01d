"""Extracts: the data for tables, copied from an archive's members.

`include/crt/host_config.h` lists the host compilers that nvcc accepts,
`include/crt/math_functions.h` declares functions that glibc has too, and `bin/ptxas` lists the
known compute capabilities. Extracts are stored with the archive's facts, so tables never need the
archive again.
"""

import json
from collections.abc import Mapping

from cudaredist.binaries.file_content import FileContent
from cudaredist.errors import InvalidFileError
from cudaredist.features.facts import Extract
from cudaredist.formats.names import ExtractKind
from cudaredist.tables.gpus.ptxas import PTXAS_PATHS, read_ptxas
from cudaredist.tables.nvcc.glibc import MATH_HEADER_PATH
from cudaredist.tables.nvcc.preprocessor import HEADER_PATH

HEADER_LIMIT = 4 << 20
"""Limit for the size of a header in bytes. NVIDIA's headers have 10 to 400 kB."""

EXTRACT_PATHS: Mapping[ExtractKind, tuple[str, ...]] = {
    "host-config": (HEADER_PATH,),
    "math-functions": (MATH_HEADER_PATH,),
    "ptxas": PTXAS_PATHS,
}
"""Path endings of each file, one for each operating system."""

_KEPT = 3
"""Limit of files of one kind, because a hostile archive may have thousands."""


def extract_kind(name: str) -> ExtractKind | None:
    """Return the kind of a member that a table needs."""
    ends = ((kind, f"/{path}") for kind, paths in EXTRACT_PATHS.items() for path in paths)
    return next((kind for kind, end in ends if name.endswith(end)), None)


class Extracts:
    """Collects extracts from the members of an archive."""

    def __init__(self) -> None:
        self._extracts: list[Extract] = []

    def add(self, kind: ExtractKind, name: str, file: FileContent) -> None:
        """Add the extract of a member, and drop the deepest of too many."""
        text, problem = _read_ptxas(file) if kind == "ptxas" else _read_header(file)
        extract = Extract(kind=kind, name=name, sha256=file.sha256(), content=text, problem=problem)
        self._extracts.append(extract)
        same = [other for other in self._extracts if other.kind == kind]
        if len(same) > _KEPT:
            self._extracts.remove(max(same, key=_depth))

    def result(self) -> tuple[Extract, ...]:
        """Return the extracts, the topmost files first."""
        return tuple(sorted(self._extracts, key=_depth))


def _read_header(file: FileContent) -> tuple[str, str | None]:
    if file.size > HEADER_LIMIT:
        return "", f"larger than {HEADER_LIMIT:,} bytes"
    return file.read(0, file.size).decode("latin-1"), None


def _read_ptxas(file: FileContent) -> tuple[str, str | None]:
    try:
        families = read_ptxas(file)
    except InvalidFileError as error:
        return "", error.problems[0].message
    return json.dumps({str(name): family for name, family in families.items()}), None


def _depth(extract: Extract) -> tuple[int, str]:
    return len(extract.name), extract.name
