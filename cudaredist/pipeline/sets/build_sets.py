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
    UsageError,
    WriteError,
    worst_exit_code,
)
from cudaredist.jsontext import canonical_json
from cudaredist.packagesets import (
    Request,
    SetData,
    build_set,
    check_platform,
    find_cuda,
    find_release,
    newest_patches,
    resolve_platform,
)
from cudaredist.pipeline.read_data import read_file_given
from cudaredist.pipeline.selection import ALL
from cudaredist.primitives import parse_label, sha256_of
from cudaredist.reports.report import ErrorReport, ManifestStatus
from cudaredist.reports.set_reports import BuildReport, SetOutcome
from cudaredist.schema import (
    IndexedSet,
    PackageSet,
    PackageSetIndex,
    SkippedSet,
    Status,
)
from cudaredist.source import NoProgress, Progress
from cudaredist.store import read_file, write_output

INDEX_NAME = "index.json"
_SHOWN = 5
_OTHER_PLACE = "make room or permission there, or name another place with --output"
_ALLOWED = frozenset({"features-missing", "hollow"})
"""Findings that there are only where an option allows them."""
_STATUSES: tuple[Status, ...] = ("available", "broken", "unsupported", "withheld", "foreign")


def requests_for(template: Request, data: SetData, cuda: Sequence[str]) -> list[Request]:
    """Return a request for each set meant: the releases named, or `all`, else each minor's newest.

    Without a platform or a system, one for each platform that the release is published for; with
    one, and no release named, those that are published for it. Raises `UsageError` for what would
    be wrong with every set.
    """
    named = [] if ALL in cuda else [find_cuda(text, data) for text in cuda]
    every = data.cuda_labels() if ALL in cuda else []
    labels = named or every or newest_patches(data)
    for redist, release in (*template.pins.items(), *template.also):
        find_release(redist, release, data)
    if template.platform is not None:
        check_platform(template.platform, data)
    requests = []
    for label in dict.fromkeys(labels):
        of_release = replace(template, cuda=str(label))
        if template.platform is None and template.system is None:
            requests += [replace(of_release, platform=name) for name in data.cuda_platforms(label)]
        elif named or template.allow_hollow or _is_published(of_release, data):
            requests.append(of_release)
    if not requests:
        # What is wrong with the newest release is wrong with all.
        resolve_platform(replace(template, cuda=str(labels[-1])), data)
    return requests


def _is_published(request: Request, data: SetData) -> bool:
    """Say whether a release is published for the platform meant; also where that is not clear."""
    try:
        platform = resolve_platform(replace(request, allow_hollow=True), data)
    except UsageError:
        return True
    return platform in data.cuda_platforms(find_cuda(request.cuda, data))


Attempt: TypeAlias = tuple[Request, PackageSet | CudaRedistError]
"""A request, and its set or the reason why there is none."""


def make_sets(
    requests: Sequence[Request],
    data: SetData,
    *,
    strict: bool = False,
    progress: Progress | None = None,
) -> Iterator[Attempt]:
    """Yield the set of each request; one that cannot be built does not stop the others.

    With `strict` a set with a warning, such as a broken package, counts as one of those.
    """
    shown = progress or NoProgress()
    shown.expect(len(requests))
    for request in requests:
        try:
            made: PackageSet | CudaRedistError = build_one(request, data, strict=strict)
        except CudaRedistError as error:
            made = error
        yield request, made
        shown.done(f"{request.cuda} {request.platform or request.system or ''}", 0)


def write_sets(
    attempts: Iterable[Attempt], data: SetData, output: Path, *, may_write: bool = True
) -> BuildReport:
    """Write sets to a folder, with an index of all sets in it.

    `output` may be the one file (`*.json`) of a single set; there is no index then. A set that
    cannot be written is an outcome with its error. Raises `WriteError` for the index.
    """
    is_folder = output.suffix != ".json"
    outcomes, indexed = [], []
    for request, made in attempts:
        path = output / set_path(request, data) if is_folder else output
        outcome, entry = _write(made, request, path, may_write=may_write)
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


