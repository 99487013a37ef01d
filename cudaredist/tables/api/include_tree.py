"""The headers that a package's headers can include."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath

from cudaredist.primitives import sha256_of
from cudaredist.tables.api.stub_headers import STUBS

INCLUDE_FOLDERS = ("", "cccl")
"""The folders to search for headers, as nvcc does since CUDA 13."""
_RULES = 1
"""A higher number lets all headers be parsed again. Increase it if the parser gives other names."""
_includes = re.compile(
    rb"^[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:[<\"]([^>\"\n]*)[>\"])?", re.MULTILINE
)


class IncludeTree:
    """The headers of a package and of those that it includes, as one folder."""

    def __init__(self, headers: Mapping[str, bytes]) -> None:
        self.headers = headers
        self._hashes: dict[str, str] = {}
        self._included: dict[str, frozenset[str] | None] = {}

    def key(self, header: str) -> str:
        """Return the hash of a header with all that it can include."""
        closure = self._closure(header)
        if closure is None:
            return sha256_of(f"{_RULES} {header} {self._whole}".encode())
        files = "".join(f"{path} {self._hash(path)}\n" for path in sorted(closure))
        return sha256_of(f"{_RULES} {_stubs()} {header}\n{files}".encode("utf-8", "replace"))

    def write(self, folder: Path) -> list[Path]:
        """Write the headers to an empty folder, and return the folders to search."""
        own, stubs = folder / "headers", folder / "stubs"
        texts = {path: text.encode() for path, text in STUBS.items()}
        for root, files in ((own, self.headers), (stubs, texts)):
            root.mkdir()
            for path, data in files.items():
                target = root / path
                # A file can have the name of a folder in another package.
                if not target.is_dir() and not _has_file_above(target, root):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(data)
        return [*(own / name for name in INCLUDE_FOLDERS), stubs]

    def _closure(self, header: str) -> frozenset[str] | None:
        """Return a header with all that it can include. None: a macro names one of them."""
        closure: set[str] = set()
        pending = [header]
        while pending:
            path = pending.pop()
            if path not in closure:
                closure.add(path)
                included = self._direct(path)
                if included is None:
                    return None
                pending += included
        return frozenset(closure)

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

    @cached_property
    def _whole(self) -> str:
        digest = hashlib.sha256(_stubs().encode())
        for path in sorted(self.headers):
            digest.update(f"{path} {self._hash(path)}\n".encode("utf-8", "replace"))
        return digest.hexdigest()


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
