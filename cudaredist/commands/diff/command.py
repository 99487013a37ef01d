"""diff: compare two releases or files."""

from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from cudaredist.cli.completion import complete_release
from cudaredist.cli.options import (
    Data,
    Options,
    argument,
    cache_dir_option,
    format_option,
    output_flag,
    platform_option,
)
from cudaredist.cli.session import Refusal, Session, command, open_cache
from cudaredist.errors import EXIT_OK, UnknownNameError
from cudaredist.redists import CUDA

DiffFormat: TypeAlias = Literal["text", "markdown"]


class DiffOptions(Options):
    """Options of diff."""

    typical = ("channel", "data_dir", "cache_dir", "format", "json")

    old: str = argument(
        "Release, such as 12.9 or cudnn@9.27, or a file.",
        metavar="OLD",
        default=...,
        autocompletion=complete_release,
    )
    new: str | None = argument(
        "Release or file of the same kind.", metavar="NEW", autocompletion=complete_release
    )
    cache_dir: Path | None = cache_dir_option()
    data: Data = field(default_factory=Data)
    lines: bool = output_flag("Print a table of symbols (OLD) line by line, for git diff.")
    symbols: bool = output_flag("List changed symbols by name. Default: count them.")
    api: bool = output_flag("Compare the names in NVIDIA's headers.")
    platform: list[str] | None = platform_option("Platform to compare. Repeatable. Default: all.")
    all: bool = output_flag("List all names. Default: the first ones of each line.")
    format: DiffFormat = format_option("Output: text or markdown.")


REFUSED: tuple[Refusal[DiffOptions], ...] = (
    *(
        (
            lambda o, name=name: o.api and bool(getattr(o, name)),
            f"--api cannot be combined with --{name}",
            [f"--{name}"],
        )
        for name in ("lines", "symbols", "platform")
    ),
    (lambda o: o.lines and o.new is not None, "--lines cannot be combined with NEW", ["--lines"]),
    (lambda o: o.lines and o.json, "--lines cannot be combined with --json", ["--lines"]),
    (
        lambda o: o.new is None and not o.lines,
        "diff requires NEW",
        "run `cudaredist diff {old} NEW` with the release or file to compare",
    ),
)


@command(DiffOptions, REFUSED)
def diff(options: DiffOptions, session: Session) -> int:
    """Compare two releases, manifests, feature files or package sets.

    Examples:

        cudaredist diff 12.9 13.0
        cudaredist diff cudnn@9.26.1 cudnn@9.27.0 --format markdown
        cudaredist diff --api 12.9 13.0

    Differences are listed in a reviewer's order: a summary, changed bytes under the same version,
    removals, losses and new requirements, files that vanished or moved, run paths, additions, other
    changes. For local releases, features and tables are compared, too. Without feature files, the
    cache may know which files moved to another package. The releases can belong to two
    redistributables. With --api, the functions, fields, enumerators, types and macros of NVIDIA's
    headers are compared: removed, changed (with both declarations), deprecated and new ones.
    """
    from cudaredist.commands.diff.arguments import as_release, is_local_release
    from cudaredist.commands.diff.report import DiffReport
    from cudaredist.commands.diff.stored_report import (
        are_examined,
        key_of_comparison,
        stored_report,
    )
    from cudaredist.commands.diff.text import diff_markdown, diff_text
    from cudaredist.primitives import KNOWN_PLATFORMS
    from cudaredist.store.facts_index import Index
    from cudaredist.store.locate import describe_data, with_releases

    if options.new is None:
        from cudaredist.commands.diff.symbol_lines import symbol_lines

        session.console.lines(symbol_lines(Path(options.old)))
        return EXIT_OK
    releases: list[tuple[str, str]] = []
    old, new = as_release(options.old), as_release(options.new)
    if options.api:
        return _compare_apis(old, new, options, session)
    for text in (old, new):
        if is_local_release(text):
            redist, _, label = text.partition("@")
            releases.append((redist, label))
    redists = {redist for redist, _ in releases} or {CUDA}
    store = session.read_store(
        options.data,
        is_channel_used=False,
        with_unexamined=options.data.channel is not None,
        redists=redists,
    )
    if releases:
        if options.data.channel is None:
            store = with_releases(store, releases)
        session.console.note(describe_data(store, options.data.channel))
    cache = open_cache(options.cache_dir)
    texts = {
        name: partial(render, has_symbols=options.symbols, is_long=options.all)
        for name, render in (("text", diff_text), ("markdown", diff_markdown))
    }
    platforms = options.platform or ()
    for platform in platforms:
        if platform not in KNOWN_PLATFORMS:
            raise UnknownNameError("platform", platform, KNOWN_PLATFORMS)

    def compare(index: Index | None = None) -> DiffReport:
        # Its models are slow to import, and many reports are in the cache.
        from cudaredist.commands.diff.diff_releases import compare_releases
        from cudaredist.store.known_vulnerabilities import known_vulnerabilities

        known = known_vulnerabilities(store)
        return compare_releases(old, new, store, cache, known, platforms=platforms, index=index)

    if is_local_release(old) and is_local_release(new):
        index = Index(store, cache, session.progress("indexing"))
        is_stored = are_examined(releases, index)
        key = key_of_comparison(index, old, new, platforms) if is_stored else ""
        report = stored_report(DiffReport, key, cache, partial(compare, index))
    else:
        report = compare()
    return session.finish(report, texts.get(options.format))


def _compare_apis(old: str, new: str, options: DiffOptions, session: Session) -> int:
    """Compare the names in the headers of two releases."""
    from cudaredist.commands.diff.api_changes import api_markdown, api_text, compare_apis
    from cudaredist.commands.diff.report import ApiDiffReport
    from cudaredist.commands.diff.stored_report import key_of_comparison, stored_report

    index = session.open_index(options.data, options.cache_dir)
    texts = {"text": api_text, "markdown": api_markdown}
    text = partial(texts[options.format], is_long=options.all)
    report = stored_report(
        ApiDiffReport,
        key_of_comparison(index, "api", old, new),
        open_cache(options.cache_dir),
        partial(compare_apis, old, new, index),
    )
    return session.finish(report, text)
