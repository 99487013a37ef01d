"""site: a static web site of the data folder."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from cudaredist.cli.configuration import sets_given
from cudaredist.cli.options import (
    Data,
    Options,
    cache_dir_option,
    check_option,
    output_path_option,
    select_option,
)
from cudaredist.cli.session import Session, command, open_cache
from cudaredist.words import plural

if TYPE_CHECKING:
    from cudaredist.commands.site.report import SiteReport
    from cudaredist.formats.packageset import PackageSet


class SiteOptions(Options):
    """Options of site."""

    typical = ("output", "channel", "data_dir", "check")

    output: Path = output_path_option(
        "Folder for the site: a new one, or one of an earlier site.", metavar="DIR", default=...
    )
    set: list[Path] | None = select_option(
        "Package set or index. Repeatable. Default: declared sets.", metavar="FILE"
    )
    check: bool = check_option()
    cache_dir: Path | None = cache_dir_option()
    data: Data = field(default_factory=Data)


@command(SiteOptions)
def site(options: SiteOptions, session: Session) -> int:
    """Write a static web site from the data folder.

    Examples:

        cudaredist site --output site
        cudaredist build --cuda 13 --platform linux-x86_64 --output set.json
        cudaredist site --output site --set set.json --json

    The site has a page for each release, package, product, compute capability and --set, a page of
    host compilers, and a search for sonames, symbols, files, packages and GPUs. Without --channel,
    it also lists the packages of NVIDIA's archives, or of wheels on a site of archives, from their
    manifests. It works without a server. Each page is also available as JSON (`index.json`). The
    same data gives the same bytes.
    If a run is interrupted, the next one resumes it. If nothing changed since the
    last run, no page is rendered.
    """
    from cudaredist.commands.site.write_site import update_site
    from cudaredist.store.facts_index import Index

    sets: list[PackageSet] = []
    hashes: list[str] = []
    if given := sets_given(options.set):
        from cudaredist.commands.site.set_pages import read_sets
        from cudaredist.sets.read_set import indexed_sets

        sets, hashes = read_sets(path for each in given for path in indexed_sets(each))
    store = session.read_store(options.data)
    other = None if options.data.channel else store.with_unexamined().in_other_channel()
    cache = open_cache(options.cache_dir)
    progress = session.progress("indexing")
    index = Index(store, cache, progress)
    if not options.check:
        session.share_files(with_group=True)
        session.lock(options.output)()
    state = index.database.state()

    def make_files() -> Mapping[str, Callable[[], bytes]]:
        # If nothing changed since the last run, no file is made.
        from cudaredist.commands.site.render_site import site_files
        from cudaredist.commands.site.site_data import read_site_data

        return site_files(read_site_data(index, sets, progress, other))

    report = update_site(
        make_files,
        options.output,
        state and " ".join([state, store.channel, str(other is not None), *hashes]),
        cache,
        progress,
        may_write=not options.check,
    )
    return session.finish(report, _text)


def _text(report: "SiteReport") -> Iterator[str]:
    files = f"{plural(report.files, 'file')} ({report.size / 1e6:.1f} MB) in {report.output}"
    verbs = ("to write", "to remove") if report.is_check else ("written", "removed")
    changes = f"{report.written:,} {verbs[0]}, {report.removed:,} {verbs[1]}"
    yield f"{plural(report.pages, 'page')}, {files}: {changes}"
