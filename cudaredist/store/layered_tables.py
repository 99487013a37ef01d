"""Read the tables of all layers as one.

Local entries override shipped entries.
"""

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

from cudaredist.errors import IncompleteError, located
from cudaredist.formats.base import OwnModel
from cudaredist.formats.registry import read_own_file
from cudaredist.hints import command_line
from cudaredist.store.data_folder import Layer, Store
from cudaredist.store.table_registry import Table, releases_of

_Model = TypeVar("_Model", bound=OwnModel)


class LayeredTable(NamedTuple, Generic[_Model]):
    """One table, merged from all layers."""

    table: _Model
    layers: Mapping[str, Layer]
    """The layer of each CUDA release's entry."""
    files: tuple[bytes, ...]
    """Contents of the merged files, lowest layer first."""


def require_layered(store: Store, table: Table[_Model]) -> LayeredTable[_Model]:
    """Return a table of each CUDA release.

    Raises `InvalidFileError`, and `IncompleteError` if no layer has the table.
    """
    layered = read_layered(store, table)
    if layered is None:
        path, command = store.table_path(table.name), command_line(table.command)
        raise IncompleteError(f"{path}: no such table", hint=f"run `{command}`")
    return layered


def read_layered(store: Store, table: Table[_Model]) -> LayeredTable[_Model] | None:
    """Return a table of each CUDA release, or None if no layer has it.

    Raises `InvalidFileError`.
    """
    files = store.table_layers(table.name)
    models: dict[Layer, _Model] = {}
    for layer, data in files.items():
        with located(f"{'shipped ' if layer == 'shipped' else ''}{table.name}.json"):
            models[layer] = read_own_file(data, table.model)
    if not models:
        return None
    layers: dict[str, Layer] = {}
    for layer, model in models.items():
        layers |= dict.fromkeys(releases_of(model) or (), layer)
    merged, *others = models.values()
    for model in others:
        merged = table.merge(merged, model, store)
    return LayeredTable(merged, layers, tuple(files.values()))
