"""explain gpu: make the answers about capabilities, and store them in the index."""

from collections.abc import Sequence

from cudaredist.commands.explain.coverage_history import coverage_of_releases, read_coverage
from cudaredist.commands.explain.gpu_answer import GpuAnswer, store_answers
from cudaredist.commands.explain.newest_together import newest_by_capability
from cudaredist.commands.explain.table_answers import gpu_sentence
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import GpuPolicy, Gpus
from cudaredist.grouping import grouped
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index
from cudaredist.store.layered_tables import LayeredTable, require_layered
from cudaredist.store.table_registry import GPU_TABLE, read_gpu_policy
from cudaredist.tables.explain_gpu import explain_gpu
from cudaredist.tables.explanation import with_layers
from cudaredist.tables.gpus.coverage import CoverageRules
from cudaredist.tables.gpus.gpu_names import capabilities_called


def capabilities_in_tables(name: str, store: Store) -> list[str]:
    """Return the capabilities of a name in the tables of all layers.

    Raises `IncompleteError` without a table, and `UnknownNameError`.
    """
    layered, _ = _read_tables(store)
    return capabilities_called(name, layered.table)


def answer_and_store(names: Sequence[str], store: Store, index: Index) -> dict[str, GpuAnswer]:
    """Make and store the answers about capabilities.

    Raises `IncompleteError` without a table, and the error of a file that cannot be read.
    """
    layered, policy = _read_tables(store)
    gpus = layered.table
    drivers = read_own_file(store.read_policy("drivers"), DriverPolicy)
    bases = {name: gpus.capabilities[name].base for name in names}
    archives = read_coverage(names, index, gpus, CoverageRules(gpus))
    coverage = coverage_of_releases(names, archives, gpus, index)
    by_name = grouped((part.capability, part) for part in coverage)
    newest = newest_by_capability(bases.values(), archives, store, gpus)
    answers = {
        name: GpuAnswer(
            sentence=gpu_sentence(name, gpus),
            newest=newest.get(base),
            topic=with_layers(explain_gpu(name, gpus, policy, drivers), layered.layers),
            coverage=tuple(by_name.get(name, ())),
        )
        for name, base in bases.items()
    }
    store_answers(answers, store, index)
    return answers


def _read_tables(store: Store) -> tuple[LayeredTable[Gpus], GpuPolicy]:
    """Return the table of GPUs and its policy. Raises `IncompleteError` and `InvalidFileError`."""
    return require_layered(store, GPU_TABLE), read_gpu_policy(store)
