"""Write the packed index of `data/` to a file: `python -m tools.pack_index FILE`.

The wheel contains it, so that the first call of a user unpacks the index instead of creating it.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import get_args

from cudaredist.commands.explain.answer_gpus import answer_and_store
from cudaredist.commands.explain.gpu_answer import indexed_gpus
from cudaredist.formats.names import Channel
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.facts_index import Index
from cudaredist.store.packed_index import pack


def main(path: str) -> None:
    """Write the packed index."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder, "cache"))
        for channel in get_args(Channel):
            store = Store(shipped_data(), channel)
            index = Index(store, cache)
            answer_and_store([*indexed_gpus(index)], store, index)
        database = Index(Store(shipped_data()), cache).database
        Path(path).write_bytes(database.read(partial(pack, paths=database.documents.paths)))


if __name__ == "__main__":
    main(*sys.argv[1:])
