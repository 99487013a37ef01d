"""Write the packed index of `data/` to a file: `python -m tools.pack_index FILE`.

The wheel contains it, so that the first call of a user unpacks the index instead of creating it.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.facts_index import Index
from cudaredist.store.packed_index import pack


def main(path: str) -> None:
    """Write the packed index."""
    with tempfile.TemporaryDirectory() as folder:
        database = Index(Store(shipped_data()), Cache(Path(folder, "cache"))).database
        Path(path).write_bytes(database.read(partial(pack, documents=database.documents)))


if __name__ == "__main__":
    main(*sys.argv[1:])
