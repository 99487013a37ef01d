"""explain nvcc: the host compilers of a CUDA release, and the releases that accept a compiler."""

from cudaredist.commands.explain.report import ExplainReport
from cudaredist.commands.explain.table_answers import nvcc_answer
from cudaredist.errors import EXIT_OK
from cudaredist.store.data_folder import Store
from cudaredist.store.layered_tables import require_layered
from cudaredist.store.table_registry import NVCC_TABLE, read_nvcc_policy
from cudaredist.tables.explain_compiler import explain_compiler, is_compiler
from cudaredist.tables.explain_nvcc import explain_nvcc
from cudaredist.tables.explanation import with_layers


def explain_host_compilers(name: str, store: Store) -> ExplainReport:
    """Explain the nvcc of a CUDA release, or a version of a host compiler.

    Raises `IncompleteError` if no layer has the table, and `UnknownNameError` for an unknown name.
    """
    compat = require_layered(store, NVCC_TABLE)
    if is_compiler(name):
        answer, topic = explain_compiler(name, compat.table)
    else:
        topic = explain_nvcc(name, compat.table, read_nvcc_policy(store))
        topic = with_layers(topic, compat.layers)
        answer = "\n".join(nvcc_answer(name, compat.table))
    return ExplainReport(kind="nvcc", asked=name, answer=answer, topics=(topic,), exit_code=EXIT_OK)
