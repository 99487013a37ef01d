"""Reports of `explain package` as text."""

from collections.abc import Iterable, Iterator

from cudaredist.cli.text import columns, megabytes
from cudaredist.commands.explain.report import ExplainedArchive, PackageReport
from cudaredist.grouping import grouped
from cudaredist.words import shortened

_ROWS = 12
"""Maximum number of releases to list."""
_SHOWN = 3
"""Maximum number of libraries and headers to list for a dependency."""


def package_text(report: PackageReport, *, has_all: bool = False) -> Iterator[str]:
    """Yield the newest version and its needs, then the releases, then the facts for each platform.

    The date of a version is that of its first release. Without `has_all`, only the newest releases
    are listed.
    """
    labels = grouped(((a.redist, a.version, a.id.place), a.release) for a in report.archives)
    newest = {(archive.redist, archive.id.place): archive for archive in report.archives}
    for reason in report.reasons:
        yield f"not in package sets: {reason.text} ({reason.source})"
    yield from _newest(newest.values())
    if labels:
        yield ""
        dates = {(a.redist, a.release): a.date for a in report.archives}
        rows = [
            (*key, dates[key[0], releases[0]] or "-", " ".join(dict.fromkeys(releases)))
            for key, releases in labels.items()
        ]
        hidden = 0 if has_all else max(0, len(rows) - _ROWS)
        yield from columns([("redist", "version", "platform", "date", "releases"), *rows[hidden:]])
        if hidden:
            yield f"{hidden:,} older rows: see them with --all"
    for archive in newest.values():
        yield ""
        name = f"{archive.package} {archive.version} ({archive.redist} {archive.release})"
        yield f"{name} for {archive.id.place}"
        if not archive.is_examined:
            yield "  not examined"
        for title, words in _facts(archive).items():
            if words:
                yield f"  {title}: {words}"


def _newest(archives: Iterable[ExplainedArchive]) -> Iterator[str]:
    """Yield the versions that are the newest on some platforms, with the needs of the newest.

    For a single archive, yield its address and hash, too.
    """
    versions = grouped(((a.package, a.version, a.redist, a.release, a.date), a) for a in archives)
    lines = []
    for (package, version, redist, release, date), own in reversed(versions.items()):
        day = f", {date}" if date else ""
        places = ", ".join(sorted(archive.id.place for archive in own))
        lines.append(f"{package} {version} ({redist} {release}{day}) for {places}")
    yield from lines[:1]
    newest = [*versions.values()][-1] if versions else []
    if needs := sorted({name for archive in newest for name in archive.depends}):
        yield f"needs {', '.join(needs)}"
    if len(versions) == len(newest) == 1:
        yield f"{newest[0].url or newest[0].relative_path} sha256 {newest[0].sha256 or 'unknown'}"
    yield from lines[1:]


def _facts(archive: ExplainedArchive) -> dict[str, str]:
    sizes = (f"{name} {megabytes(files.size)}" for name, files in archive.outputs.items())
    return {
        "archive": archive.url or archive.relative_path,
        "SHA-256": archive.sha256 or "",
        "license text": archive.license_text or "",
        "outputs": ", ".join(sizes),
        "sonames": " ".join(archive.sonames),
        "architectures": " ".join(archive.architectures),
        "needed libraries": " ".join(archive.needed),
        "may open (a guess)": " ".join(archive.opens),
        "depends on": "; ".join(
            f"{name} ({', '.join(shortened(names, _SHOWN))})"
            for name, names in archive.depends.items()
        ),
        "notes": "; ".join(shortened(archive.notes, _SHOWN)),
    }
