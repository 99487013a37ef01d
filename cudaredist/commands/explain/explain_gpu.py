"""explain gpu: a compute capability, and the releases that run on its GPUs."""

from cudaredist.commands.explain.coverage_history import coverage_of_releases, read_coverage
from cudaredist.commands.explain.newest_together import newest_together
from cudaredist.commands.explain.report import ExplainReport
from cudaredist.commands.explain.table_answers import gpu_answer
from cudaredist.errors import EXIT_OK
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.hints import command_line
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index
from cudaredist.store.layered_tables import require_layered
from cudaredist.store.local_manifests import process_command
from cudaredist.store.table_registry import GPU_TABLE, read_gpu_policy
from cudaredist.tables.explain_gpu import explain_gpu
from cudaredist.tables.explanation import with_layers
from cudaredist.tables.gpus.coverage import CoverageRules
from cudaredist.tables.gpus.gpu_names import capabilities_called


def explain_one_gpu(name: str, store: Store, index: Index) -> ExplainReport:
    """Explain a GPU. Raises `IncompleteError` without a table, and `UnknownNameError`."""
    layered = require_layered(store, GPU_TABLE)
    gpus, policy = layered.table, read_gpu_policy(store)
    names = capabilities_called(name, gpus)
    drivers = read_own_file(store.read_policy("drivers"), DriverPolicy)
    topics = (explain_gpu(one, gpus, policy, drivers) for one in names)
    archives = read_coverage(names, index, gpus, CoverageRules(gpus))
    coverage = coverage_of_releases(names, archives, gpus, index)
    return ExplainReport(
        kind="gpu",
        asked=name,
        newest=tuple(newest_together(names, archives, store, gpus)),
        answer="\n".join(gpu_answer(names, gpus)),
        topics=tuple(with_layers(topic, layered.layers) for topic in topics),
        coverage=coverage,
        hint=None if coverage else _hint(store),
        exit_code=EXIT_OK,
    )


def _hint(store: Store) -> str | None:
    """Return the command to create feature files, or None if there are some."""
    if store.feature_redists():
        return None
    if store.redists():
        return process_command(store)
    return command_line("download-manifests", channel=store.channel)
