"""build: package sets from the data files, with an index."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from cudaredist.commands.build.report import BuildReport, SetOutcome, SetStatus, SkippedRelease
from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_OK,
    EXIT_USAGE,
    CudaRedistError,
    IncompleteError,
    InvalidFileError,
    UsageError,
    WriteError,
    worst_exit_code,
)
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.names import ManifestStatus
from cudaredist.formats.packageset import PackageSet
from cudaredist.formats.set_index import IndexedSet, PackageSetIndex, SkippedSet
from cudaredist.hints import again, quoted
from cudaredist.primitives import Version, parse_label, sha256_of
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.redists import CUDA
from cudaredist.sets.assemble import build_set, count_statuses
from cudaredist.sets.cross import check_pair
from cudaredist.sets.inputs import SetData
from cudaredist.sets.invariants.symbols import with_symbol_diagnostics
from cudaredist.sets.request_options import PairOptions, RequestOptions
from cudaredist.sets.requested_releases import ALLOWED
from cudaredist.sets.set_coverage import COVERAGE_WARNINGS, JETSON_UNKNOWN
from cudaredist.sets.spec import (
    RefusedSet,
    Request,
    SetSpec,
    requests_by_capability,
    resolve_set,
)
from cudaredist.sets.version_choice import EARLY, find_cuda, newest_patches
from cudaredist.store.files import is_inside, read_file, remove_file, update_output
from cudaredist.store.read_data import read_file_given
from cudaredist.store.selection import ALL
from cudaredist.words import shortened

Spec: TypeAlias = SetSpec | RefusedSet
"""A set to build, or one that cannot be built."""
INDEX_NAME = "index.json"
_SHOWN = 5
_ALLOWED = frozenset({"features-missing", "hollow", ALLOWED, JETSON_UNKNOWN})
"""Findings that only occur if an option allows them, and those that may be wrong."""
BUILD_OPTIONS = RequestOptions(
    system="--system",
    gpu="--gpu",
    forward_compat="--forward-compat",
    available_gcc="--available-gcc",
    redist="--redist",
    also="--also",
    allow="--allow",
    allow_missing_features="--allow-missing-features",
    allow_hollow="--allow-hollow",
)
"""The options of `build`, which other commands that build sets suggest too."""


def specs_for(request: Request, data: SetData, cuda: Sequence[str]) -> list[SetSpec | RefusedSet]:
    """Resolve a request to one spec for each set.

    The default is the newest patch of each minor release that is published for the platform.
    Without a platform or a system, there is a set for each platform of a release. A request for a
    pair has a set for each of its platforms, and its capabilities are those of the target. If all
    capabilities are requested, there is one for each of them. Raises `UsageError` for an error that
    affects every set.
    """
    selected, pins = _selected_releases(request, data, cuda)
    labels = selected
    if not selected:
        labels = data.cuda_labels if ALL in cuda else newest_patches(data)
    requests = _requests_of_pair(replace(request, pins=pins))
    resolved: list[Spec] = []
    for label in dict.fromkeys(labels):
        singles = _requests_for_release(requests, label, data)
        resolved += [resolve_set(single, label, data) for single in singles]
    if request.cross is not None:
        # If one set of a pair is refused, the other one is useless.
        refused = {spec.cuda for spec in resolved if isinstance(spec, RefusedSet)}
        resolved = [s for s in resolved if isinstance(s, RefusedSet) or s.cuda not in refused]
    if not resolved:
        hint = "add --platform PLATFORM or --system SYSTEM"
        raise UsageError("a set requires a platform", hint=hint)
    specs = [
        spec
        for spec in resolved
        if selected or isinstance(spec, SetSpec) or not spec.is_unpublished
    ]
    if not specs and isinstance(resolved[-1], RefusedSet):
        # The newest release has the same error as all others.
        raise resolved[-1].error
    return specs


def _requests_of_pair(request: Request) -> list[Request]:
    """Return the requests for both sets of a pair, or only the request without a pair."""
    cross = request.cross
    if cross is None:
        return [request]
    check_pair(cross, PairOptions("--platform", "--target"))
    host = replace(request, capabilities=(), forward_compat=None)
    return [host, replace(request, platform=cross.target)]


def _requests_for_release(
    requests: Iterable[Request], label: Version, data: SetData
) -> Iterator[Request]:
    """Yield a request for each set of a CUDA release."""
    for request in requests:
        platforms: Sequence[str | None] = [request.platform]
        if request.platform is None and request.system is None:
            platforms = data.cuda_platforms(label)
        for platform in platforms:
            yield from requests_by_capability(replace(request, platform=platform), label, data)


def skipped_releases(data: SetData, cuda: Sequence[str]) -> tuple[SkippedRelease, ...]:
    """Return the local releases that `all` skips, with reasons."""
    if ALL not in cuda:
        return ()
    reason = f"its manifest {EARLY}"
    return tuple(SkippedRelease(cuda=str(label), reason=reason) for label in data.early_labels)


def _selected_releases(
    request: Request, data: SetData, cuda: Sequence[str]
) -> tuple[list[Version], dict[str, str]]:
    """Return the CUDA releases, and the pins of other redistributables."""
    pins = dict(request.pins)
    pin = pins.pop(CUDA, None)
    if pin is None:
        return [] if ALL in cuda else [find_cuda(text, data) for text in cuda], pins
    labels = [find_cuda(text, data) for text in cuda]
    label = find_cuda(pin, data)
    if any(other != label for other in labels):
        message = f"--cuda does not match the cuda release {pin} of --redist or --redist-map"
        raise UsageError(message, hint=f"run `{again(without=['--cuda'])}`")
    return [label], pins


Attempt: TypeAlias = tuple[SetSpec | RefusedSet, PackageSet | CudaRedistError]
"""A spec, with its set or the error."""


def make_sets(
    specs: Sequence[SetSpec | RefusedSet],
    data: SetData,
    *,
    strict: bool = False,
    progress: Progress = NO_PROGRESS,
) -> Iterator[Attempt]:
    """Yield the set of each spec, or its error.

    An error does not stop the other sets. With `strict`, a warning is an error, for example a
    broken package.
    """
    progress.expect(len(specs))
    for spec in specs:
        try:
            result: PackageSet | CudaRedistError = build_one(spec, data, strict=strict)
        except CudaRedistError as error:
            result = error
        yield spec, result
        progress.done()


def write_sets(
    attempts: Iterable[Attempt],
    output: Path,
    *,
    skipped: tuple[SkippedRelease, ...] = (),
    may_write: bool = True,
    is_complete: bool = False,
) -> BuildReport:
    """Write sets to a folder, with an index of all its sets.

    If `output` is a `*.json` file, it is the path of a single set, without an index. If these are
    all sets (`is_complete`), the folder's other sets are removed. The outcome of a set that cannot
    be written has the error. Raises `WriteError` if the index cannot be written.
    """
    is_folder = output.suffix != ".json"
    outcomes, indexed = [], []
    built_paths: set[str] = set()
    refused_releases: set[str] = set()
    for spec, result in attempts:
        if isinstance(spec, RefusedSet) and spec.platform is None and is_folder:
            raise spec.error
        if isinstance(spec, SetSpec):
            built_paths.add(set_path(spec).as_posix())
        else:
            refused_releases.add(str(spec.cuda))
        try:
            outcome, entry = _write(spec, result, output, may_write=may_write)
            indexed.append(entry)
        except CudaRedistError as error:
            outcome = _failure(spec, error)
        outcomes.append(outcome)
    index = None
    if is_folder:
        existing = _read_index(output)
        if is_complete:
            kept = []
            for entry in existing.sets:
                # The path of a refused set is unknown, so all sets of its release stay.
                if entry.path in built_paths or entry.cuda in refused_releases:
                    kept.append(entry)
                else:
                    outcomes.append(_remove(entry, output, may_write=may_write))
            existing = existing.model_copy(update={"sets": tuple(kept), "skipped": ()})
        index = _write_index(output, existing, indexed, outcomes, may_write=may_write)
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
    """Return the most severe exit code of several sets.

    A usage error is more severe than a finding. It is less severe than an incomplete or broken
    input, which affects all sets.
    """
    worst = worst_exit_code(codes)
    is_usage = EXIT_USAGE in codes and worst in {EXIT_OK, EXIT_FINDINGS}
    return EXIT_USAGE if is_usage else worst


def build_one(spec: SetSpec | RefusedSet, data: SetData, *, strict: bool = False) -> PackageSet:
    """Build one set.

    With `strict`, raises `IncompleteError` if the set has a warning. Raises the error of a refused
    set, and `InvalidFileError` if policies contradict each other.
    """
    if data.problems:
        raise InvalidFileError("policy", data.problems)
    if isinstance(spec, RefusedSet):
        raise spec.error
    package_set = with_symbol_diagnostics(build_set(spec), data.symbols)
    if strict:
        _refuse_warnings(package_set)
    return package_set


def set_path(spec: SetSpec) -> Path:
    """Return a set's relative path, such as `linux-sbsa/cuda-13.0.2-9.0a.json`.

    A set with a name has this name instead of its capabilities.
    """
    name = spec.request.name
    parts = [f"cuda-{spec.cuda}"]
    if name is not None:
        return Path(spec.platform, f"cuda-{spec.cuda}-{name}.json")
    if spec.flags.requested:
        parts.append("_".join(spec.flags.requested))
    if not spec.flags.forward_compat and spec.flags.has_plain:
        parts.append("no-forward-compat")
    cross = spec.request.cross
    if cross is not None:
        is_host = spec.platform == cross.host
        parts.append(f"to-{cross.target}" if is_host else f"from-{cross.host}")
    return Path(spec.platform, f"{'-'.join(parts)}.json")


def _write(
    spec: SetSpec | RefusedSet,
    package_set: PackageSet | CudaRedistError,
    output: Path,
    *,
    may_write: bool,
) -> tuple[SetOutcome, IndexedSet]:
    """Write a set to its path in a folder, or to a file. Raises its error, or `WriteError`."""
    if isinstance(package_set, CudaRedistError):
        raise package_set
    if isinstance(spec, RefusedSet):
        raise spec.error
    is_named = output.suffix == ".json"
    path, root = (output, None) if is_named else (output / set_path(spec), output)
    document, counts = _document(package_set, path), count_statuses(package_set)
    status = update_output(path, document, may_write=may_write, root=root)
    flags = package_set.capabilities
    outcome = SetOutcome(
        cuda=package_set.cuda.release,
        platform=package_set.platform.redist_system,
        name=package_set.name,
        status=status,
        path=str(path),
        size=len(document),
        counts=counts,
        requested=tuple(f"{x.redist} {x.label}" for x in (*spec.pins.values(), *spec.also)),
        capabilities=flags.requested,
        diagnostics=package_set.diagnostics,
        exit_code=EXIT_FINDINGS if status == "would-write" else EXIT_OK,
    )
    is_single = len(flags.requested) == 1 and not flags.forward_compat
    entry = IndexedSet(
        path=set_path(spec).as_posix(),
        sha256=sha256_of(document),
        cuda=outcome.cuda,
        platform=outcome.platform,
        attribute=package_set.full_name if package_set.name else package_set.cuda.attribute,
        name=package_set.name,
        capabilities=flags.requested,
        architecture=flags.real_arches[0] if is_single else None,
        counts=counts,
    )
    return outcome, entry


def _document(package_set: PackageSet, path: Path) -> bytes:
    """Return the document of a set, or the existing one if only the hashes of inputs changed.

    Otherwise, each update of a table would change all sets.
    """
    document, existing = package_set.canonical(), read_file(path)
    if existing is None or existing == document:
        return document
    try:
        old, new = json.loads(existing), json.loads(document)
    except (ValueError, RecursionError):
        return document
    if not isinstance(old, dict):
        return document
    return existing if old | {"inputs": ()} == new | {"inputs": ()} else document


def _failure(spec: SetSpec | RefusedSet, error: CudaRedistError) -> SetOutcome:
    return SetOutcome(
        cuda=str(spec.cuda),
        platform=spec.platform or "",
        name=spec.request.name if isinstance(spec, SetSpec) else None,
        status="failed",
        error=ErrorReport.of(error),
        exit_code=error.exit_code,
    )


def _refuse_warnings(package_set: PackageSet) -> None:
    """Raise `IncompleteError` if a set has a warning.

    Warnings that an option allows do not count. Without requested capabilities, a package may lack
    some default capabilities.
    """
    allowed = _ALLOWED if package_set.capabilities.requested else _ALLOWED | COVERAGE_WARNINGS
    warnings = [
        f"{entry.subject}: {entry.text}"
        for entry in package_set.diagnostics
        if entry.level != "note" and entry.code not in allowed
    ]
    if warnings:
        about = f"CUDA {package_set.cuda.release} on {package_set.platform.redist_system}"
        call = again(without=["--strict"])
        hint = f"to write the set with these warnings in its diagnostics, run `{call}`"
        texts = "; ".join(shortened(warnings, _SHOWN))
        raise IncompleteError(f"warnings for {about}: {texts}", hint=hint)


def _read_index(output: Path) -> PackageSetIndex:
    """Return a folder's index, without sets that no longer exist."""
    path = output / INDEX_NAME
    data = read_file(path)
    if data is None:
        return PackageSetIndex(schema_version=1, sets=(), skipped=())
    index = read_file_given(path, data, PackageSetIndex)
    sets = tuple(entry for entry in index.sets if (output / entry.path).is_file())
    return index.model_copy(update={"sets": sets})


