"""The two tables of a data folder, with their policies."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from cudaredist.formats.base import OwnModel
from cudaredist.formats.names import ExtractKind
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import GpuPolicy, Gpus, NvccCompat, NvccPolicy
from cudaredist.store.data_folder import Store
from cudaredist.tables.gpus.gpu_table import merge_gpus
from cudaredist.tables.nvcc.nvcc_table import merge_compat

_Model_co = TypeVar("_Model_co", bound=OwnModel, covariant=True)

TableCommand: TypeAlias = Literal["update-nvcc-compat", "update-gpus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Generic[_Model_co]):
    """A table that is built from a file of each CUDA release."""

    name: str
    """File name without suffix."""
    command: TableCommand
    """Command that builds the table."""
    model: type[_Model_co]
    merge: Callable[[_Model_co, _Model_co, Store], _Model_co]
    """Merges two tables. Entries of the second one take precedence."""
    extract: ExtractKind
    """Kind of file that the table is built from."""
    second_extract: ExtractKind | None
    """Kind of another file that the table needs from the same archive."""
    packages: tuple[str, ...]
    """Packages that may have this file."""

    def read(self, store: Store) -> _Model_co | None:
        """Return the table, or None. Raises `InvalidFileError`."""
        data = store.read_table(self.name)
        return None if data is None else read_own_file(data, self.model)


NVCC_TABLE = Table(
    name="nvcc_compat",
    command="update-nvcc-compat",
    model=NvccCompat,
    merge=lambda base, local, _: merge_compat(base, local),
    extract="host-config",
    second_extract="math-functions",
    packages=("cuda_crt", "cuda_nvcc"),
)
GPU_TABLE = Table(
    name="gpus",
    command="update-gpus",
    model=Gpus,
    merge=lambda base, local, store: merge_gpus(base, local, read_gpu_policy(store)),
    extract="ptxas",
    second_extract=None,
    packages=("cuda_nvcc",),
)
TABLES = (NVCC_TABLE, GPU_TABLE)


def releases_of(table: OwnModel | None) -> Collection[str] | None:
    """Return a table's CUDA releases, or None for another file."""
    match table:
        case NvccCompat():
            return table.releases
        case Gpus():
            return table.sources
        case _:
            return None


def read_nvcc_policy(store: Store) -> NvccPolicy:
    """Return the policy for host compilers. Raises `InvalidFileError`.

    It has the facts that are only in NVIDIA's documentation.
    """
    return read_own_file(store.read_policy("nvcc"), NvccPolicy)


def read_gpu_policy(store: Store) -> GpuPolicy:
    """Return the policy for compute capabilities. Raises `InvalidFileError`."""
    return read_own_file(store.read_policy("gpus"), GpuPolicy)
