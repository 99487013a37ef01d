"""The files that an earlier run of `check` found without defects.

To read all files with their models takes most of a run. A file is known by the hash of its
contents, so that a changed byte makes it a file to read again. What other findings need of a file
is recorded with it.
"""

from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from cudaredist.commands.check.findings import finding
from cudaredist.commands.check.report import Finding
from cudaredist.errors import CudaRedistError, ReadError, problems_of
from cudaredist.formats.registry import FileKind, parse_own_json, read_own_file
from cudaredist.jsontext import canonical_json, load_json
from cudaredist.primitives import sha256_of
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.documents import program_state
from cudaredist.store.files import read_file

if TYPE_CHECKING:
    from cudaredist.formats.base import OwnModel

Facts: TypeAlias = dict[str, Any]
"""What other findings need of a file, as JSON."""

_KIND = "folders/checked"
"""The kind of the record in the cache. Those of folders are removed after a month."""


class CheckedFiles:
    """The files without defects of a data folder, and their facts.

    The record of an earlier run is used if the program is the same.
    """

    def __init__(self, store: Store, cache: Cache) -> None:
        self._store, self._cache = store, cache
        self._key = sha256_of(repr((str(store.root.resolve()), store.channel)).encode())
        self._state = program_state()
        self._earlier = self._read()
        self._current: dict[str, Facts] = {}

    def _read(self) -> dict[str, Facts]:
        data = self._cache.get(_KIND, self._key) if self._state else None
        if data is None:
            return {}
        record = load_json(data)
        files: dict[str, Facts] = record["files"] if record["program"] == self._state else {}
        return files

    def facts(self, kind: str, sha256: str) -> Facts | None:
        """Return the facts of a file without defects, None if it must be read."""
        name = f"{kind} {sha256}"
        facts = self._earlier.get(name)
        if facts is not None:
            self._current[name] = facts
        return facts

    def add(self, kind: str, sha256: str, facts: Facts) -> Facts:
        """Record the facts of a file without defects, and return them."""
        self._current[f"{kind} {sha256}"] = facts
        return facts

    def remember(self, *, is_whole: bool) -> None:
        """Store the record for the next run, unless the cache cannot be written.

        If the run was about the whole data folder, files that it did not find are removed.
        """
        files = self._current if is_whole else self._earlier | self._current
        # Without a warning, because most runs need the cache for nothing else.
        can_write = self._state and self._cache.temporary_folder() is not None
        if can_write and files.keys() != self._earlier.keys():
            record = canonical_json({"program": self._state, "files": files})
            self._cache.put(_KIND, self._key, record)

    def read(
        self, path: Path, kind: FileKind, facts_of: Callable[[Any], Facts]
    ) -> Generator[Finding, None, Facts | None]:
        """Yield a file's defects, and return the facts of its model unless it is broken."""
        about = partial(finding, path=self._store.relative(path))
        try:
            data = read_file(path) or b""
            sha256 = sha256_of(data)
            known = self.facts(kind.name, sha256)
            if known is not None:
                return known
            document = parse_own_json(data)
            model: OwnModel = read_own_file(data, kind.model)
        except ReadError as error:
            yield about("unreadable", error.message)
            return None
        except CudaRedistError as error:
            yield about("invalid", f"not a valid {kind.name} file", details=problems_of(error))
            return None
        facts = facts_of(model)
        if canonical_json(document) == data:
            return self.add(kind.name, sha256, facts)
        message = "not in canonical form (sorted keys, two spaces, final newline)"
        yield about("not-canonical", message, hint="run the command that writes this file again")
        return facts
