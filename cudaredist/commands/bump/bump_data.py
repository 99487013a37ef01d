"""bump: update a data folder in one run.

The stages are the other commands: download manifests, process them, update tables, build and
validate package sets. Files are written atomically, and a second run resumes an interrupted one. If
a stage fails, the later stages still do as much as they can.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property, partial
from typing import TypeVar

from cudaredist.cli.configuration import declared_sets
from cudaredist.cli.session import Session, find_redists, open_cache, warnings_of
from cudaredist.commands.build.build_sets import BUILD_OPTIONS, specs_for, write_sets
from cudaredist.commands.build.declared_sets import (
    SetGroup,
    declared_groups,
    make_groups,
)
from cudaredist.commands.build.report import SetOutcome
from cudaredist.commands.bump.bump_plan import BumpPlan, Step
from cudaredist.commands.bump.bumped_sets import bumped_set, failed_set
from cudaredist.commands.bump.options import BumpOptions
from cudaredist.commands.bump.report import BumpedRelease, BumpedSet, BumpReport
from cudaredist.commands.diff.diff_releases import compare_releases
from cudaredist.commands.diff.report import DiffReport
from cudaredist.commands.download.download import ManifestDownload, not_listed, store_destination
from cudaredist.commands.process.feature_run import FeatureRun
from cudaredist.commands.process.report import ProcessReport
from cudaredist.commands.update.collect_symbols import SymbolRun
from cudaredist.commands.update.report import SymbolReport, TableReport
from cudaredist.commands.update.table_command import accept_command
from cudaredist.commands.update.table_run import TableRun, update_gpu_table, update_nvcc_table
from cudaredist.commands.validate.validate_files import validate_sets
from cudaredist.commands.versions.list_versions import read_versions
from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    EXIT_USAGE,
    CudaRedistError,
    worst_exit_code,
)
from cudaredist.formats.base import OwnModel
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.outcomes import FeatureOutcome
from cudaredist.formats.packageset import PackageSet
from cudaredist.primitives import PREVIEW, Version, find_release
from cudaredist.redists import CUDA, REDISTS, Redist
from cudaredist.sets.load import read_set_data
from cudaredist.sets.spec import Request
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.known_vulnerabilities import known_vulnerabilities
from cudaredist.store.local_manifests import require_manifests
from cudaredist.store.locate import data_folder, describe_data, local_channel, store_to_read
from cudaredist.store.selection import EVERY_RELEASE, Selection
from cudaredist.store.table_registry import GPU_TABLE, NVCC_TABLE, TABLES, Table
from cudaredist.store.targets import (
    FeatureTarget,
    limited_to,
    read_local_manifests,
    targets_in_store,
)
from cudaredist.tables.advisories.states import KnownVulnerabilities
from cudaredist.tasks import Workers

_TABLES: tuple[tuple[Table[OwnModel], Callable[[TableRun], TableReport]], ...] = (
    (NVCC_TABLE, partial(update_nvcc_table, accept_new=True)),
    (GPU_TABLE, update_gpu_table),
)

_LISTINGS = 16
"""Number of listings and manifests to request at the same time."""
_Run = TypeVar("_Run")
_Report = TypeVar("_Report", ProcessReport, SymbolReport, TableReport)


class Bump:
    """A run of bump."""

    def __init__(self, options: BumpOptions, session: Session) -> None:
        """Open the sources and lock the data folder."""
        Selection.parse(options.version or (), None, None)
        self.options, self.write = options, not options.check
        root = data_folder(
            options.folders.data_dir, writing=self.write, use_shipped=options.shipped_data
        )
        named = options.channel
        if named is None and options.network.base_url and root == shipped_data():
            # The shipped manifests are of wheels. A base URL selects NVIDIA's archives.
            named = "redist"
        self.store = Store(root, named or local_channel(root))
        if root == shipped_data() and not self.write:
            # The shipped manifests of archives are for questions. Nobody updates them.
            self.store = self.store.only_examined()
        session.console.note(describe_data(self.store, named))
        self.redists = _redists(self.store, options.redist, session)
        bases = session.connect(options.network, self.store.channel)
        self.targets = targets_in_store(self.store, self.redists, bases)
        every = {bases, *(target.bases for target in self.targets)}
        self.chains = {one: session.sources(one, self.store) for one in every}
        self.sources = self.chains[bases]
        self.begin = session.lock(root) if self.write else lambda: None
        self.cache = open_cache(options.folders.cache_dir)
        self.stop, self.console = session.settings.stop, session.console
        self._errors: list[ErrorReport] = []
        self._codes: list[int] = []
        self._findings: list[str] = []
        self._failed: set[tuple[str, str]] = set()
        """Releases that are incomplete because of a failure."""
        self._features: list[FeatureOutcome] = []
        self._tables: list[TableReport] = []
        self._symbols: tuple[str, ...] = ()
        self._moved: dict[str, dict[str, str]] = {}
        """Local releases that left their NVIDIA channel, by redistributable."""
        self._nvidia_channels: dict[str, dict[str, tuple[str, ...]]] = {}
        self._fetched = 0

    def run(self) -> BumpReport:
        """Bump to new releases, or report them if `write` is off.

        Failures are in the report. Raises `InvalidFileError` for a broken lock or table, before
        anything is written.
        """
        steps = self._plan()
        if not self.write:
            if steps or self._moved:
                self._codes.append(EXIT_FINDINGS)
            return self._report(tuple(step.report("would-bump") for step in steps), ())
        if steps or self._moved:
            self.begin()
        self.store.sweep()
        # A killed run may complete a release without reporting it. Then the next run reports it.
        started = {(step.redist.name, step.label) for step in steps}
        self.store.write_pending(self.store.pending() | started)
        local = self._download(steps)
        sets: tuple[BumpedSet, ...] = ()
        if self.options.process:
            self._examine(local)
            self._update_tables(local)
            self._update_symbols(local)
            if (local or self.options.output is not None) and self.store.manifests(CUDA).labels():
                sets = self._build_sets(local)
        return self._report(tuple(map(self._bumped, steps)), sets)

    def mark_reported(self, report: BumpReport) -> None:
        """Mark the releases of a report as reported to the user."""
        if self.write:
            reported = {(release.redist, Version.parse(release.new)) for release in report.releases}
            self.store.write_pending(
                (redist, label)
                for redist, label in self.store.pending() - reported
                if label in self.store.manifests(redist).labels()
            )

    # -- stages

    def _plan(self) -> tuple[Step, ...]:
        with self.console.progress("listing") as progress:
            upstream = read_versions(
                self.store,
                self.redists,
                self.sources,
                Workers(_LISTINGS, self.stop, progress),
                is_explicit=bool(self.options.redist),
                nvidia_channels=self.options.nvidia_channels.names,
            )
        self._moved, self._nvidia_channels = upstream.moved, upstream.channels
        for redist, moves in upstream.moved.items():
            self._findings += (f"{redist} {move}" for move in moves.values())
        for report in upstream.errors:
            self._fail(report)
        named = self.options.version or ()
        plan = BumpPlan(self.store, upstream, named, with_archives=self.options.process)
        steps = tuple(step for redist in self.redists for step in plan.steps(redist))
        known = [Version.parse(label) for labels in upstream.releases.values() for label in labels]
        known += [step.label for step in steps]
        for text in named:
            if upstream.releases and find_release(text, known) is None:
                newest = {name: labels[-1] for name, labels in upstream.releases.items()}
                self._fail(
                    not_listed(text, newest, self.store, pre=self.options.nvidia_channels.pre)
                )
        return steps

    def _download(self, steps: Sequence[Step]) -> list[Step]:
        """Fetch missing manifests, and return the steps with a manifest."""
        local = [step for step in steps if step.is_recorded]
        waiting = [step for step in steps if not step.is_recorded]
        with self.console.progress("manifests") as progress:
            moved = [redist for redist in self.redists if redist.name in self._moved]
            for redist in dict.fromkeys([*(step.redist for step in waiting), *moved]):
                of_redist = {str(s.label): s for s in waiting if s.redist == redist}
                to = store_destination(
                    self.store, [redist], self.store.lock().redists, is_explicit=True
                )
                to.sweep()
                selection = self._selection(redist, of_redist)
                workers = Workers(_LISTINGS, self.stop, progress)
                report = ManifestDownload(
                    self.sources, to, selection, self.cache, workers, strict=self.options.strict
                ).run()
                self._codes.append(report.exit_code)
                self._findings += warnings_of(report.manifests)
                for outcome in report.manifests:
                    self._fail(outcome.error, outcome.subject)
                    if outcome.error is None and outcome.release in of_redist:
                        local.append(of_redist[outcome.release])
                for listing in report.redists:
                    self._fail(listing.error, redist.name)
                for error in report.errors:
                    self._fail(error)
        self._failed |= {step.key for step in waiting if step not in local}
        return sorted(local, key=lambda step: (step.redist.name, step.label))

    def _selection(self, redist: Redist, labels: Collection[str]) -> Selection:
        """Select releases to download, and those that left their NVIDIA channel."""
        selected = self.options.nvidia_channels.names
        known = self._nvidia_channels.get(redist.name, {})
        labels = {*labels, *self._moved.get(redist.name, ())}
        return Selection(
            versions=tuple(sorted(labels)),
            pre=PREVIEW in selected,
            nvidia_channels=selected & {PREVIEW, *known},
        )

    def _examine(self, local: Sequence[Step]) -> None:
        """Inspect the archives of the releases."""
        targets = self._targets_of(local)
        for target in targets:
            target.features.sweep()
        if not targets:
            return
        make = partial(FeatureRun, cache=self.cache, announce=self.console.note)
        report = self._run("archives", targets, make, FeatureRun.run)
        if report is None:
            self._failed |= {step.key for step in local}
            return
        self._features += report.manifests
        for outcome in report.manifests:
            self._fail(outcome.error, outcome.subject)
        for archive in report.archives:
            self._fail(archive.error, archive.subject)
        failed = (outcome for outcome in report.manifests if outcome.error or outcome.failed)
        self._failed |= {(outcome.redist, outcome.release) for outcome in failed}

    def _targets_of(self, local: Sequence[Step]) -> list[FeatureTarget]:
        """Return the targets limited to these releases."""
        return limited_to(self.targets, {(step.redist.name, step.label) for step in local})

    def _update_symbols(self, local: Sequence[Step]) -> None:
        """Add the releases to the tables of symbols, if the data folder has any."""
        targets = self._targets_of(local)
        if not targets or not self.store.symbol_path.exists():
            return
        make = partial(SymbolRun, store=self.store)
        report = self._run("symbols", targets, make, SymbolRun.run)
        if report is None:
            return
        self._symbols = report.changed
        for archive in report.archives:
            of = archive.redist, archive.release
            self._fail(archive.error, f"symbols: {' '.join(of)} {archive.package}", of)

    def _update_tables(self, local: Sequence[Step]) -> None:
        """Add the CUDA releases to both tables.

        A missing table is created with all local CUDA releases.
        """
        added = tuple(step.label for step in local if step.redist.name == CUDA)
        if not added:
            return
        (target,) = [target for target in self.targets if target.redist.name == CUDA]
        for table, update in _TABLES:
            has_table = self.store.table_path(table.name).exists()
            of_table = target._replace(only=added) if has_table else target
            report = self._run("tables", [of_table], partial(TableRun, store=self.store), update)
            if report is None:
                continue
            self._tables.append(report)
            self._findings += (f"{report.table}: {entry.message}" for entry in report.findings)
            if report.held_back:
                labels = ", ".join(report.held_back)
                self._findings.append(
                    f"{report.table}: CUDA {labels} was not written; review the bounds, then run "
                    f"`{accept_command(self.store.channel)}`"
                )
            for release in report.releases:
                subject = f"{report.table}: cuda {release.release}"
                self._fail(release.error, subject, (CUDA, release.release))

    def _run(
        self,
        stage: str,
        targets: Sequence[FeatureTarget],
        make: Callable[..., _Run],
        run: Callable[[_Run], _Report],
    ) -> _Report | None:
        """Run a stage for all manifests of targets. Return None if it failed as a whole."""
        with self.console.progress(stage) as progress:
            try:
                manifests = read_local_manifests(targets, EVERY_RELEASE, strict=self.options.strict)
                service = ArchiveService(
                    chains=self.chains,
                    cache=self.cache,
                    stop=self.stop,
                    jobs=self.options.jobs.count,
                    progress=progress,
                )
                report = run(make(manifests=manifests, service=service))
            except CudaRedistError as error:
                self._fail(error)
                return None
        self._codes.append(report.exit_code)
        self._fetched += report.fetched_bytes
        return report

    def _build_sets(self, local: Sequence[Step]) -> tuple[BumpedSet, ...]:
        """Build and validate the package sets that may have changed.

        These are the declared sets, if there are any. Otherwise, they are those of the newest patch
        of every local minor release, or if only CUDA was bumped and nothing is written, those of
        its new releases.
        """
        options, store = self.options, self.store
        is_cuda_alone = options.output is None and all(s.redist.name == CUDA for s in local)
        template = Request(
            allow_missing_features=options.allow_missing_features, options=BUILD_OPTIONS
        )
        with self.console.progress("building") as progress:
            try:
                layered = store_to_read(store.root, store.channel, use_shipped=options.shipped_data)
                declared = declared_sets()
                if declared is not None:
                    groups = declared_groups(declared, layered, template)
                else:
                    data = read_set_data(layered)
                    cuda = set(store.manifests(CUDA).labels())
                    labels = {label.line: label for label in data.cuda_labels if label in cuda}
                    added = [step.label for step in local]
                    selected = map(str, added if is_cuda_alone else labels.values())
                    groups = [SetGroup(data, specs_for(template, data, tuple(selected)))]
                attempts = list(make_groups(groups, progress=progress))
                written: Sequence[SetOutcome | None] = [None] * len(attempts)
                if options.output is not None:
                    is_all = declared is not None
                    outcomes = write_sets(attempts, options.output, is_complete=is_all).sets
                    written = outcomes[: len(attempts)]
            except CudaRedistError as error:
                self._fail(error)
                return ()
        package_sets = [result for _, result in attempts if isinstance(result, PackageSet)]
        verdicts = iter(validate_sets(package_sets, cache=self.cache, symbols=layered.symbol_paths))
        sets = []
        for (spec, result), outcome in zip(attempts, written, strict=True):
            if isinstance(result, PackageSet):
                sets.append(bumped_set(spec, result, next(verdicts), outcome))
            else:
                sets.append(failed_set(spec, result, outcome))
        self._codes += [_never_usage(entry.exit_code) for entry in sets]
        return tuple(sets)

    # -- the report

    def _bumped(self, step: Step) -> BumpedRelease:
        name, label, store = step.redist.name, step.label, self.store
        folder = store.manifests(name)
        if folder.read(label) is None:
            return step.report("failed")
        paths = [folder.path_of(label), store.lock_path, store.features(name).path_of(label)]
        if name == CUDA and self.options.process:
            paths += [store.table_path(table.name) for table in TABLES]
        paths += (store.symbol_path / f"{soname}.json" for soname in self._symbols)
        return step.report(
            "incomplete" if step.key in self._failed else "bumped",
            files=tuple(sorted(store.relative(path) for path in paths if path.exists())),
            diff=self._diff(step),
        )

    def _diff(self, step: Step) -> DiffReport | None:
        if step.old is None:
            return None
        old, new = f"{step.redist.name}@{step.old}", f"{step.redist.name}@{step.label}"
        try:
            return compare_releases(old, new, self.store, self.cache, self._known)
        except CudaRedistError as error:
            self._fail(error)
            return None

    @cached_property
    def _known(self) -> KnownVulnerabilities:
        store = self.store
        use_shipped = self.options.shipped_data
        return known_vulnerabilities(
            store_to_read(store.root, store.channel, use_shipped=use_shipped)
        )

    def _fail(
        self,
        failure: CudaRedistError | ErrorReport | None,
        subject: str = "",
        release: tuple[str, str] | None = None,
    ) -> None:
        """Report a failure, if there is one, and mark its release as incomplete."""
        if failure is not None:
            if release:
                self._failed.add(release)
            report = ErrorReport.of(failure).about(subject)
            self._errors.append(report)
            self._codes.append(_never_usage(report.exit_code))

    def _report(
        self, releases: tuple[BumpedRelease, ...], sets: tuple[BumpedSet, ...]
    ) -> BumpReport:
        return BumpReport(
            releases=releases,
            errors=tuple(self._errors),
            findings=tuple(dict.fromkeys(self._findings)),
            features=tuple(self._features),
            tables=tuple(self._tables),
            sets=sets,
            fetched_bytes=self._fetched,
            exit_code=worst_exit_code(self._codes),
        )


def _redists(store: Store, names: list[str] | None, session: Session) -> list[Redist]:
    """Return the selected redistributables, by default the local ones."""
    if names:
        return find_redists(names, store.channel)
    local = require_manifests(store)
    for name in local:
        if name not in REDISTS:
            session.console.warning(f"skipped {name}: not a known redistributable")
    return [REDISTS[name] for name in local if name in REDISTS]


def _never_usage(code: int) -> int:
    """Return a failure's exit code, with usage errors as incomplete.

    The command line was right, even if a stage could not use the data.
    """
    return EXIT_INCOMPLETE if code == EXIT_USAGE else code
