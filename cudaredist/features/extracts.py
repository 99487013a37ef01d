"""The two files of an archive that tables are made from, kept while the archive passes.

`include/crt/host_config.h` says which host compilers nvcc accepts, `bin/ptxas` which compute
capabilities it knows. What is kept of them is stored with the archive's facts, so that no table
needs an archive again.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping

from cudaredist.errors import InvalidFileError
from cudaredist.features.facts import Extract, ExtractKind
from cudaredist.tables.gpus.ptxas import PTXAS_PATHS, PtxasScan
from cudaredist.tables.nvcc_compat.preprocessor import HEADER_PATH

HEADER_LIMIT = 4 << 20
"""Bytes of the largest header that is kept; NVIDIA's have 10 to 20 kB."""

EXTRACT_PATHS: Mapping[ExtractKind, tuple[str, ...]] = {
    "host-config": (HEADER_PATH,),
    "ptxas": PTXAS_PATHS,
}
"""How the path of each file ends, one for each operating system."""

_KEPT = 3
"""Files of one kind that are kept at most: a hostile archive may have thousands."""


class Extracts:
    """Collects extracts while the members of an archive pass."""

    def __init__(self) -> None:
        self._by_position: dict[int, Extract] = {}

    def following(
        self, position: int, name: str, readable: str, content: Iterator[bytes]
    ) -> Iterator[bytes]:
        """Return a member's content; if a table needs it, it is kept as it passes.

        The content must then be read to its end.
        """
        for kind, paths in EXTRACT_PATHS.items():
            if name.endswith(tuple(f"/{path}" for path in paths)):
                return self._kept(position, kind, readable, content)
        return content

    def drop(self, position: int) -> None:
        """Forget a member that turned out not to be a file."""
        self._by_position.pop(position, None)

    def found(self) -> tuple[Extract, ...]:
        """Return the extracts, those nearest to the top of the archive first."""
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
        self._kept = bytearray()

    def feed(self, chunk: bytes) -> None:
        self._kept += chunk[: HEADER_LIMIT + 1 - len(self._kept)]

    def finish(self) -> tuple[str, str | None]:
        if len(self._kept) > HEADER_LIMIT:
            return "", f"larger than {HEADER_LIMIT:,} bytes"
        return self._kept.decode("latin-1"), None


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
