"""One index of the shipped data for the caches of all tests."""

import os
import subprocess
import sys
from collections.abc import Set as AbstractSet
from fcntl import LOCK_EX, flock
from pathlib import Path

from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.facts_index import Index
from cudaredist.store.index_database import (
    IndexDatabase,
    _identity,
    _open_file,
    _verified,
    index_key,
)
from cudaredist.store.index_schema import PARTS, Part


def share_index(folder: Path) -> None:
    """Let a cache begin with a link to the index of the shipped data.

    The first test that needs it makes it, in a process without the test's patches. If a test needs
    a part of the index, it gets a link to the index with all parts. Tests may replace the links,
    but must not write to the files.
    """
    find_index, add_parts, environment = (
        Cache.stored_index,
        IndexDatabase._add_parts,
        {**os.environ},
    )
    shipped = index_key(Store(shipped_data()))

    def link_to(name: str, cache: Cache) -> Path | None:
        """Link a cache to a shared index, `small` or `whole`."""
        shared = Cache(folder / name)
        with (folder / f"{name}.lock").open("wb") as lock:
            flock(lock, LOCK_EX)
            if find_index(shared, shipped) is None:
                make = [sys.executable, __file__, str(folder / name), name]
                subprocess.run(make, env=environment, cwd=folder, check=True)
        index = find_index(shared, shipped)
        assert index is not None
        path = cache.store_index(shipped, lambda link: link.hardlink_to(index))
        if path is not None:
            # The link changes a time of the file, so that each test would read all of it.
            _verified.add(_identity(path.stat()))
        return path

    def stored_index(self: Cache, key: str) -> Path | None:
        path = find_index(self, key)
        return link_to("small", self) if path is None and key == shipped else path

    def add_shared_parts(self: IndexDatabase, parts: AbstractSet[Part]) -> None:
        small, base = find_index(Cache(folder / "small"), shipped), self._store.base
        is_of_layers = base is not None and index_key(base) == shipped
        if self._path is None or small is None:
            add_parts(self, parts)
        elif is_same_file(self._path, small) and (path := link_to("whole", self._cache)):
            self._use(_open_file(path), path)
        elif is_of_layers:
            # To read the files of the upper layer again is faster than to add the parts.
            link_to("whole", whole := Cache(self._path.parent / "whole"))
            self._path = find_index(whole, shipped)
            self._change(self._replace_rows)
        else:
            add_parts(self, parts)

    Cache.stored_index = stored_index  # type: ignore[method-assign]
    IndexDatabase._add_parts = add_shared_parts  # type: ignore[method-assign]


def is_same_file(path: Path, other: Path) -> bool:
    """Return whether two paths are of one file. A test may have removed the first one."""
    return path.exists() and path.samefile(other)


def make_index(folder: Path, name: str) -> None:
    """Make a shared index, `small` or `whole`."""
    database = Index(Store(shipped_data()), Cache(folder)).database
    if name == "whole":
        database.add_parts(PARTS)


if __name__ == "__main__":
    make_index(Path(sys.argv[1]), sys.argv[2])