def _remove(entry: IndexedSet, output: Path, *, may_write: bool) -> SetOutcome:
    """Remove a set of the index, unless its file was changed since."""
    path = output / entry.path
    status: SetStatus = "removed" if may_write else "would-remove"
    error: CudaRedistError | None = None
    if not is_inside(path, output):
        message = f"{path} is not declared, but leads out of {output} by a link"
        error = UsageError(message, hint=f"run `rm {quoted(str(path))}`")
    elif sha256_of(read_file(path) or b"") != entry.sha256:
        error = UsageError(f"{path} is not declared, but was changed", hint=f"run `rm {path}`")
    elif may_write:
        try:
            remove_file(path)
        except WriteError as failure:
            error = failure
    code = EXIT_OK if may_write else EXIT_FINDINGS
    return SetOutcome(
        cuda=entry.cuda,
        platform=entry.platform,
        name=entry.name,
        status="failed" if error else status,
        path=str(path),
        error=ErrorReport.of(error) if error else None,
        exit_code=error.exit_code if error else code,
    )


def _write_index(
    output: Path,
    existing: PackageSetIndex,
    indexed: Sequence[IndexedSet],
    outcomes: Sequence[SetOutcome],
    *,
    may_write: bool,
) -> ManifestStatus:
    """Write a folder's index, with the sets of this run and existing sets."""
    path = output / INDEX_NAME
    sets = {entry.path: entry for entry in (*existing.sets, *indexed)}
    tried = {(outcome.cuda, outcome.platform) for outcome in outcomes}
    skipped = [entry for entry in existing.skipped if (entry.cuda, entry.platform) not in tried]
    skipped += [
        SkippedSet(cuda=o.cuda, platform=o.platform, reason=o.error.message)
        for o in outcomes
        if o.error is not None
    ]
    index = PackageSetIndex(
        schema_version=1,
        sets=tuple(sorted(sets.values(), key=_order)),
        skipped=tuple(sorted(skipped, key=_order)),
    )
    is_read_only = any(o.error is not None and o.error.kind == WriteError.kind for o in outcomes)
    may_write = may_write and not is_read_only
    return update_output(path, index.canonical(), may_write=may_write, root=output)


def _order(entry: IndexedSet | SkippedSet) -> tuple[object, ...]:
    return (parse_label(entry.cuda), entry.platform, getattr(entry, "path", ""))
