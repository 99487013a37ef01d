"""The summary of diff, and its lines about files and run paths."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from cudaredist.commands.diff.compare import may_break
from cudaredist.commands.diff.report import DiffReport, FileChange, FileKind, FileStatus
from cudaredist.commands.diff.style import DiffStyle
from cudaredist.grouping import grouped
from cudaredist.primitives import natural_order
from cudaredist.words import plural, shortened

_FEW = 3
"""Maximum number of new files to list for a package."""
_RUN_PATH_SHOWN = 55
"""Maximum length of a run path."""
_FILES_SHOWN = 8
"""Maximum number of files or folders to list for a package. The others are counted."""


def summary_lines(report: DiffReport) -> Iterator[str]:
    """Yield what a reader wants to know first."""
    gone = [p for p in report.packages if p.status == "gone" and not p.origin]
    split = [p for p in report.packages if p.parts and p.status == "changed"]
    lost: Counter[str] = Counter()
    for package in report.packages:
        for delta in package.deltas:
            if delta.field == "sonames":
                for place in delta.places:
                    lost[place] += len(delta.gone)
    run_paths = {(change.package, path) for change in report.run_paths for path in change.files}
    counts = (
        (len(gone), "package", "gone"),
        (len(split), "package", "split"),
        (max(lost.values(), default=0), "soname", "gone or renamed"),
        (_most_files(report, "moved"), "file", "moved"),
        (_most_files(report, "gone"), "file", "gone"),
        (len(run_paths), "run path", "changed"),
    )
    words = [f"{plural(count, noun)} {verb}" for count, noun, verb in counts if count]
    if words:
        yield ", ".join(words)
    for delta in report.tables:
        if delta.field == "supported capabilities":
            signs = [*(f"-{name}" for name in delta.gone), *(f"+{name}" for name in delta.added)]
            yield f"GPUs: {' '.join(signs)}"
    raised = grouped(
        (delta.new, package.package)
        for package in report.packages
        for delta in package.deltas
        if delta.field == "glibc" and delta.new and may_break(delta)
    )
    versions = []
    for version in sorted(raised, key=natural_order, reverse=True):
        packages = list(dict.fromkeys(raised[version]))
        versions.append(f"{version} for {', '.join(shortened(packages, _FEW))}")
    if versions:
        yield f"newer glibc required: {'; '.join(versions)}"


def _most_files(report: DiffReport, status: FileStatus) -> int:
    """Return the number of changed files on the platform with most."""
    counts: Counter[str] = Counter()
    for change in report.files:
        if change.status == status:
            for place in change.places:
                counts[place] += change.files
    return max(counts.values(), default=0)


def file_lines(report: DiffReport, title: str, style: DiffStyle) -> Iterator[tuple[str, list[str]]]:
    """Yield a line for each package with changed files, and one for each run path."""
    if title == "run paths":
        yield from _run_path_lines(report, style)
        return
    statuses = {"files gone": "gone", "files moved": "moved", "files added": "added"}
    changes = grouped(
        ((change.package, change.new_package), change)
        for change in report.files
        if change.status == statuses.get(title)
    )
    for (package, other), of_package in changes.items():
        names = style.name(package) + (f" -> {style.name(other)}" if other else "")
        lines = [_file_text(change, style) for change in of_package]
        limit = _FEW if title == "files added" else _FILES_SHOWN
        shown = list(shortened(lines, style.limit(limit)))
        yield f"{names}: {_kinds_text(of_package)}", shown


def _kinds_text(changes: Iterable[FileChange]) -> str:
    """Return the number of files of each kind, on the platform with most."""
    counts: dict[FileKind, Counter[str]] = defaultdict(Counter)
    for change in changes:
        for place in change.places:
            counts[change.kind][place] += change.files
    return ", ".join(_counted(max(each.values()), kind) for kind, each in counts.items())


def _counted(count: int, kind: FileKind) -> str:
    """Return a number of files of a kind, such as 1 static library."""
    if count > 1:
        return f"{count:,} {kind}"
    return f"1 {kind.replace('libraries', 'library').removesuffix('s')}"


def _file_text(change: FileChange, style: DiffStyle) -> str:
    ends = dict.fromkeys(filter(None, (change.old, change.new)))
    text = " -> ".join(map(style.name, ends))
    is_one_sided = change.old is None or change.new is None
    if change.files > 1:
        count = f"{change.files} files"
        text = f"{count} of {text}" if is_one_sided else f"{text} ({count})"
    places = style.value(f" [{', '.join(change.places)}]")
    return f"{text}{places}"


def _run_path_lines(report: DiffReport, style: DiffStyle) -> Iterator[tuple[str, list[str]]]:
    """Yield a line for each pair of run paths, with the files."""
    pairs = grouped(((":".join(c.old), ":".join(c.new)), c) for c in report.run_paths)
    for (old, new), changes in pairs.items():
        files = {(change.package, path) for change in changes for path in change.files}
        names = sorted({change.package for change in changes}, key=natural_order)
        count = "1 file" if len(files) == 1 else f"{len(files)} files"
        words = f"{count} of {', '.join(map(style.name, names))}"
        sides = " -> ".join(
            style.name(_cut(side, style)) if side else "none" for side in (old, new)
        )
        paths = [style.name(path) for _, path in sorted(files)]
        yield f"{sides}: {words}", list(shortened(paths, style.limit(_FILES_SHOWN)))


def _cut(run_path: str, style: DiffStyle) -> str:
    """Return the beginning of a run path. Some have folders of NVIDIA's build machines."""
    limit = style.limit(_RUN_PATH_SHOWN)
    return run_path if len(run_path) <= limit else f"{run_path[:limit]}…"
