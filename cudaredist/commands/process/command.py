"""process-manifests: create feature files from the manifests' archives."""

from typing import TYPE_CHECKING

from cudaredist.cli.options import parse_size
from cudaredist.cli.session import Session, command, find_redists, open_cache, warnings_of
from cudaredist.commands.process.options import REFUSED, ProcessOptions
from cudaredist.redists import REDISTS

if TYPE_CHECKING:
    from cudaredist.commands.process.feature_run import FeatureRun


@command(ProcessOptions, REFUSED)
def process_manifests(options: ProcessOptions, session: Session) -> int:
    """Inspect the archives of local manifests and write feature files.

    Examples:

        cudaredist download-manifests --redist cudnn  # needs network
        cudaredist process-manifests --redist cudnn --version latest  # needs network
        cudaredist process-manifests --platform linux-x86_64 --max-download 5GB  # needs network

    Archives are downloaded, verified, then read once. Nothing is executed, and files are
    unpacked only to an unnamed temporary file. The facts are cached by the archive's hash, so that
    no archive is downloaded twice. Each feature file is written to
    DATA/features/NAME/feature_LABEL.json as soon as it is complete. With --package, --platform or
    --variant, the other entries of a feature file do not change.

    If a run is interrupted, the next one resumes it, even in the middle of an archive.
    --max-download skips archives of unknown size.

    With URL and MANIFEST_DIR, inspects the archives of one folder of manifests, as in the nixpkgs
    manual.
    """
    from cudaredist.commands.process.dask import dask_engine
    from cudaredist.commands.process.text import process_errors, process_text

    run = _feature_run(options, session)
    if options.engine == "dask" and options.scheduler and not options.check:
        run.engine = session.enter_context(dask_engine(options.scheduler, session.settings))
    report = run.run()
    return session.finish(
        report,
        process_text,
        warnings=warnings_of(report.manifests),
        errors=process_errors((*report.manifests, *report.archives)),
    )


def _feature_run(options: ProcessOptions, session: Session) -> "FeatureRun":
    """Open the sources and lock the target folder."""
    from cudaredist.commands.process.feature_run import FeatureRun
    from cudaredist.store.data_folder import Store
    from cudaredist.store.local_manifests import require_manifests
    from cudaredist.store.locate import data_folder
    from cudaredist.store.targets import (
        read_local_manifests,
        targets_in_folder,
        targets_in_store,
    )

    selection, cache = options.releases.selection, open_cache(options.folders.cache_dir)
    size = parse_size(options.max_download)
    folder = options.manifest_dir or options.folders.data_dir
    root = data_folder(folder, writing=not options.check)
    bases = session.connect(options.network, options.channel)
    if options.url is not None:
        selection = selection._replace(pre=True)  # all manifests of the folder are selected
        targets = targets_in_folder(options.url, root)
    else:
        store = Store(root, options.channel)
        local = store.redists()
        has_known = any(name in REDISTS for name in local)
        names = options.redist or (None if has_known else list(local))
        redists = find_redists(names, store.channel, own=local)
        require_manifests(store, options.redist or ())
        targets = targets_in_store(store, redists, bases)
    service = session.archive_service(
        targets, cache=cache, jobs=options.jobs, keep_archives=options.keep_archives
    )
    if not options.check:
        session.lock(root)
        for target in targets:
            target.features.sweep()
    return FeatureRun(
        manifests=read_local_manifests(targets, selection, strict=options.strict),
        service=service,
        cache=cache,
        options=options,
        max_download=size,
        announce=session.console.note,
    )
