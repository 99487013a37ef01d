"""audit --source: compare the names that source code uses with the headers of CUDA releases."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cudaredist.errors import (
    EXIT_FINDINGS,
    EXIT_INCOMPLETE,
    EXIT_OK,
    IncompleteError,
    UnknownNameError,
    UsageError,
)
from cudaredist.formats.settings import IgnoredFinding
from cudaredist.hints import command_line
from cudaredist.primitives import Version, find_release
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.redists import CUDA
from cudaredist.source_code.api import Api, read_api, union
from cudaredist.source_code.judge_use import Change, Judge
from cudaredist.source_code.read_code import Use
from cudaredist.source_code.read_tree import SourceTree, read_tree
from cudaredist.source_code.report import SourceFinding, SourceReport
from cudaredist.store.facts_index import Index
from cudaredist.tables.symbols.label_ranges import label_ranges
from cudaredist.words import printable, shortened

_RANGE = ".."
_NOTES_SHOWN = 5


class _Found(NamedTuple):
    path: str
    use: Use
    change: Change


def audit_source(
    paths: Sequence[Path],
    index: Index,
    cuda: str | None,
    ignored: Iterable[IgnoredFinding] = (),
    progress: Progress = NO_PROGRESS,
) -> SourceReport:
    """Return the uses of names that differ in a CUDA release, or in a range such as 12.4..13.0.

    Without `cuda`, it is the newest release in the data. Raises `UsageError` for a path that does
    not exist, `UnknownNameError` for an unknown release, and `IncompleteError` without tables.
    """
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder")
    api = read_api(index, CUDA)
    if not api.releases:
        hint = f"run `{command_line('update-api')}`"
        raise IncompleteError("no tables of APIs in the data", hint=hint)
    text = cuda or str(api.releases[-1])
    labels = requested_releases(text, api.releases)
    requested = sum(map(api.bit, labels))
    judge = Judge(api, requested)
    trees = [read_tree(path, api, judge.interest, progress) for path in paths]
    found: list[_Found] = []
    for path, tree in zip(paths, trees, strict=True):
        prefix = "" if len(paths) == 1 else f"{path}/"
        found += _found(tree, judge, prefix)
    entries = tuple(ignored)
    found.sort(key=_order)
    findings = tuple(_finding(one, api, entries) for one in found)
    failing = union(
        one.change.releases
        for one, finding in zip(found, findings, strict=True)
        if finding.exit_code
    )
    skipped = [
        printable(f"{name} ({reason})") for tree in trees for name, reason in tree.skipped.items()
    ]
    return SourceReport(
        sources=tuple(map(str, paths)),
        required_cuda=text,
        releases=tuple(map(str, labels)),
        compiles=_ranges(labels, requested & ~failing, api),
        files=sum(tree.read for tree in trees),
        size=sum(tree.size for tree in trees),
        findings=findings,
        notes=tuple(_notes(trees, skipped)),
        skipped=tuple(skipped),
        exit_code=EXIT_FINDINGS if failing else EXIT_INCOMPLETE if skipped else EXIT_OK,
    )


def requested_releases(text: str, releases: Sequence[Version]) -> list[Version]:
    """Return the release of a label, or those of a range such as `12.4..13.0`.

    Raises `UnknownNameError` for an unknown release, and `UsageError` for an empty range.
    """
    first, dots, last = text.partition(_RANGE)
    ends = []
    for part in (first, last) if dots else (first,):
        label = find_release(part.strip().removeprefix("cuda@"), releases)
        if label is None:
            raise UnknownNameError("CUDA release of the tables of APIs", part, map(str, releases))
        ends.append(label)
    if not dots:
        return ends
    # The first release of a line begins the range, the newest one ends it.
    start = min(
        (label for label in releases if label.begins_with(Version.parse(first.strip()))),
        default=ends[0],
    )
    labels = [label for label in releases if start <= label <= ends[1]]
    if not labels:
        raise UsageError(
            f"--require-cuda {text}: {last} is before {first}", hint=f"use {last}..{first}"
        )
    return labels


def _found(tree: SourceTree, judge: Judge, prefix: str) -> Iterator[_Found]:
    facts = tree.facts
    for file in tree.files:
        path = printable(f"{prefix}{file.path}")
        known: dict[Use, list[Change]] = {}
        for use in file.uses:
            # Equal uses on several lines have equal changes.
            key = use._replace(line=0)
            if key not in known:
                known[key] = [*judge.changes(use, file, facts)]
            yield from (_Found(path, use, change) for change in known[key])


def _order(found: _Found) -> tuple[int, str, int, str]:
    """Sort sure findings first, then by file and line."""
    ranks = {"sure": 0, "perhaps": 1, "deprecated": 2}
    return ranks[found.change.certainty], found.path, found.use.line, found.change.name


def _finding(found: _Found, api: Api, ignored: Sequence[IgnoredFinding]) -> SourceFinding:
    path, use, change = found
    since = str(api.labels(change.since)[0]) if change.since else None
    message = f"{path}:{use.line}: {change_text(change, since, _last(change.releases, api))}"
    reasons = [entry.reason for entry in ignored if entry.matches("api", message)]
    is_counted = change.certainty == "sure" and not reasons
    return SourceFinding(
        kind="api",
        path=path,
        line=use.line,
        change=change.kind,
        certainty=change.certainty,
        name=change.name,
        name_kind=change.old.kind,
        header=change.old.header,
        package=change.old.package,
        releases=api.ranges(change.releases),
        since=since,
        old=change.old.signature,
        new=None if change.new is None else change.new.signature,
        message=message,
        reason=change.reason or None,
        hint=change.advice or None,
        exit_code=EXIT_FINDINGS if is_counted else EXIT_OK,
        ignored=reasons[-1] if reasons else None,
    )


def change_text(change: Change, since: str | None, release: str) -> str:
    """Return a change in words."""
    kind = change.old.kind
    title = f"the {kind} {change.name}"
    match change.kind:
        case "removed":
            return f"CUDA {since} removed {title}"
        case "added later":
            return f"CUDA {release} does not have {title}, which is new in {since}"
        case "deprecated":
            return f"CUDA {since or release} deprecates {title}"
        case _:
            return f"CUDA {since or release} changed the parameters of {change.name}"


def _last(releases: int, api: Api) -> str:
    return str(api.labels(releases)[-1])


def _ranges(labels: Sequence[Version], releases: int, api: Api) -> str:
    return label_ranges((str(label), bool(releases & api.bit(label))) for label in labels)


def _notes(trees: Sequence[SourceTree], skipped: Sequence[str]) -> Iterator[str]:
    yield from (f"not read: {text}" for text in shortened(skipped, _NOTES_SHOWN))
    if not any(tree.read for tree in trees):
        yield "no source code of C, C++, CUDA, Python, Rust or Julia"
