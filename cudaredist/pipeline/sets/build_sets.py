"""build: package sets from the data files, one document each, and an index beside them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_OK,
    EXIT_USAGE,
    CudaRedistError,
    IncompleteError,
    InvalidFileError,
    UsageError,
    WriteError,
    shortened,
    worst_exit_code,
)
from cudaredist.jsontext import canonical_json
from cudaredist.packagesets.assemble import build_set
from cudaredist.packagesets.flags import known_capabilities
from cudaredist.packagesets.inputs import SetData
from cudaredist.packagesets.set_coverage import COVERAGE_WARNINGS
from cudaredist.packagesets.spec import RefusedSet, Request, SetSpec, resolve_set
from cudaredist.packagesets.version_choice import EARLY, find_cuda, newest_patches
from cudaredist.pipeline.read_data import read_file_given
from cudaredist.pipeline.selection import ALL
from cudaredist.primitives import Version, parse_label, sha256_of
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.redists import CUDA
from cudaredist.reports.report import ErrorReport, ManifestStatus
from cudaredist.reports.set_reports import BuildReport, SetOutcome, SkippedRelease
from cudaredist.schema.packageset import IndexedSet, PackageSet, PackageSetIndex, SkippedSet, Status
from cudaredist.store.files import read_file, write_output

INDEX_NAME = "index.json"
_SHOWN = 5
_OTHER_PLACE = "make room or permission there, or name another place with --output"
_ALLOWED = frozenset({"features-missing", "hollow"})
"""Findings that there are only where an option allows them."""
_STATUSES: tuple[Status, ...] = ("available", "broken", "unsupported", "withheld", "foreign")


def specs_for(request: Request, data: SetData, cuda: Sequence[str]) -> list[SetSpec | RefusedSet]:
    """Resolve a request to one spec for each set.

    The releases are those named, or `all`; by default the newest patch of each minor that is
    published for the platform. Without a platform or a system, there is a set for each platform
    that a release is published for. Raises `UsageError` for what is wrong with every set.
    """
    named, pins = _named_releases(request, data, cuda)
    capabilities = known_capabilities(request.capabilities, data.gpus)
    request = replace(request, pins=pins, capabilities=capabilities)
    labels = named or (data.cuda_labels if ALL in cuda else newest_patches(data))
    is_for_all = request.platform is None and request.system is None
    resolved = [
        resolve_set(replace(request, platform=platform), label, data)
        for label in dict.fromkeys(labels)
        for platform in (data.cuda_platforms(label) if is_for_all else [request.platform])
    ]
    if not resolved:
        raise UsageError("a set is for a platform", hint="name --platform or --system")
    specs = [
        spec for spec in resolved if named or isinstance(spec, SetSpec) or not spec.is_unpublished
    ]
    if not specs and isinstance(resolved[-1], RefusedSet):
        # What is wrong with the newest release is wrong with all.
        raise resolved[-1].error
    return specs


def skipped_releases(data: SetData, cuda: Sequence[str]) -> tuple[SkippedRelease, ...]:
    """Return the local releases that `all` skips, with the reason."""
    if ALL not in cuda:
        return ()
    reason = f"its manifest {EARLY}"
    return tuple(SkippedRelease(cuda=str(label), reason=reason) for label in data.early_labels)


def _named_releases(
    request: Request, data: SetData, cuda: Sequence[str]
) -> tuple[list[Version], dict[str, str]]:
    """Return the CUDA releases named, and the pins of the other redistributables."""
    pins = dict(request.pins)
    pinned = pins.pop(CUDA, None)
    if pinned is None:
        return [] if ALL in cuda else [find_cuda(text, data) for text in cuda], pins
    labels = [find_cuda(text, data) for text in cuda]
    label = find_cuda(pinned, data)
    if any(other != label for other in labels):
        raise UsageError(
            f"--cuda is not the release that the map names for cuda, {pinned}",
            hint="leave --cuda out, or take cuda out of the map",
        )
    return [label], pins


Attempt: TypeAlias = tuple[SetSpec | RefusedSet, PackageSet | CudaRedistError]
"""A spec, and its set or the reason why there is none."""


def make_sets(
    specs: Sequence[SetSpec | RefusedSet],
    data: SetData,
    *,
    strict: bool = False,
    progress: Progress = NO_PROGRESS,
) -> Iterator[Attempt]:
    """Yield the set of each spec; one that cannot be built does not stop the others.

    With `strict` a set with a warning, such as a broken package, counts as one of those.
    """
    progress.expect(len(specs))
    for spec in specs:
        try:
            made: PackageSet | CudaRedistError = build_one(spec, data, strict=strict)
        except CudaRedistError as error:
            made = error
        yield spec, made
        progress.done()


def write_sets(
    attempts: Iterable[Attempt],
    output: Path,
    *,
    skipped: tuple[SkippedRelease, ...] = (),
    may_write: bool = True,
) -> BuildReport:
    """Write sets to a folder, with an index of all sets in it.

    `output` may be the one file (`*.json`) of a single set; there is no index then. A set that
    cannot be written is an outcome with its error. Raises `WriteError` for the index.
    """
    is_folder = output.suffix != ".json"
    outcomes, indexed = [], []
    for spec, made in attempts:
        path = output / _set_path(spec) if is_folder else output
        outcome, entry = _write(made, spec, path, may_write=may_write)
        outcomes.append(outcome)
        if entry is not None:
            indexed.append(entry)
    index = _put_index(output, indexed, outcomes, may_write=may_write) if is_folder else None
    codes = [outcome.exit_code for outcome in outcomes]
    if index == "would-write":
        codes.append(EXIT_FINDINGS)
    return BuildReport(
        output=str(output),
        sets=tuple(outcomes),
        skipped=skipped,
        index=index,
        exit_code=_worst(codes),
    )


def _worst(codes: Sequence[int]) -> int:
    """Return the one code for many sets: a request that cannot be met weighs more than a finding.

    Less than an incomplete or a broken input, by which others cannot be met either.
    """
    worst = worst_exit_code(codes)
    is_usage = EXIT_USAGE in codes and worst in {EXIT_OK, EXIT_FINDINGS}
    return EXIT_USAGE if is_usage else worst


def build_one(spec: SetSpec | RefusedSet, data: SetData, *, strict: bool = False) -> PackageSet:
    """Build one set; with `strict`, raise `IncompleteError` if it has a warning.

    Raises the error of a refused set, and `InvalidFileError` if policies contradict themselves.
    """
    if data.problems:
        raise InvalidFileError("policy", data.problems)
    if isinstance(spec, RefusedSet):
        raise spec.error
    package_set = build_set(spec, data)
    if strict:
        _refuse_warnings(package_set)
    return package_set


def set_bytes(package_set: PackageSet) -> bytes:
    """Return the document of a set as it is written."""
    return canonical_json(package_set.model_dump(mode="json", by_alias=True))


def _set_path(spec: SetSpec | RefusedSet) -> Path:
    """Return the path of a set below the output folder: `linux-sbsa/cuda-13.0.2-9.0a.json`."""
    suffix = f"-{'_'.join(spec.capabilities)}" if spec.capabilities else ""
    if isinstance(spec, RefusedSet) and spec.platform is None:
        raise spec.error
    if isinstance(spec, SetSpec) and not spec.flags.forward_compat and spec.flags.has_plain:
        suffix += "-no-forward-compat"
    return Path(str(spec.platform)) / f"cuda-{spec.cuda}{suffix}.json"


def count_statuses(package_set: PackageSet) -> dict[Status, int]:
    """Return how many packages have each status; other names of packages do not count."""
    counts = Counter(
        package.status for package in package_set.packages.values() if package.alias_of is None
    )
    return {status: counts[status] for status in _STATUSES}


def _write(
    made: PackageSet | CudaRedistError,
    spec: SetSpec | RefusedSet,
    path: Path,
    *,
    may_write: bool,
) -> tuple[SetOutcome, IndexedSet | None]:
    if isinstance(made, CudaRedistError):
        return _failure(spec, made), None
    document = set_bytes(made)
    try:
        is_same = read_file(path) == document
        if may_write and not is_same:
            write_output(path, document)
    except CudaRedistError as error:
        return _failure(spec, error), None
    counts = count_statuses(made)
    status: ManifestStatus = "unchanged" if is_same else "written" if may_write else "would-write"
    outcome = SetOutcome(
        cuda=made.cuda.release,
        platform=made.platform.redist_system,
        status=status,
        path=str(path),
        size=len(document),
        counts=counts,
        diagnostics=made.diagnostics,
        exit_code=EXIT_FINDINGS if status == "would-write" else EXIT_OK,
    )
    entry = IndexedSet(
        path=f"{path.parent.name}/{path.name}",
        sha256=sha256_of(document),
        cuda=made.cuda.release,
        platform=made.platform.redist_system,
        attribute=made.cuda.attribute,
        capabilities=made.capabilities.requested,
        counts=counts,
    )
    return outcome, entry


def _failure(spec: SetSpec | RefusedSet, error: CudaRedistError) -> SetOutcome:
    if isinstance(error, WriteError):
        error.hint = _OTHER_PLACE
    return SetOutcome(
        cuda=str(spec.cuda),
        platform=spec.platform or "",
        status="failed",
        error=ErrorReport.of(error),
        exit_code=error.exit_code,
    )


def _refuse_warnings(package_set: PackageSet) -> None:
    """Raise `IncompleteError` for a set with a warning, but for those of what was allowed.

    A package need not support every default capability, only those that were requested.
    """
    allowed = _ALLOWED if package_set.capabilities.requested else _ALLOWED | COVERAGE_WARNINGS
    warnings = [
        entry
        for entry in package_set.diagnostics
        if entry.level != "note" and entry.code not in allowed
    ]
    if warnings:
        lines = shortened([f"{entry.subject}: {entry.text}" for entry in warnings], _SHOWN)
        raise IncompleteError(
            f"CUDA {package_set.cuda.release} on {package_set.platform.redist_system}, under "
            f"--strict: {'; '.join(lines)}",
            hint="without --strict the set is written, and the same is in its diagnostics",
        )


def _put_index(
    output: Path, indexed: Sequence[IndexedSet], outcomes: Sequence[SetOutcome], *, may_write: bool
) -> ManifestStatus:
    """Put the index of all sets in a folder: those of this run, and those it already names.

    Those that the folder no longer has go, and those that lie there under `--check` stay.
    """
    path = output / INDEX_NAME
    data = read_file(path)
    listed = () if data is None else read_file_given(path, data, PackageSetIndex).sets
    sets = {entry.path: entry for entry in listed if (output / entry.path).is_file()}
    sets |= {entry.path: entry for entry in indexed}
    skipped = [
        SkippedSet(cuda=o.cuda, platform=o.platform, reason=o.error.message)
        for o in outcomes
        if o.error is not None
    ]
    index = PackageSetIndex(
        schema_version=1,
        sets=tuple(sorted(sets.values(), key=_order)),
        skipped=tuple(sorted(skipped, key=_order)),
    )
    document = canonical_json(index.model_dump(mode="json"))
    if data == document:
        return "unchanged"
    is_read_only = any(o.error is not None and o.error.kind == WriteError.kind for o in outcomes)
    if is_read_only or not may_write:
        return "would-write"
    write_output(path, document)
    return "written"


def _order(entry: IndexedSet | SkippedSet) -> tuple[object, ...]:
    path = entry.path if isinstance(entry, IndexedSet) else ""
    return (parse_label(entry.cuda), entry.platform, path)
