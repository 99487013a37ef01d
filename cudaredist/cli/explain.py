"""explain: what is known of a compiler, a GPU, a CUDA release or a package set."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from cudaredist.cli.options import Options, argument, data_dir_option
from cudaredist.cli.session import Session, command
from cudaredist.errors import EXIT_OK, IncompleteError, command_line

if TYPE_CHECKING:
    from cudaredist.pipeline.tables.table_registry import Table
    from cudaredist.reports.answer_reports import ExplainReport
    from cudaredist.schema.base import OwnModel
    from cudaredist.store.data_folder import Store

_Model = TypeVar("_Model", bound="OwnModel")

Subject: TypeAlias = Literal["nvcc", "gpu", "cuda", "set"]


class ExplainOptions(Options):
    """The options of explain."""

    subject: Subject = argument(
        "What the question is about.", metavar="nvcc|gpu|cuda|set", default=...
    )
    name: str = argument(
        "CUDA release or minor; for gpu a capability, chip or product; for set a file.",
        metavar="NAME",
        default=...,
    )
    data_dir: Path | None = data_dir_option()


@command(ExplainOptions)
def explain(options: ExplainOptions, session: Session) -> int:
    """Say what is known of a compiler, a GPU, a CUDA release or a package set.

    Every fact comes with its source, and of a set what it holds and what it lacks and why. Where
    documentation or policy says otherwise than NVIDIA's files, both are shown. Answers come
    from nvcc_compat.json and gpus.json of the data folder; nothing is fetched.

    Examples:

        cudaredist explain nvcc 13.4

        cudaredist explain gpu "Jetson Orin"

        cudaredist explain cuda 12.9 --json

        cudaredist explain set build/linux-x86_64/cuda-13.0.2.json
    """
    if options.subject == "set":
        from cudaredist.pipeline.sets.summarize import summarize
        from cudaredist.pipeline.toolkit.materialize_set import read_package_set
        from cudaredist.render.set_text import set_text

        package_set = read_package_set(Path(options.name)).value
        session.show(summarize(options.name, package_set), set_text)
    else:
        from cudaredist.render.table_text import explain_text
        from cudaredist.store.data_folder import Store
        from cudaredist.store.locate import data_folder

        store = Store(data_folder(options.data_dir, writing=False))
        session.show(_explain_by_tables(options.subject, options.name, store), explain_text)
    return EXIT_OK


def _explain_by_tables(
    subject: Literal["nvcc", "gpu", "cuda"], name: str, store: "Store"
) -> "ExplainReport":
    from cudaredist.pipeline.tables import table_registry as tables
    from cudaredist.reports.answer_reports import ExplainReport
    from cudaredist.tables.explain_gpu import explain_cuda, explain_gpu
    from cudaredist.tables.explain_nvcc import explain_nvcc

    if subject == "gpu":
        gpus = _read(tables.GPU_TABLE, store)
        topics = explain_gpu(name, gpus, tables.read_gpu_policy(store))
    else:
        compat = _read(tables.NVCC_TABLE, store)
        policy = tables.read_nvcc_policy(store)
        if subject == "nvcc":
            topics = (explain_nvcc(name, compat, policy),)
        else:
            topics = explain_cuda(name, compat, _read(tables.GPU_TABLE, store), policy)
    return ExplainReport(kind=subject, asked=name, topics=topics)


def _read(table: "Table[_Model]", store: "Store") -> "_Model":
    content = table.read(store)
    if content is None:
        raise IncompleteError(
            f"{store.table_path(table.name)}: no such table",
            hint=f"{command_line(table.command)} makes it",
        )
    return content
