"""update-symbols: the exported symbols of each release's libraries."""

from cudaredist.cli.options import redist_option
from cudaredist.cli.session import Session, command, find_redists, open_cache
from cudaredist.cli.update_gpus import REFUSED, TableOptions


class SymbolOptions(TableOptions):
    """Options of update-symbols."""

    typical = ("redist", "version", "channel", "jobs", "check")

    redist: list[str] | None = redist_option()


@command(SymbolOptions, REFUSED)
def update_symbols(options: SymbolOptions, session: Session) -> int:
    """Read the dynamic symbols of the libraries of each release.

    Examples that need the network:

        cudaredist update-symbols --redist cuda --version latest
        cudaredist update-symbols --check

    The symbols are read from cached facts or from the archives. The result is DATA/symbols/, with
    a file for each library. `which --symbol`, `diff` and `validate` use it.
    """
    from cudaredist.pipeline.features.targets import read_local_manifests, targets_in_store
    from cudaredist.pipeline.read_data import require_manifests
    from cudaredist.pipeline.tables.collect_symbols import SymbolRun
    from cudaredist.render.symbol_text import symbols_text
    from cudaredist.store.data_folder import Store
    from cudaredist.store.locate import data_folder

    bases = session.connect(options.network, options.channel)
    root = data_folder(options.folders.data_dir, writing=options.write.is_allowed)
    store = Store(root, options.channel)
    known = find_redists(options.redist, options.channel)
    local = require_manifests(store, options.redist or ())
    redists = [one for one in known if one.name in local]
    targets = targets_in_store(store, redists, bases)
    service = session.archive_service(
        (target.bases for target in targets),
        cache=open_cache(options.folders.cache_dir),
        jobs=options.jobs.count,
    )
    if options.write.is_allowed:
        session.lock(store.root)
    run = SymbolRun(
        manifests=read_local_manifests(targets, options.releases.selection, strict=options.strict),
        service=service,
        store=store,
        write=options.write.is_allowed,
        fail_fast=not options.keep_going,
    )
    report = run.run()
    return session.finish(
        report,
        symbols_text,
        warnings=(
            f"{one.package} {one.version} for {one.platform}: the symbols of {path} are not read"
            for one in report.archives
            for path in one.unread
        ),
        errors=[
            *((f"{one.redist} {one.label}", one.error) for one in report.manifests),
            *(
                (f"{one.redist} {one.release} {one.package} {one.platform}", one.error)
                for one in report.archives
                if one.error is not None
            ),
        ],
        dry_run=options.write.dry_run,
    )
