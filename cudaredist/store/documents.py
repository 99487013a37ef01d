"""The documents of an index: the files that it has rows of, and their sizes and times.

Every question compares them with the index: first the signature of all files, and only if it
differs the state of each document. So this module imports no models: `index_update.py` reads the
documents that changed.
"""

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from importlib import resources
from operator import attrgetter
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from cudaredist.errors import ReadError
from cudaredist.formats.names import Channel
from cudaredist.primitives import Version, sha256_of
from cudaredist.store.data_folder import Layer, Store, layer_of
from cudaredist.store.table_folder import TableFolder, is_api_package, is_library

ADVISORY_TABLES = ("advisories", "policy/advisories")
"""Known vulnerabilities and the decisions about them: the rows of all archives depend on both."""
STORED_POLICIES = (
    "fixups",
    "libraries",
    "licenses",
    "meta",
    "names",
    "outputs",
    "requirements",
    "withheld",
)
"""Policies whose entries lookups need."""
INDEXED_TABLES = (
    *ADVISORY_TABLES,
    "nvcc_compat",
    "gpus",
    "policy/constraints",
    "policy/drivers",
    "policy/gpus",
    "policy/jetpack",
    *(f"policy/{name}" for name in STORED_POLICIES),
    "runfiles",
)
"""The tables of the index by path in the data folder, without suffix."""

_FOLDERS = ("manifests", "features", "symbols", "api", "policy")
"""The folders of a data folder with documents."""
_DEPTH = 2
"""Levels of folders below these: `manifests/wheels/cuda`."""
_name_of = attrgetter("name")
_SETTLED_NS = 2 * 10**9
"""Nanoseconds after which a further change has another time. FAT counts in steps of two seconds."""


class Document(NamedTuple):
    """The files of a release, the table of a library's symbols or an API, or another table."""

    layer: Layer
    channel: Channel | Literal[""]
    """Empty: the document is for both channels."""
    kind: Literal["release", "symbols", "api", "table"]
    name: str
    label: str


class Documents:
    """The documents of a data folder and of the layers below it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.stores = {
            (layer_of(layer.root), channel): Store(layer.root, channel)
            for layer in store.layers
            for channel in get_args(Channel)
        }
        """The data folders by layer and channel."""
        self.symbols = {
            layer_of(path.parent): TableFolder(path, is_library) for path in store.symbol_paths
        }
        """The folders with tables of symbols by layer."""
        self.apis = {
            layer_of(layer.root): TableFolder(layer.api_path, is_api_package)
            for layer in store.layers
        }
        """The folders with tables of APIs by layer."""

    def table_path(self, layer: Layer, name: str) -> Path:
        """Return the path of another table."""
        return self.symbols[layer].path.parent / f"{name}.json"

    def signature(self) -> str:
        """Return a text that differs if any file differs. It takes less time than all states.

        Empty: a file changed just now, or a folder cannot be read.
        """
        names: list[str] = []
        times: list[int] = [0]
        others: list[int] = []
        try:
            for layer in self.store.layers:
                _add_files(str(layer.root), 0, names, times, others)
                for name in _FOLDERS:
                    _add_files(f"{layer.root}/{name}", _DEPTH, names, times, others)
        except OSError:
            return ""
        files = f"{'/'.join(names)} {times} {others}"
        return sha256_of(os.fsencode(files)) if is_settled(*times) else ""

    @cached_property
    def paths(self) -> dict[Document, tuple[str, ...]]:
        """The paths of each document's files. For a release, its manifest comes first."""
        return {**self._paths_of_releases(), **self._paths_of_tables()}

    def _paths_of_releases(self) -> dict[Document, tuple[str, ...]]:
        paths: dict[Document, tuple[str, ...]] = {}
        for (layer, channel), store in self.stores.items():
            whole = self.store.of_channel(channel)
            for redist in {*store.redists(), *store.feature_redists()}:
                with suppress(ReadError):
                    for label, own in _paths_by_release(store, redist).items():
                        # A local manifest that the shipped data describes needs no rows.
                        if layer == "shipped" or not whole.is_described_below(redist, label):
                            document = Document(layer, channel, "release", redist, str(label))
                            paths[document] = tuple(own)
        return paths

    def _paths_of_tables(self) -> dict[Document, tuple[str, ...]]:
        """Return the paths of APIs, symbols and other tables."""
        paths: dict[Document, tuple[str, ...]] = {}
        for layer, apis in self.apis.items():
            with suppress(ReadError):
                for package in apis.names():
                    paths[Document(layer, "", "api", package, "")] = (str(apis.place(package)),)
        for layer, symbols in self.symbols.items():
            with suppress(ReadError):
                for soname in symbols.names():
                    document = Document(layer, "", "symbols", soname, "")
                    paths[document] = (str(symbols.place(soname)),)
            for name in INDEXED_TABLES:
                path = self.table_path(layer, name)
                if path.exists():
                    paths[Document(layer, "", "table", name, "")] = (str(path),)
        return paths


def program_state() -> str:
    """Return a text that differs if any file of the program differs.

    Empty: a file changed just now, or the files are not in a folder that can be read.
    """
    with suppress(OSError):
        return state_of(*_program_files(str(resources.files("cudaredist"))))
    return ""


def _program_files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                # The data is not a part of the program.
                if entry.name not in {"__pycache__", "data"}:
                    yield from _program_files(entry.path)
            else:
                yield entry.path


def is_settled(*times: int) -> bool:
    """Check if the times of a file are old enough that every later change has another time."""
    return max(times) <= time.time_ns() - _SETTLED_NS


def _add_files(
    folder: str, depth: int, names: list[str], times: list[int], others: list[int]
) -> None:
    """Add the files of a folder, and of `depth` levels of folders below it.

    Adds the path of the folder and the names of the files, their two times, and their sizes and
    inodes. Raises `OSError` for a folder or file that cannot be read.
    """
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:
        return
    names.append(folder)
    with entries:
        for entry in sorted(entries, key=_name_of):
            if entry.name.endswith(".json"):
                about = entry.stat()
                names.append(entry.name)
                times += (about.st_mtime_ns, about.st_ctime_ns)
                others += (about.st_size, about.st_ino)
            elif depth and entry.is_dir():
                _add_files(entry.path, depth - 1, names, times, others)


def _paths_by_release(store: Store, redist: str) -> dict[Version, list[str]]:
    """Return the paths of each release's manifest and feature file."""
    paths: dict[Version, list[str]] = defaultdict(list)
    for folder in (store.manifests(redist), store.features(redist)):
        for label, name in folder.files():
            paths[label].append(f"{folder.path}/{name}")
    return paths


def state_of(*paths: Path | str) -> str:
    """Return the sizes and times of files, empty if one changed just now."""
    states = []
    for path in paths:
        with suppress(OSError):
            about = os.stat(path)  # noqa: PTH116 - a path of each file takes longer
            if not is_settled(about.st_mtime_ns, about.st_ctime_ns):
                return ""
            states.append((about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino))
    return repr(sorted(states))
