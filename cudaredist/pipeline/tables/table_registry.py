"""The two tables of a data folder: their names, commands and models, and how they are read."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from cudaredist.features.facts import ExtractKind
from cudaredist.schema.base import OwnModel
from cudaredist.schema.registry import FILE_KINDS, FileKind, read_own_file
from cudaredist.schema.tables import GpuPolicy, Gpus, NvccCompat, NvccPolicy
from cudaredist.store.data_folder import Store

_Model_co = TypeVar("_Model_co", bound=OwnModel, covariant=True)

TableCommand: TypeAlias = Literal["update-nvcc-compat", "update-gpus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Generic[_Model_co]):
    """One table that is made from a file of each CUDA release."""

    name: str
    """The name of the file, without its suffix."""
    command: TableCommand
    """The command that makes it."""
    model: type[_Model_co]
    extract: ExtractKind
    """The kind of file that it is made from."""
    packages: tuple[str, ...]
    """The packages whose archives may have that file."""

    @property
    def file_kind(self) -> FileKind:
        """The table's entry among all kinds of our files."""
        return FILE_KINDS[self.name.replace("_", "-")]

    def read(self, store: Store) -> _Model_co | None:
        """Return the table; None if there is none. Raises `InvalidFileError`."""
        data = store.read_table(self.name)
        return None if data is None else read_own_file(data, self.model)


NVCC_TABLE = Table(
    name="nvcc_compat",
    command="update-nvcc-compat",
    model=NvccCompat,
    extract="host-config",
    packages=("cuda_crt", "cuda_nvcc"),
)
GPU_TABLE = Table(
    name="gpus", command="update-gpus", model=Gpus, extract="ptxas", packages=("cuda_nvcc",)
)
TABLES = (NVCC_TABLE, GPU_TABLE)


def releases_of(table: OwnModel | None) -> Collection[str] | None:
    """Return the CUDA releases in a table; None if it is not one."""
    match table:
        case NvccCompat():
            return table.releases
        case Gpus():
            return table.sources
        case _:
            return None


def read_nvcc_policy(store: Store) -> NvccPolicy:
    """Return what only documentation says of host compilers. Raises `InvalidFileError`."""
    return read_own_file(store.read_policy("nvcc"), NvccPolicy)


def read_gpu_policy(store: Store) -> GpuPolicy:
    """Return what only policy says of capabilities. Raises `InvalidFileError`."""
    return read_own_file(store.read_policy("gpus"), GpuPolicy)
