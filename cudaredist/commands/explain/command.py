"""explain: show facts about a compiler, GPU, release, driver, package, set or name of an API."""

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from cudaredist.cli.completion import complete_name, complete_word
from cudaredist.cli.options import (
    Data,
    Options,
    argument,
    cache_dir_option,
    output_flag,
    platform_option,
)
from cudaredist.cli.session import Refusal, Session, command, open_cache, refuse
from cudaredist.errors import EXIT_OK

SUBJECTS = ("nvcc", "gpu", "cuda", "driver", "jetpack", "l4t", "package", "set", "api")
"""The subjects that a call can name."""


class ExplainOptions(Options):
    """Options of explain."""

    typical = ("channel", "data_dir", "json")

    subject: str = argument(
        "GPU, release, compiler, driver, package, file, set or subject.",
        metavar="WORD",
        default=...,
        autocompletion=complete_word,
    )
    words: list[str] | None = argument(
        "Name after a subject, as in explain gpu T4.",
        metavar="[NAME]...",
        autocompletion=complete_name,
    )
    history: bool = output_flag("Show the changes of a package by release.")
    all: bool = output_flag("List all releases of a package, and each build's details.")
    platform: str | None = platform_option("Platform of a package.", metavar="PLATFORM")
    sources: bool = output_flag("Show the source of each fact, and other statements.")
    cache_dir: Path | None = cache_dir_option()
    data: Data = field(default_factory=Data)

    @property
    def text(self) -> str:
        """The words after `explain`. The name of a GPU can have several."""
        return " ".join(self.all_words).strip()

    @property
    def all_words(self) -> list[str]:
        """The words after `explain`, with the subject if there is one."""
        return [self.subject, *(self.words or ())]

    @property
    def typed_subject(self) -> str | None:
        """The subject if the call has one, with a name."""
        first, _, name = self.text.partition(" ")
        return first.lower() if first.lower() in SUBJECTS and name else None

    @property
    def name(self) -> str:
        """The name after the subject."""
        return self.text.partition(" ")[2]


def _is_not_package(options: ExplainOptions) -> bool:
    """Check if the call names another subject than package."""
    return options.typed_subject not in {None, "package"}


REFUSED: tuple[Refusal[ExplainOptions], ...] = (
    (
        lambda o: o.history and _is_not_package(o),
        "--history requires the subject package",
        "run `cudaredist explain package {words} --history`",
    ),
    (lambda o: o.all and _is_not_package(o), "--all requires the subject package", ["--all"]),
    (
        lambda o: o.platform and (_is_not_package(o) or o.history),
        "--platform requires the subject package, without --history",
        ["--platform"],
    ),
    (
        lambda o: o.sources and o.typed_subject in {"package", "set", "api"},
        "--sources cannot be combined with the subject {subject}",
        ["--sources"],
    ),
)


@command(ExplainOptions, REFUSED)
def explain(options: ExplainOptions, session: Session) -> int:
    """Show facts about a GPU, release, compiler, driver, package or library.

    Examples:

        cudaredist explain T4
        cudaredist explain libcudnn.so.9
        cudaredist explain "gcc 15"

    The form of the word determines its subject, which a note names. If a word has several
    meanings, such as 12.0, the note lists the others. To select one, put the subject before the
    name, as in `explain gpu 12.0`. A set can be followed by one of its packages.

    The answer comes first. With --sources, every fact has its source, and if documentation or
    policy differs from NVIDIA's files, both are shown. A GPU lists the library releases that run on
    it, a driver lists the CUDA releases that run on it, a release of JetPack or L4T its CUDA and
    the products with builds for it, a package lists its releases and platforms, a set lists its
    contents and the reasons for missing packages, and a name of an API its declarations by release.

    Facts come from the feature files, nvcc_compat.json and gpus.json. Your tables override the
    shipped ones, release by release. Each fact names its source. For a GPU, your feature files are
    combined with the shipped ones in the same way. The network is not used.
    """
    subject = options.typed_subject
    if subject is not None:
        return _ANSWERS[subject](options.name, options, session)
    from cudaredist.commands.explain.word_forms import Facts, meanings_of

    facts = Facts(session, options.data, options.cache_dir)
    meaning, *others = meanings_of(options.text, facts, SUBJECTS)
    session.console.note(f"{options.text} is {meaning.form.title}: `{meaning.call}`")
    for other in others:
        session.console.note(f"it is also {other.form.title}: `{other.call}`")
    subject = meaning.form.command.removeprefix("explain ")
    if subject in SUBJECTS:
        # A set has its file and its package in the words of the call.
        words = options.all_words if subject == "set" else [meaning.name]
        values = vars(options) | {"subject": subject, "words": words}
        options = ExplainOptions(**values)
        refuse(options, REFUSED)
    return _ANSWERS[subject](meaning.name, options, session)


