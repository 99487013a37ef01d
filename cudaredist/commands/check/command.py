"""check: verify that the data is fresh, complete, unchanged and valid."""

import os
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from cudaredist.cli.options import (
    Data,
    Network,
    NvidiaChannels,
    Options,
    cache_dir_option,
    format_option,
    jobs_option,
    output_flag,
    redist_option,
    select_option,
)
from cudaredist.cli.session import Session, command, find_redists, open_cache
from cudaredist.redists import CUDA, REDISTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cudaredist.commands.check.report import CheckReport, Finding

CheckFormat: TypeAlias = Literal["text", "markdown", "github"]


class CheckOptions(Options):
    """Options of check."""

    typical = ("redist", "channel", "offline", "data_dir", "format")

    redist: list[str] | None = redist_option()
    nvidia_channels: NvidiaChannels = field(default_factory=NvidiaChannels)
    network: Network = field(default_factory=Network)
    jobs: int = jobs_option()
    cache_dir: Path | None = cache_dir_option()
    require_driver: str | None = select_option(
        "Require that the local CUDA releases run on this driver.", metavar="VERSION"
    )
    require_glibc: str | None = select_option(
        "Require that nvcc compiles with this glibc.", metavar="VERSION"
    )
    max_closure: list[str] | None = select_option(
        "Size limit of a package in declared sets. Repeatable.", metavar="NAME=SIZE"
    )
    archive_notes: bool = select_option(
        "Require archives without notes, such as links to nothing.", default=False
    )
    advisories: bool = select_option(
        "Require sets or newest releases without vulnerabilities.",
        default=False,
    )
    all: bool = output_flag("List current release lines, too.")
    data: Data = field(default_factory=Data)
    format: CheckFormat = format_option("Output: text, markdown or github.")


@command(CheckOptions)
def check(options: CheckOptions, session: Session) -> int:
    """Check that the data is fresh, complete, unchanged and valid.

    Examples:

        cudaredist check --offline
        cudaredist check  # needs network, exit code 1 if data is stale
        cudaredist check --offline --redist cuda --require-driver 580.95

    Package sets that the configuration file declares must be what `build` writes. --max-closure
    limits the unpacked size of a package's libraries with all that they need, as in cudnn=1.2G.
    --require-glibc reports the CUDA releases of declared sets, else the local ones, whose math
    header clashes with a glibc.
    --advisories reports the known vulnerabilities of declared sets, else of the newest releases.

    Writes nothing. The exit code is 1 for stale or incomplete data, 3 if upstream did not answer, 4
    if bytes changed in place, and 5 if a file is invalid.
    """
    from cudaredist.cli.configuration import declared_sets
    from cudaredist.commands.check.bulletin_findings import bulletin_findings
    from cudaredist.commands.check.check_data import check_data
    from cudaredist.commands.check.checked_files import CheckedFiles
    from cudaredist.commands.check.file_findings import archive_notes
    from cudaredist.commands.check.runfile_findings import runfile_findings
    from cudaredist.store.data_folder import Store, shipped_data
    from cudaredist.store.locate import store_to_read

    network = options.network
    store = session.read_store(options.data, network.base_url, is_layered=False)
    if store.root == shipped_data():
        # The shipped manifests of archives are for questions. Nobody examines or updates them.
        store = store.only_examined()
    limits: Mapping[str, int] = {}
    if options.max_closure:
        from cudaredist.commands.check.set_findings import closure_limits

        limits = closure_limits(options.max_closure)
    use_shipped = options.data.shipped_data
    layered = store_to_read(options.data.data_dir, store.channel, use_shipped=use_shipped)
    bases = session.connect(network, store.channel)
    redists = find_redists(options.redist, store.channel) if options.redist else ()
    has_cuda = not redists or REDISTS[CUDA] in redists
    cache = open_cache(options.cache_dir)
    checked = CheckedFiles(store, cache)
    further: list[Finding] = []
    if has_cuda:
        further += runfile_findings(store, session.settings, options.jobs, checked)
    if declared_sets() is not None:
        from cudaredist.commands.check.set_findings import closure_findings, set_findings

        further += [*set_findings(layered), *closure_findings(limits)]
    named = [redist.name for redist in redists] or store.feature_redists()
    if options.archive_notes:
        further += archive_notes(store, named)
    further += bulletin_findings(store, checked)
    if options.advisories:
        from cudaredist.commands.check.advisory_findings import vulnerability_findings

        further += vulnerability_findings(layered)
    if options.require_glibc is not None and has_cuda:
        from cudaredist.commands.check.glibc_findings import glibc_findings

        further += glibc_findings(options.require_glibc, layered, store.manifests(CUDA).labels())
    shipped = Store(shipped_data()) if use_shipped else None
    report = check_data(
        store,
        redists,
        None if network.offline else session.sources(bases, store),
        cache,
        session.workers("checking", options.jobs),
        checked=checked,
        shipped=shipped,
        driver=options.require_driver,
        nvidia_channels=options.nvidia_channels.names,
        further=further,
    )
    checked.remember(is_whole=not redists)
    return _finish(report, options, session, os.path.relpath(store.root))


def _finish(report: "CheckReport", options: CheckOptions, session: Session, root: str) -> int:
    """Show the findings in the selected format, and return the exit code."""
    from cudaredist.commands.check import text as render

    if options.json or options.format != "github":
        as_text = partial(render.check_text, has_all=options.all)
        is_markdown = options.format == "markdown"
        return session.finish(report, render.check_markdown if is_markdown else as_text)
    session.close()
    annotations = render.check_annotations(report, root)
    session.show_on_github(annotations, render.check_markdown(report), render.check_outputs(report))
    return report.exit_code
