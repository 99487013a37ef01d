"""validate: check manifests and our own files."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cudaredist.commands.validate.report import FileVerdict, ValidateReport
from cudaredist.errors import (
    EXIT_CONTENT,
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    EXIT_OK,
    CudaRedistError,
    IncompleteError,
    InvalidFileError,
    Problem,
    problems_of,
    worst_exit_code,
)
from cudaredist.features.legacy import is_legacy
from cudaredist.formats.base import OwnModel
from cudaredist.formats.packageset import PackageSet
from cudaredist.formats.registry import (
    FILE_KINDS,
    LEGACY_FEATURES,
    kind_of_document,
    parse_own_json,
    read_own_file,
    schema_problems,
    schema_version_of,
)
from cudaredist.jsontext import canonical_json
from cudaredist.manifests.manifest_values import Archive, Manifest
from cudaredist.primitives import label_of_manifest_name
from cudaredist.redists import REDISTS
from cudaredist.sets.invariants.documents import (
    NEED_FEATURES,
    RUN_INVARIANTS,
    Violation,
    check_run,
    check_set,
)
from cudaredist.sets.invariants.files import (
    FILE_INVARIANTS,
    SetFiles,
    check_files,
    read_files,
)
from cudaredist.sets.invariants.symbols import (
    check_set_symbols,
    symbol_violations,
    unchecked_symbols,
)
from cudaredist.sets.load import overlay_model, read_overlay_policy
from cudaredist.store.cache import Cache
from cudaredist.store.files import read_file, write_output
from cudaredist.store.locate import store_to_read
from cudaredist.store.symbol_folder import LayeredSymbols
from cudaredist.store.upstream import validate_manifest
from cudaredist.words import plural, shortened


class SetVerdict(NamedTuple):
    """The violated and the unchecked invariants of a package set."""

    violations: tuple[Violation, ...]
    unchecked: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """Return the violations as text, at most a hundred."""
        return shortened(self.violations)


def validate_files(
    paths: Sequence[Path], *, cache: Cache, strict: bool = False, fix: bool = False
) -> ValidateReport:
    """Validate files, after detecting their kind from the contents.

    With `strict`, a manifest with warnings is not valid. A file of ours that is not in canonical
    form is a finding, and so is a package set that violates an invariant. With `fix`, valid files
    of ours are written in canonical form.
    """
    results = [_verdict(path, strict=strict, fix=fix) for path in paths]
    verdicts = [verdict for verdict, _ in results]
    sets = {
        place: model for place, (_, model) in enumerate(results) if isinstance(model, PackageSet)
    }
    manifests = {
        place: model for place, (_, model) in enumerate(results) if isinstance(model, Manifest)
    }
    for position, warnings in _path_clashes(paths, manifests).items():
        update = {"warnings": shortened([*verdicts[position].warnings, *warnings])}
        verdicts[position] = verdicts[position].model_copy(update=update)
    of_sets = validate_sets(list(sets.values()), cache=cache)
    for position, of_set in zip(sets, of_sets, strict=True):
        verdicts[position] = _with_violations(verdicts[position], of_set)
    code = worst_exit_code(verdict.exit_code for verdict in verdicts)
    return ValidateReport(files=tuple(verdicts), exit_code=code)


def validate_sets(
    sets: Sequence[PackageSet], *, cache: Cache, symbols: Sequence[Path] = ()
) -> list[SetVerdict]:
    """Check the invariants of package sets, alone and together.

    The cache provides the file lists of archives. The folders `symbols` provide their symbols, by
    default those of the local and the shipped data.
    """
    channels = Counter(package_set.channel for package_set in sets)
    verdicts = []
    tables = LayeredSymbols(symbols or store_to_read(None, "redist").symbol_paths)
    for package_set, of_run in zip(sets, check_run(sets), strict=True):
        files, links = read_files(package_set, cache), check_set_symbols(package_set, tables)
        of_files = (*check_set(package_set), *check_files(files))
        violations = (*of_files, *of_run, *symbol_violations(links))
        unchecked = _unchecked(files, is_alone=channels[package_set.channel] == 1)
        verdicts.append(SetVerdict(violations, (*unchecked, *unchecked_symbols(links))))
    return verdicts


def _path_clashes(paths: Sequence[Path], manifests: Mapping[int, Manifest]) -> dict[int, list[str]]:
    """Warn about manifests in a folder that use one path for different archives."""
    first: dict[tuple[Path, str], tuple[int, Archive]] = {}
    warnings: dict[int, list[str]] = defaultdict(list)
    for position, manifest in manifests.items():
        for archive in manifest.archives:
            key = (paths[position].parent, archive.relative_path)
            other, known = first.setdefault(key, (position, archive))
            if archive.sha256 != known.sha256:
                warnings[position].append(
                    f"{archive.relative_path} is a different file in {paths[other].name}: a server "
                    "has only one of them, so the download of the other one fails"
                )
    return warnings


def _with_violations(verdict: FileVerdict, of_set: SetVerdict) -> FileVerdict:
    names = ", ".join(dict.fromkeys(violation.invariant for violation in of_set.violations))
    return verdict.model_copy(
        update={
            "summary": verdict.summary + (f", but it violates {names}" if names else ""),
            "problems": of_set.problems,
            "unchecked": of_set.unchecked,
            "exit_code": EXIT_FINDINGS if of_set.violations else verdict.exit_code,
        }
    )


def _unchecked(files: SetFiles, *, is_alone: bool) -> Iterator[str]:
    """Yield the invariants that were not fully checked, with the reasons."""
    available = list(files.package_set.available.values())
    unexamined = sum(not entry.contents for entry in available)
    if unexamined:
        names = ", ".join(NEED_FEATURES)
        yield f"{names} (partially): {unexamined} of {len(available)} packages were not examined"
    if files.unknown:
        names, count = ", ".join(FILE_INVARIANTS), len(files.unknown)
        yield f"{names}: the cache lacks the files of {count} of {len(available)} packages"
    if files.known and files.rules is None:
        yield "I27: the set was made with a different gpus.json than the local ones"
    if is_alone:
        yield f"{', '.join(RUN_INVARIANTS)}: no other set of its channel is given"


def _verdict(
    path: Path, *, strict: bool, fix: bool
) -> tuple[FileVerdict, PackageSet | Manifest | None]:
    """Return a file's verdict, and its package set or manifest."""
    kind: str | None = None
    try:
        data = read_file(path)
        if data is None:
            raise IncompleteError("no such file")
        document = parse_own_json(data)
        kind = _kind_at(path, document)
        if kind == "manifest":
            return _manifest_verdict(path, data, strict=strict)
        canonical = canonical_json(document)
        if fix and kind in FILE_KINDS and canonical != data:
            _own_verdict(path, kind, document, data)
            write_output(path, canonical)
            verdict, model = _own_verdict(path, kind, document, canonical)
            summary = f"{verdict.summary}, written in canonical form"
            return verdict.model_copy(update={"summary": summary}), model
        return _own_verdict(path, kind, document, data)
    except CudaRedistError as error:
        is_unread = isinstance(error, IncompleteError)
        invalid = FileVerdict(
            path=str(path),
            kind=kind,
            valid=False,
            summary=error.message if is_unread else f"not a valid {kind or 'JSON'} file",
            problems=() if is_unread else problems_of(error),
            exit_code=EXIT_INCOMPLETE if is_unread else EXIT_CONTENT,
        )
        return invalid, None