def build_one(request: Request, data: SetData, *, strict: bool = False) -> PackageSet:
    """Return the set asked for; with `strict` raise `IncompleteError` for one with a warning."""
    package_set = build_set(request, data)
    if strict:
        _refuse_warnings(package_set)
    return package_set


def set_bytes(package_set: PackageSet) -> bytes:
    """Return the document of a set as it is written."""
    return canonical_json(package_set.model_dump(mode="json", by_alias=True))


def set_path(request: Request, data: SetData) -> Path:
    """Return where the set of a request lies: `linux-sbsa/cuda-13.0.2-9.0a.json`."""
    cuda = find_cuda(request.cuda, data)
    platform = request.platform or resolve_platform(request, data)
    suffix = f"-{'_'.join(request.capabilities)}" if request.capabilities else ""
    return Path(platform) / f"cuda-{cuda}{suffix}.json"


def count_statuses(package_set: PackageSet) -> dict[Status, int]:
    """Return how many packages have each status; other names of packages do not count."""
    counts = Counter(
        package.status for package in package_set.packages.values() if package.alias_of is None
    )
    return {status: counts[status] for status in _STATUSES}


def _write(
    made: PackageSet | CudaRedistError, request: Request, path: Path, *, may_write: bool
) -> tuple[SetOutcome, IndexedSet | None]:
    if isinstance(made, CudaRedistError):
        return _failure(request, path, made), None
    document = set_bytes(made)
    try:
        is_same = read_file(path) == document
        if may_write and not is_same:
            write_output(path, document)
    except CudaRedistError as error:
        return _failure(request, path, error), None
    counts = count_statuses(made)
    status: ManifestStatus = "unchanged" if is_same else "written" if may_write else "would-write"
    outcome = SetOutcome(
        cuda=made.cuda.release,
        platform=made.platform.redist_system,
        status=status,
        path=str(path),
        bytes=len(document),
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


def _failure(request: Request, path: Path, error: CudaRedistError) -> SetOutcome:
    if isinstance(error, WriteError):
        error.hint = _OTHER_PLACE
    return SetOutcome(
        cuda=request.cuda,
        platform=path.parent.name,
        status="failed",
        path=None,
        bytes=0,
        counts={},
        error=ErrorReport.of(error),
        exit_code=error.exit_code,
    )


def _refuse_warnings(package_set: PackageSet) -> None:
    """Raise `IncompleteError` for a set with a warning, but for those of what was allowed."""
    warnings = [
        entry
        for entry in package_set.diagnostics
        if entry.level != "note" and entry.code not in _ALLOWED
    ]
    if warnings:
        text = "; ".join(f"{entry.subject}: {entry.text}" for entry in warnings[:_SHOWN])
        more = f"; and {len(warnings) - _SHOWN} more" if len(warnings) > _SHOWN else ""
        raise IncompleteError(
            f"CUDA {package_set.cuda.release} on {package_set.platform.redist_system}, under "
            f"--strict: {text}{more}",
            hint="without --strict the set is written, and the same is in its diagnostics",
        )


def _put_index(
    output: Path, indexed: Sequence[IndexedSet], outcomes: Sequence[SetOutcome], *, may_write: bool
) -> ManifestStatus:
    """Put the index of all sets in a folder: those of this run, and those it already names.

    Those that the folder no longer has go, and those that lie there under `--check` stay.
    """
    path = output / INDEX_NAME
    sets = {entry.path: entry for entry in _held(path) if (output / entry.path).is_file()}
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
    if read_file(path) == document:
        return "unchanged"
    is_read_only = any(o.error is not None and o.error.kind == WriteError.kind for o in outcomes)
    if is_read_only or not may_write:
        return "would-write"
    write_output(path, document)
    return "written"


def _held(path: Path) -> tuple[IndexedSet, ...]:
    data = read_file(path)
    if data is None:
        return ()
    return read_file_given(path, data, PackageSetIndex).sets


def _order(entry: IndexedSet | SkippedSet) -> tuple[object, ...]:
    path = entry.path if isinstance(entry, IndexedSet) else ""
    return (parse_label(entry.cuda), entry.platform, path)
