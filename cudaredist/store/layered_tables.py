"""Read the tables of all layers as one.

Local entries override shipped entries.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Generic, TypeVar

from cudaredist.errors import IncompleteError
from cudaredist.formats.base import OwnModel
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import Gpus, NvccCompat
from cudaredist.hints import command_line
from cudaredist.store.data_folder import Layer, Store
from cudaredist.store.read_data import located
from cudaredist.store.table_registry import (
    GPU_TABLE,
    NVCC_TABLE,
    Table,
    read_gpu_policy,
    releases_of,
)
from cudaredist.tables.gpus.gpu_table import merge_gpus
from cudaredist.tables.nvcc.nvcc_table import merge_compat

_Model = TypeVar("_Model", bound=OwnModel)


@dataclass(frozen=True, slots=True)
class LayeredTable(Generic[_Model]):
    """One table, merged from all layers."""

    table: _Model
    layers: Mapping[str, Layer]
    """The layer of each CUDA release's entry."""
    files: tuple[bytes, ...]
    """Contents of the merged files, lowest layer first."""


def read_nvcc_compat(store: Store) -> LayeredTable[NvccCompat] | None:
    """Return the host compilers of each CUDA release.

    Returns None if no layer has the table. Raises `InvalidFileError`.
    """
    return _read(store, NVCC_TABLE, merge_compat)


def read_gpus(store: Store) -> LayeredTable[Gpus] | None:
    """Return the compute capabilities of each CUDA release.

    Returns None if no layer has the table. Raises `InvalidFileError`.
    """

    def merge(base: Gpus, local: Gpus) -> Gpus:
        return merge_gpus(base, local, read_gpu_policy(store))

    return _read(store, GPU_TABLE, merge)


def require_nvcc_compat(store: Store) -> LayeredTable[NvccCompat]:
    """Return the host compilers of each CUDA release.

    Raises `IncompleteError` if no layer has the table.
    """
    return _require(read_nvcc_compat(store), store, NVCC_TABLE)


def require_gpus(store: Store) -> LayeredTable[Gpus]:
    """Return the compute capabilities of each CUDA release.

    Raises `IncompleteError` if no layer has the table.
    """
    return _require(read_gpus(store), store, GPU_TABLE)


def _require(
    layered: LayeredTable[_Model] | None, store: Store, table: Table[OwnModel]
) -> LayeredTable[_Model]:
    if layered is None:
        path, command = store.table_path(table.name), command_line(table.command)
        raise IncompleteError(f"{path}: no such table", hint=f"run `{command}`")
    return layered


def _read(
    store: Store, table: Table[_Model], merge: Callable[[_Model, _Model], _Model]
) -> LayeredTable[_Model] | None:
    files = store.table_layers(table.name)
    models: dict[Layer, _Model] = {}
    for layer, data in files.items():
        with located(f"{'shipped ' if layer == 'shipped' else ''}{table.name}.json"):
            models[layer] = read_own_file(data, table.model)
    if not models:
        return None
    layers = {label: layer for layer, model in models.items() for label in releases_of(model) or ()}
    return LayeredTable(reduce(merge, models.values()), layers, tuple(files.values()))
