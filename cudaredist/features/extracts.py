"""Extracts: the data for tables, copied from an archive's stream.

`include/crt/host_config.h` lists the host compilers that nvcc accepts, and `bin/ptxas` the known
compute capabilities. Extracts are stored with the archive's facts, so tables never need the
archive again.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping

from cudaredist.errors import InvalidFileError
from cudaredist.features.facts import Extract, ExtractKind
from cudaredist.tables.gpus.ptxas import PTXAS_PATHS, PtxasScan
from cudaredist.tables.nvcc.preprocessor import HEADER_PATH

HEADER_LIMIT = 4 << 20
"""Limit for the size of a header in bytes. NVIDIA's headers have 10 to 20 kB."""

EXTRACT_PATHS: Mapping[ExtractKind, tuple[str, ...]] = {
    "host-config": (HEADER_PATH,),
    "ptxas": PTXAS_PATHS,
}
"""Path endings of each file, one for each operating system."""

_KEPT = 3
"""Limit of files of one kind, because a hostile archive may have thousands."""


class Extracts:
    """Collects extracts from the members of an archive."""

    def __init__(self) -> None:
        self._by_position: dict[int, Extract] = {}

    def following(
        self, position: int, name: str, readable: str, content: Iterator[bytes]
    ) -> Iterator[bytes]:
        """Return a member's content, collected if a table needs it.

        The caller must then read the content to its end.
        """
        for kind, paths in EXTRACT_PATHS.items():
            if name.endswith(tuple(f"/{path}" for path in paths)):
                return self._kept(position, kind, readable, content)
        return content

    def drop(self, position: int) -> None:
        """Remove the extract of a member that is not a file."""
        self._by_position.pop(position, None)

    def result(self) -> tuple[Extract, ...]:
        """Return the extracts, the topmost files first."""
        return tuple(sorted(self._by_position.values(), key=_depth))

    def _kept(
        self, position: int, kind: ExtractKind, readable: str, content: Iterator[bytes]
    ) -> Iterator[bytes]:
        digest, taker = hashlib.sha256(), _TAKERS[kind]()
        for chunk in content:
            digest.update(chunk)
            taker.feed(chunk)
            yield chunk
        text, problem = taker.finish()
        self._by_position[position] = Extract(
            kind=kind, name=readable, sha256=digest.hexdigest(), content=text, problem=problem
        )
        same = [at for at, extract in self._by_position.items() if extract.kind == kind]
        if len(same) > _KEPT:
            self.drop(max(same, key=lambda at: _depth(self._by_position[at])))


class _HeaderTaker:
    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, chunk: bytes) -> None:
        self._data += chunk[: HEADER_LIMIT + 1 - len(self._data)]

    def finish(self) -> tuple[str, str | None]:
        if len(self._data) > HEADER_LIMIT:
            return "", f"larger than {HEADER_LIMIT:,} bytes"
        return self._data.decode("latin-1"), None


class _PtxasTaker:
    def __init__(self) -> None:
        self._scan = PtxasScan()
        self.feed = self._scan.feed

    def finish(self) -> tuple[str, str | None]:
        try:
            families = self._scan.finish()
        except InvalidFileError as error:
            return "", error.problems[0].message
        return json.dumps({str(name): family for name, family in families.items()}), None


_TAKERS: Mapping[ExtractKind, Callable[[], _HeaderTaker | _PtxasTaker]] = {
    "host-config": _HeaderTaker,
    "ptxas": _PtxasTaker,
}


def _depth(extract: Extract) -> tuple[int, str]:
    return len(extract.name), extract.name