def _kind_at(path: Path, document: object) -> str:
    """Return a document's kind by its keys or its path."""
    if schema_version_of(document) is None:
        return LEGACY_FEATURES if is_legacy(document) else "manifest"
    if overlay_model(path) is not None:
        return f"policy-{path.stem}"
    own = kind_of_document(document)
    if own is not None:
        return own.name
    known = ", ".join(FILE_KINDS)
    problem = Problem("", f"has a schema_version, but is not of a known kind ({known})")
    raise InvalidFileError("data file", [problem])


def _own_verdict(
    path: Path, kind: str, document: object, data: bytes
) -> tuple[FileVerdict, PackageSet | None]:
    """Return the verdict on our own file or a nixpkgs feature file."""
    problems = schema_problems(document, kind)
    model: OwnModel | None = None
    if problems and overlay_model(path) is None:
        raise InvalidFileError(f"{kind} file", problems)
    if problems:
        # An overlay's policy is incomplete alone. Validate it together with the shipped policy.
        read_overlay_policy(path, data)
    elif kind in FILE_KINDS:
        model = read_own_file(data, FILE_KINDS[kind].model)
    # Policies are written by people and nixpkgs feature files by other tools.
    is_generated = kind in FILE_KINDS and not kind.startswith("policy-")
    is_canonical = kind not in FILE_KINDS or canonical_json(document) == data
    verdict = FileVerdict(
        path=str(path),
        kind=kind,
        valid=True,
        summary=f"valid {kind} file" + ("" if is_canonical else ", not in canonical form"),
        exit_code=EXIT_FINDINGS if is_generated and not is_canonical else EXIT_OK,
    )
    return verdict, model if isinstance(model, PackageSet) else None


def _manifest_verdict(path: Path, data: bytes, *, strict: bool) -> tuple[FileVerdict, Manifest]:
    redist = REDISTS.get(path.absolute().parent.name)
    label = label_of_manifest_name(path.name)
    manifest, warnings = validate_manifest(data, label, redist, strict=strict)
    counts = [
        plural(len(manifest.packages), "package"),
        plural(len(list(manifest.archives)), "archive"),
        plural(len(manifest.platforms), "platform"),
    ]
    about = f"{manifest.shape}, label {manifest.label or 'unknown'}"
    verdict = FileVerdict(
        path=str(path),
        kind="manifest",
        valid=True,
        summary=f"valid manifest, {about}: {', '.join(counts)}",
        warnings=shortened(warnings),
        exit_code=EXIT_OK,
    )
    return verdict, manifest
