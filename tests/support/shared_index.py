"""One index of the shipped data for the caches of all tests."""

import os
import subprocess
import sys
from fcntl import LOCK_EX, flock
from pathlib import Path

from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.facts_index import Index
from cudaredist.store.index_database import _identity, _verified, index_key
from cudaredist.store.index_schema import PARTS


def share_index(folder: Path) -> None:
    """Let a cache begin with a link to the index of the shipped data.

    The first test that needs it makes it, in a process without the test's patches. Tests may
    replace the link, but must not write to the file.
    """
    find_index, environment, shared = Cache.stored_index, dict(os.environ), Cache(folder)
    shipped = index_key(Store(shipped_data()))

    def stored_index(self: Cache, key: str) -> Path | None:
        path = find_index(self, key)
        if path is not None or key != shipped:
            return path
        with (folder / "lock").open("wb") as lock:
            flock(lock, LOCK_EX)
            if find_index(shared, key) is None:
                make = [sys.executable, __file__, str(folder)]
                subprocess.run(make, env=environment, cwd=folder, check=True)
        index = find_index(shared, key)
        assert index is not None
        self.store_index(key, lambda link: link.hardlink_to(index))
        path = find_index(self, key)
        if path is not None:
            # The link changes a time of the file, so that each test would read all of it.
            _verified.add(_identity(path.stat()))
        return path

    Cache.stored_index = stored_index  # type: ignore[method-assign]


if __name__ == "__main__":
    Index(Store(shipped_data()), Cache(Path(sys.argv[1]))).database.add_parts(PARTS)
