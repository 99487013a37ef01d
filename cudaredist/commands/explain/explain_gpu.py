"""explain gpu: a compute capability, and the releases that run on its GPUs.

The answer about each capability is stored in the index. It is made again after every change of the
data, with models that take longer to import than all other work.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType

from cudaredist.commands.explain.gpu_answer import GpuAnswer, indexed_gpus, stored_answers
from cudaredist.commands.explain.report import ExplainReport
from cudaredist.errors import EXIT_OK
from cudaredist.hints import command_line
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index
from cudaredist.store.local_manifests import process_command
from cudaredist.tables.gpus.matching_gpus import matching_capabilities


def explain_one_gpu(name: str, store: Store, index: Index) -> ExplainReport:
    """Explain a GPU. Raises `IncompleteError` without a table, and `UnknownNameError`."""
    names = matching_capabilities(name, indexed_gpus(index))
    if not names:
        names = _answering().capabilities_in_tables(name, store)
    answers = _answers(names, store, index)
    newest = {one.newest.capability: one.newest for one in answers.values() if one.newest}
    coverage = tuple(part for one in answers.values() for part in one.coverage)
    return ExplainReport(
        kind="gpu",
        asked=name,
        newest=tuple(one.report() for one in newest.values()),
        answer="\n".join(one.sentence for one in answers.values()),
        topics=tuple(one.topic for one in answers.values()),
        coverage=coverage,
        hint=None if coverage else _hint(store),
        exit_code=EXIT_OK,
    )


def _answers(names: Sequence[str], store: Store, index: Index) -> Mapping[str, GpuAnswer]:
    """Return the answers about capabilities, and store those that the index does not have."""
    answers = stored_answers(names, store, index)
    lacking = [name for name in names if name not in answers]
    if lacking:
        answers |= _answering().answer_and_store(lacking, store, index)
    return {name: answers[name] for name in names}


def _answering() -> ModuleType:
    return import_module("cudaredist.commands.explain.answer_gpus")


def _hint(store: Store) -> str | None:
    """Return the command to create feature files, or None if there are some."""
    if store.feature_redists():
        return None
    if store.redists():
        return process_command(store)
    return command_line("download-manifests", channel=store.channel)
