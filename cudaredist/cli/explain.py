"""explain: what is known of a compiler, a GPU, a CUDA release, a package or a package set."""

from pathlib import Path
from typing import Literal, TypeAlias

from cudaredist.cli.options import (
    ChannelName,
    Options,
    argument,
    data_dir_option,
    read_channel_option,
    shipped_data_option,
)
from cudaredist.cli.session import Session, command
from cudaredist.errors import EXIT_OK

Subject: TypeAlias = Literal["nvcc", "gpu", "cuda", "package", "set"]


class ExplainOptions(Options):
    """The options of explain."""

    subject: Subject = argument(
        "What the question is about.", metavar="nvcc|gpu|cuda|package|set", default=...
    )
    name: str = argument(
        "CUDA release or minor; for gpu a capability, chip or product; for package a name; for "
        "set a file.",
        metavar="NAME",
        default=...,
    )
    channel: ChannelName | None = read_channel_option()
    data_dir: Path | None = data_dir_option()
    shipped_data: bool = shipped_data_option()


@command(ExplainOptions)
def explain(options: ExplainOptions, session: Session) -> int:
    """Say what is known of a compiler, a GPU, a CUDA release, a package or a package set.

    Every fact comes with its source, and of a set what it holds and what it lacks and why. Where
    documentation or policy says otherwise than NVIDIA's files, both are shown. For a GPU, the
    releases of each library that run on it are listed, for a package all its releases and
    platforms. Answers come from the feature files and from nvcc_compat.json and gpus.json. The
    tables of the data folder and of the shipped data are combined release by release, and each of
    their facts names its layer. Nothing is fetched.

    Examples:

        cudaredist explain nvcc 13.4

        cudaredist explain gpu "Jetson Orin"

        cudaredist explain gpu V100

        cudaredist explain cuda 12.9 --json

        cudaredist explain package libcublas

        cudaredist build --cuda 13.0.2 --platform linux-x86_64

        cudaredist explain set build/linux-x86_64/cuda-13.0.2.json
    """
    if options.subject == "set":
        from cudaredist.pipeline.sets.summarize import summarize
        from cudaredist.pipeline.toolkit.materialize_set import read_package_set
        from cudaredist.render.set_text import set_text

        package_set, _ = read_package_set(Path(options.name))
        session.show(summarize(options.name, package_set), set_text)
    elif options.subject == "package":
        from cudaredist.pipeline.explain_package import explain_package
        from cudaredist.render.package_text import package_text

        store = session.read_store(
            options.data_dir, options.channel, use_shipped=options.shipped_data
        )
        session.show(explain_package(options.name, store), package_text)
    else:
        from cudaredist.pipeline.tables.explain_by_tables import explain_by_tables
        from cudaredist.render.table_text import explain_text
        from cudaredist.store.locate import store_to_read

        store = store_to_read(options.data_dir, options.channel, use_shipped=options.shipped_data)
        session.show(explain_by_tables(options.subject, options.name, store), explain_text)
    return EXIT_OK