def _show_set(name: str, options: ExplainOptions, session: Session) -> int:
    from cudaredist.commands.explain.set_text import set_text
    from cudaredist.commands.explain.summarize_set import summarize
    from cudaredist.sets.read_set import read_package_set
    from cudaredist.store.known_vulnerabilities import known_vulnerabilities

    path, package = _path_and_package(name, options)
    package_set, _ = read_package_set(path)
    if package is None:
        store = session.read_store(options.data, is_channel_used=False)
        known = known_vulnerabilities(store)
        session.show(summarize(str(path), package_set, known), set_text)
    else:
        from cudaredist.commands.explain.package_of_set import explain_in_set, package_in_set_text

        session.show(explain_in_set(str(path), package, package_set), package_in_set_text)
    return EXIT_OK


def _path_and_package(name: str, options: ExplainOptions) -> tuple[Path, str | None]:
    """Return the file and the package of `explain set FILE PACKAGE`.

    An unquoted path can have blanks.
    """
    *path, last = options.words or [name]
    is_package = path and not last.endswith(".json") and not Path(name).exists()
    return (Path(" ".join(path)), last) if is_package else (Path(name), None)


def _show_by_tables(
    subject: Literal["nvcc", "cuda"], name: str, options: ExplainOptions, session: Session
) -> int:
    from cudaredist.commands.explain.table_text import explain_text

    store = session.read_store(options.data, is_channel_used=False, with_unexamined=True)
    if subject == "nvcc":
        from cudaredist.commands.explain.explain_host_compilers import explain_host_compilers

        report = explain_host_compilers(name, store)
    else:
        from cudaredist.commands.explain.explain_cuda_release import explain_cuda_release

        report = explain_cuda_release(name, store)
    errors = [("", error) for error in report.errors]
    text = partial(explain_text, with_sources=options.sources)
    return session.finish(report, text, errors=errors)


def _show_gpu(name: str, options: ExplainOptions, session: Session) -> int:
    from cudaredist.commands.explain.explain_gpu import explain_one_gpu
    from cudaredist.commands.explain.table_text import explain_text
    from cudaredist.store.facts_index import Index

    store = session.read_store(options.data, reads_features=True)
    cache = open_cache(options.cache_dir)
    report = explain_one_gpu(name, store, Index(store, cache, session.progress("indexing")))
    return session.finish(report, partial(explain_text, with_sources=options.sources))


def _show_package(name: str, options: ExplainOptions, session: Session) -> int:
    index = session.open_index(options.data, options.cache_dir)
    if options.history:
        from cudaredist.commands.explain.package_history import explain_history, history_text

        session.show(explain_history(name, index), history_text)
    else:
        from cudaredist.commands.explain.explain_package import explain_package
        from cudaredist.commands.explain.package_text import package_text

        has_details = options.all or options.platform is not None
        text = partial(package_text, has_details=has_details)
        session.show(explain_package(name, index, options.platform), text)
    return EXIT_OK


