"""The headers that a package's headers can include."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePosixPath

from cudaredist.primitives import sha256_of
from cudaredist.tables.api.stub_headers import MISSING_HEADERS, STUBS

MAIN_HEADERS = ("vdpau/vdpau.h", "cuda.h", "cuda_runtime.h")
"""The main headers of CUDA, and one that `cudaVDPAU.h` does not include but requires.

nvcc includes `cuda_runtime.h` before each file.
"""
INCLUDE_FOLDERS = ("", "cccl")
"""The folders to search for headers, as nvcc does since CUDA 13."""
_RULES = 9
"""A higher number lets all headers be parsed again. Increase it if the parser gives other names."""
_INCLUDERS = 2
_includes = re.compile(
    rb"^[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:[<\"]([^>\"\n]*)[>\"])?", re.MULTILINE
)


class IncludeTree:
    """The headers of a package and of those that it includes, as one folder."""

    def __init__(self, headers: Mapping[str, bytes]) -> None:
        self.headers = {**MISSING_HEADERS, **headers}
        self._closures: dict[str, frozenset[str]] = {}
        self._hashes: dict[str, str] = {}
        self._included: dict[str, frozenset[str] | None] = {}

    def key(self, headers: Iterable[str]) -> str:
        """Return the hash of all that decides the names of headers."""
        paths: set[str] = set()
        for header in (*headers, *MAIN_HEADERS):
            paths |= self.closure(header)
        files = "".join(f"{path} {self._hash(path)}\n" for path in sorted(paths))
        names = " ".join(headers)
        return sha256_of(f"{_RULES} {_stubs()} {names}\n{files}".encode("utf-8", "replace"))

    def closure(self, header: str) -> frozenset[str]:
        """Return a header with all that it can include. If a macro names one, return all."""
        if header not in self._closures:
            self._closures[header] = frozenset(self._closure(header))
        return self._closures[header]

    def includers(self, header: str, candidates: Iterable[str]) -> list[str]:
        """Return some candidates that include a header."""
        including = (
            path for path in candidates if path != header and header in (self._direct(path) or ())
        )
        return list(islice(including, _INCLUDERS))

    def write(self, folder: Path, headers: Iterable[str]) -> list[Path]:
        """Write headers with all that they can include, and return the folders to search.

        The folder must be empty.
        """
        paths: set[str] = set()
        for header in (*headers, *MAIN_HEADERS):
            paths |= self.closure(header)
        contents = {path: self.headers[path] for path in sorted(paths)}
        own, stubs = folder / "headers", folder / "stubs"
        texts = {path: text.encode() for path, text in STUBS.items()}
        for root, files in ((own, contents), (stubs, texts)):
            root.mkdir()
            for path, data in files.items():
                target = root / path
                # A file can have the name of a folder in another package.
                if not target.is_dir() and not _has_file_above(target, root):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(data)
        return [*(own / name for name in INCLUDE_FOLDERS), stubs]

    def _closure(self, header: str) -> Collection[str]:
        closure: set[str] = set()
        pending = [header]
        while pending:
            path = pending.pop()
            if path not in closure and path in self.headers:
                closure.add(path)
                included = self._direct(path)
                if included is None:
                    return self.headers.keys()
                pending += included
        return closure

    def _direct(self, path: str) -> frozenset[str] | None:
        if path not in self._included:
            names = _includes.findall(self.headers[path])
            paths: frozenset[str] | None = None
            if all(names):
                texts = (name.decode("utf-8", "replace") for name in names)
                paths = frozenset(one for name in texts for one in self._candidates(path, name))
            self._included[path] = paths
        return self._included[path]

    def _candidates(self, path: str, name: str) -> Iterator[str]:
        """Yield the headers that a directive can mean."""
        for folder in (str(PurePosixPath(path).parent), *INCLUDE_FOLDERS):
            candidate = _normal(f"{folder}/{name}")
            if candidate in self.headers:
                yield candidate

    def _hash(self, path: str) -> str:
        if path not in self._hashes:
            self._hashes[path] = sha256_of(self.headers[path])
        return self._hashes[path]


def _stubs() -> str:
    return sha256_of(repr(sorted(STUBS.items())).encode())


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in {"", ".", ".."}:
            parts.append(part)
    return "/".join(parts)


def _has_file_above(path: Path, root: Path) -> bool:
    return any(
        folder.is_file() for folder in path.parents if folder != root and root in folder.parents
    )
