"""audit: judge programs by the local data or by a package set."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from cudaredist.audit.gates import Gates
from cudaredist.audit.judge import Knowledge, judge_program
from cudaredist.audit.program import Catalog, KnownLibrary, label_fits
from cudaredist.errors import UnknownNameError, UsageError
from cudaredist.pipeline.read_data import (
    examined_archives,
    load_features,
    load_manifest,
    require_manifests,
)
from cudaredist.pipeline.read_program import ProgramReader
from cudaredist.pipeline.tables.layered_tables import read_gpus
from cudaredist.pipeline.toolkit.materialize_set import read_package_set
from cudaredist.primitives import Version, parse_label
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.reports.audit_reports import AuditReport
from cudaredist.schema.packageset import PackageSet
from cudaredist.schema.policy import LibraryPolicy
from cudaredist.schema.registry import read_own_file
from cudaredist.store.data_folder import Store
from cudaredist.store.symbol_folder import LayeredSymbols, table_name
from cudaredist.tables.gpus.coverage import CoverageRules
from cudaredist.tables.symbols.symbol_table import KEY_SIZE


def audit_program(
    paths: Sequence[Path],
    store: Store,
    gates: Gates,
    *,
    package_set: Path | None = None,
    progress: Progress = NO_PROGRESS,
) -> AuditReport:
    """Return the report on the program in some paths.

    It is compared with a package set, or else with all local releases. Raises `UsageError` for a
    gate with an unknown release or capability.
    """
    catalog, title = Catalog.of(_known_libraries(store)), "all local releases"
    if package_set is not None:
        chosen = read_package_set(package_set)[0]
        catalog = Catalog.of(_libraries_of_set(chosen))
        title = f"{package_set} (CUDA {chosen.cuda.release}, {chosen.platform.redist_system})"
    gpus = read_gpus(store)
    rules = None if gpus is None else CoverageRules(gpus.table)
    _check_gates(gates, catalog, rules)
    program = ProgramReader(progress=progress)
    program.read_all(paths)
    return judge_program(
        program.files,
        Knowledge(
            title=title,
            channel=store.channel,
            catalog=catalog,
            policy=read_own_file(store.read_policy("libraries"), LibraryPolicy),
            rules=rules,
            tables=LayeredSymbols(store.symbol_paths).tables,
        ),
        gates,
        inputs=program.inputs,
        notes=program.notes,
        errors=program.errors,
    )


def _check_gates(gates: Gates, catalog: Catalog, rules: CoverageRules | None) -> None:
    if gates.cuda is not None:
        labels = catalog.labels("cuda")
        try:
            is_known = any(label_fits(label, gates.cuda) for label in labels)
        except ValueError as error:
            raise UsageError(f"--cuda {gates.cuda}: {error}") from None
        if not is_known:
            raise UsageError(
                f"no local release of CUDA {gates.cuda}",
                hint=f"local releases: {', '.join(map(str, labels)) or 'none'}",
            )
    if gates.max_glibc is not None:
        try:
            Version.parse(gates.max_glibc)
        except ValueError as error:
            raise UsageError(f"--max-glibc {gates.max_glibc}: {error}") from None
    known = set(map(str, rules.capabilities)) if rules is not None else set()
    for name in gates.gpus:
        if known and name not in known:
            raise UnknownNameError("compute capability", name, known)


def _known_libraries(store: Store) -> Iterator[KnownLibrary]:
    """Yield the libraries of all local releases, without stubs."""
    for redist in require_manifests(store):
        for label in store.manifests(redist).labels():
            features = load_features(store, redist, label)
            if features is None:
                continue
            wheels = {
                (archive.package, archive.sha256): archive.relative_path
                for archive in load_manifest(store, redist, label).archives
                if archive.relative_path.endswith(".whl")
            }
            for package, entry, _, archive in examined_archives(features):
                for library in archive.libraries:
                    if not library.stub:
                        yield KnownLibrary(
                            soname=table_name(library),
                            redist=redist,
                            label=label,
                            package=package,
                            version=entry.version or archive.version,
                            platform=archive.platform,
                            variant=archive.variant,
                            archive=(archive.sha256 or "")[:KEY_SIZE],
                            wheel=wheels.get((package, archive.sha256)),
                        )


def _libraries_of_set(package_set: PackageSet) -> Iterator[KnownLibrary]:
    """Yield the libraries of a package set, without stubs."""
    for package in package_set.packages.values():
        archive, redist, label = package.archive, package.redist, package.release
        if package.status != "available" or archive is None or redist is None or label is None:
            continue
        is_wheel = archive.relative_path.endswith(".whl")
        for library in package.provides:
            if not library.stub:
                yield KnownLibrary(
                    soname=library.soname,
                    redist=redist,
                    label=parse_label(label),
                    package=package.pname,
                    version=package.version,
                    platform=package_set.platform.redist_system,
                    variant=archive.cuda_variant,
                    archive=archive.sha256[:KEY_SIZE],
                    wheel=archive.relative_path if is_wheel else None,
                )