def _show_api(name: str, options: ExplainOptions, session: Session) -> int:
    """Show the declarations of a name in headers, by release."""
    from cudaredist.commands.explain.explain_api import api_text, explain_api

    index = session.open_index(options.data, options.cache_dir)
    session.show(explain_api(name, index), api_text)
    return EXIT_OK


def _show_providers(
    name: str, options: ExplainOptions, session: Session, *, is_symbol: bool = False
) -> int:
    """Show the packages that provide a file or export a symbol, as `which`."""
    from cudaredist.commands.which.find_providers import find_providers
    from cudaredist.commands.which.find_symbols import find_symbols
    from cudaredist.commands.which.search import Search
    from cudaredist.commands.which.text import which_text
    from cudaredist.tables.symbols.symbol_pattern import SymbolPattern

    index = session.open_index(options.data, options.cache_dir)
    search = Search(index, platform=options.platform)
    if is_symbol:
        report = find_symbols(SymbolPattern(name), search)
    else:
        report = find_providers(name, search)
    return session.finish(report, partial(which_text, is_grouped=not options.all))


def _show_driver(name: str, options: ExplainOptions, session: Session) -> int:
    """Show the CUDA releases and GPUs of a driver."""
    from cudaredist.commands.explain.report import ExplainReport
    from cudaredist.commands.explain.table_text import explain_text
    from cudaredist.formats.driver_policy import DriverPolicy
    from cudaredist.formats.names import Channel
    from cudaredist.formats.registry import read_own_file
    from cudaredist.redists import CUDA
    from cudaredist.store.data_folder import Store
    from cudaredist.store.known_vulnerabilities import known_vulnerabilities
    from cudaredist.tables.advisories.topics import driver_topics
    from cudaredist.tables.driver_support import parse_driver
    from cudaredist.tables.explain_driver import driver_answer, explain_driver

    store = session.read_store(options.data, is_channel_used=False, with_unexamined=True)
    policy = read_own_file(store.read_policy("drivers"), DriverPolicy)
    layers = (layer for layer in (store, store.base) if layer is not None)
    stores = (Store(layer.root, channel) for layer in layers for channel in get_args(Channel))
    releases = {label for one in stores for label in one.manifests(CUDA).labels()}
    topics = explain_driver(name, policy, releases)
    driver, known = parse_driver(name, policy), known_vulnerabilities(store)
    report = ExplainReport(
        kind="driver",
        asked=name,
        answer=driver_answer(name, policy, releases),
        topics=(*topics, *driver_topics(known, driver)),
        exit_code=EXIT_OK,
    )
    session.show(report, partial(explain_text, with_sources=options.sources))
    return EXIT_OK


def _show_jetpack(
    subject: Literal["jetpack", "l4t"], name: str, options: ExplainOptions, session: Session
) -> int:
    """Show the contents of a release of JetPack, and the products with builds for it."""
    from cudaredist.commands.explain.jetpack_report import explain_jetpack_release
    from cudaredist.commands.explain.table_text import explain_text

    index = session.open_index(options.data, options.cache_dir)
    report = explain_jetpack_release(subject, name, index)
    session.show(report, partial(explain_text, with_sources=options.sources))
    return EXIT_OK


_ANSWERS: Mapping[str, Callable[[str, ExplainOptions, Session], int]] = {
    "nvcc": partial(_show_by_tables, "nvcc"),
    "gpu": _show_gpu,
    "cuda": partial(_show_by_tables, "cuda"),
    "driver": _show_driver,
    "jetpack": partial(_show_jetpack, "jetpack"),
    "l4t": partial(_show_jetpack, "l4t"),
    "package": _show_package,
    "set": _show_set,
    "api": _show_api,
    "which": _show_providers,
    "which --symbol": partial(_show_providers, is_symbol=True),
}
"""The function that answers, by subject, or by the command of a file or symbol."""
