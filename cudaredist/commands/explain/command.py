"""explain: show facts about a compiler, GPU, release, driver, package or set."""

from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from cudaredist.cli.options import (
    Data,
    Options,
    argument,
    cache_dir_option,
    output_flag,
    platform_option,
)
from cudaredist.cli.session import Refusal, Session, command, open_cache
from cudaredist.errors import EXIT_OK

Subject: TypeAlias = Literal["nvcc", "gpu", "cuda", "driver", "package", "set"]


class ExplainOptions(Options):
    """Options of explain."""

    typical = ("channel", "data_dir", "json")

    subject: Subject = argument(
        "Subject: nvcc, gpu, cuda, driver, package or set.", metavar="SUBJECT", default=...
    )
    words: list[str] = argument(
        "CUDA release; gpu: capability, chip or product; driver: version; else a name or file.",
        metavar="NAME",
        default=...,
    )
    history: bool = output_flag("Show the changes of a package by release.")
    all: bool = output_flag("List all releases of a package.")
    platform: str | None = platform_option("Platform of a package.", metavar="PLATFORM")
    sources: bool = output_flag("Show the source of each fact, and other statements.")
    cache_dir: Path | None = cache_dir_option()
    data: Data = field(default_factory=Data)

    @property
    def name(self) -> str:
        """The name. That of a GPU can have several words."""
        return " ".join(self.words)


REFUSED: tuple[Refusal[ExplainOptions], ...] = (
    (
        lambda o: o.history and o.subject != "package",
        "--history requires the subject package",
        "run `cudaredist explain package {words} --history`",
    ),
    (lambda o: o.all and o.subject != "package", "--all requires the subject package", ["--all"]),
    (
        lambda o: o.platform and (o.subject != "package" or o.history),
        "--platform requires the subject package, without --history",
        ["--platform"],
    ),
    (
        lambda o: o.sources and o.subject in {"package", "set"},
        "--sources cannot be combined with the subject {subject}",
        ["--sources"],
    ),
)


@command(ExplainOptions, REFUSED)
def explain(options: ExplainOptions, session: Session) -> int:
    """Show facts about a compiler, GPU, CUDA release, driver, package or set.

    Examples:

        cudaredist explain gpu Jetson Orin
        cudaredist explain driver 580.95
        cudaredist explain package libcublas --history

    The answer comes first. With --sources, every fact has its source, and if documentation or
    policy differs from NVIDIA's files, both are shown. A GPU lists the library releases that run on
    it, a driver lists the CUDA releases that run on it, a package lists its releases and platforms,
    and a set lists its contents and the reasons for missing packages.

    Facts come from the feature files, nvcc_compat.json and gpus.json. Your tables override the
    shipped ones, release by release. Each fact names its source. For a GPU, your feature files are
    combined with the shipped ones in the same way. The network is not used.
    """
    if options.subject == "set":
        from cudaredist.commands.explain.set_text import set_text
        from cudaredist.commands.explain.summarize_set import summarize
        from cudaredist.sets.read_set import read_package_set

        package_set, _ = read_package_set(Path(options.name))
        session.show(summarize(options.name, package_set), set_text)
    elif options.subject == "package":
        _show_package(options, session)
    elif options.subject == "driver":
        _show_driver(options, session)
    else:
        from cudaredist.commands.explain.explain_by_tables import explain_by_tables
        from cudaredist.commands.explain.table_text import explain_text

        store = session.read_store(
            options.data,
            is_channel_used=options.subject == "gpu",
            reads_features=options.subject == "gpu",
            with_unexamined=options.subject != "gpu",
        )
        cache = open_cache(options.cache_dir)
        progress = session.progress("indexing")
        report = explain_by_tables(options.subject, options.name, store, cache, progress)
        errors = [("", error) for error in report.errors]
        text = partial(explain_text, with_sources=options.sources)
        return session.finish(report, text, errors=errors)
    return EXIT_OK


def _show_package(options: ExplainOptions, session: Session) -> None:
    index = session.open_index(options.data, options.cache_dir)
    if options.history:
        from cudaredist.commands.explain.package_history import explain_history, history_text

        session.show(explain_history(options.name, index), history_text)
    else:
        from cudaredist.commands.explain.explain_package import explain_package
        from cudaredist.commands.explain.package_text import package_text

        text = partial(package_text, has_all=options.all)
        session.show(explain_package(options.name, index, options.platform), text)


def _show_driver(options: ExplainOptions, session: Session) -> None:
    """Show the CUDA releases and GPUs of a driver."""
    from cudaredist.commands.explain.report import ExplainReport
    from cudaredist.commands.explain.table_text import explain_text
    from cudaredist.formats.base import Channel
    from cudaredist.formats.policy import DriverPolicy
    from cudaredist.formats.registry import read_own_file
    from cudaredist.redists import CUDA
    from cudaredist.store.data_folder import Store
    from cudaredist.tables.explain_driver import driver_answer, explain_driver

    store = session.read_store(options.data, is_channel_used=False, with_unexamined=True)
    policy = read_own_file(store.read_policy("drivers"), DriverPolicy)
    layers = (layer for layer in (store, store.base) if layer is not None)
    stores = (Store(layer.root, channel) for layer in layers for channel in get_args(Channel))
    releases = {label for one in stores for label in one.manifests(CUDA).labels()}
    topics = explain_driver(options.name, policy, releases)
    report = ExplainReport(
        kind="driver",
        asked=options.name,
        answer=driver_answer(options.name, policy, releases),
        topics=topics,
        exit_code=EXIT_OK,
    )
    session.show(report, partial(explain_text, with_sources=options.sources))
