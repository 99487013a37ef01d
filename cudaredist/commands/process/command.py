"""process-manifests: create feature files from the manifests' archives."""

from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from cudaredist.cli.options import (
    ArchiveJobs,
    Archives,
    LocalReleases,
    ManifestOptions,
    argument,
    output_flag,
    parse_size,
    redist_option,
    safety_option,
    select_option,
    work_option,
)
from cudaredist.cli.session import (
    URL_WITH_OPTIONS,
    Refusal,
    Session,
    command,
    find_redists,
    open_cache,
    url_alone,
    warnings_of,
)
from cudaredist.redists import REDISTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cudaredist.commands.process.feature_run import FeatureRun
    from cudaredist.store.targets import FeatureTarget

EngineName: TypeAlias = Literal["local", "dask"]


class ProcessOptions(ManifestOptions):
    """Options of process-manifests."""

    typical = ("redist", "version", "platform", "max_download", "data_dir")

    url: str | None = argument("Address to which the archives' paths are relative.", metavar="URL")
    manifest_dir: Path | None = argument(
        "Folder with manifests, and for feature files.", metavar="MANIFEST_DIR"
    )
    redist: list[str] | None = redist_option()
    releases: LocalReleases = field(default_factory=LocalReleases)
    archives: Archives = field(default_factory=Archives)
    max_download: str | None = select_option(
        "Download limit, such as 5GB. Smallest archives first.",
        metavar="SIZE",
    )
    jobs: ArchiveJobs = field(default_factory=ArchiveJobs)
    allow_unverified: bool = safety_option("Also inspect archives without a hash, and mark them.")
    cleanup: bool = safety_option(
        "Alias from the nixpkgs manual: --no-cleanup is --keep-archives.",
        names="--cleanup/--no-cleanup",
        default=True,
        hidden=True,
    )
    keep_archives: bool = safety_option("Keep archives in the cache.")
    fill_cache: bool = select_option(
        "Also inspect archives missing from the cache, for diff.",
        default=False,
    )
    engine: EngineName = work_option("Threads or a Dask cluster.", default="local")
    scheduler: str | None = work_option(
        "Dask scheduler, such as tls://host:8786.",
        metavar="ADDRESS",
        envvar="CUDAREDIST_SCHEDULER",
    )
    legacy: bool = output_flag("Write legacy feature files. Requires MANIFEST_DIR.")

    @property
    def are_archives_kept(self) -> bool:
        """Whether the cache keeps archives."""
        return self.keep_archives or not self.cleanup


REFUSED: tuple[Refusal[ProcessOptions], ...] = (
    (lambda o: o.engine == "dask" and not o.scheduler, "--engine dask requires --scheduler"),
    (
        lambda o: o.engine == "dask" and o.are_archives_kept,
        "--keep-archives requires --engine local",
    ),
    (lambda o: o.legacy and o.url is None, "--legacy requires URL and MANIFEST_DIR"),
    url_alone("run `cudaredist process-manifests {url} manifests`"),
    URL_WITH_OPTIONS,
)


@command(ProcessOptions, REFUSED)
def process_manifests(options: ProcessOptions, session: Session) -> int:
    """Inspect the archives of local manifests and write feature files.

    Examples that need the network:

        cudaredist process-manifests --redist cudnn --version latest
        cudaredist process-manifests --platform linux-x86_64 --max-download 5GB
        cudaredist process-manifests --legacy --version 12.9.1 URL ./manifests

    Archives are downloaded, verified and read in one pass. Nothing is executed, and files are
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
    from cudaredist.store.locate import data_folder
    from cudaredist.store.targets import read_local_manifests

    selection, cache = options.releases.selection, open_cache(options.folders.cache_dir)
    if options.url is not None:  # all manifests of the folder are selected
        selection = replace(selection, pre=True)
    size = parse_size(options.max_download)
    folder = options.manifest_dir or options.folders.data_dir
    root = data_folder(folder, writing=not options.check)
    targets = _targets(options, session, root)
    service = session.archive_service(
        targets,
        cache=cache,
        jobs=options.jobs.count,
        keep_archives=options.are_archives_kept,
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


def _targets(options: ProcessOptions, session: Session, root: Path) -> "Sequence[FeatureTarget]":
    from cudaredist.store.data_folder import Store
    from cudaredist.store.read_data import require_manifests
    from cudaredist.store.targets import targets_in_folder, targets_in_store

    bases = session.connect(options.network, options.channel)
    if options.url is not None:
        return targets_in_folder(options.url, root)
    store = Store(root, options.channel)
    local = store.redists()
    has_known = any(name in REDISTS for name in local)
    names = options.redist or (None if has_known else list(local))
    redists = find_redists(names, store.channel, own=local)
    require_manifests(store, options.redist or ())
    return targets_in_store(store, redists, bases)
