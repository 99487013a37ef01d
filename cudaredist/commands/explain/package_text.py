"""Reports of `explain package` as text."""

from collections.abc import Iterable, Iterator

from cudaredist.cli.text import columns, megabytes
from cudaredist.commands.explain.report import ExplainedArchive, PackageReport
from cudaredist.formats.base import CHANNEL_TITLES
from cudaredist.grouping import grouped
from cudaredist.words import shortened

_ROWS = 12
"""Maximum number of releases to list."""
_SHOWN = 3
"""Maximum number of libraries and headers to list for a dependency."""


def package_text(report: PackageReport, *, has_all: bool = False) -> Iterator[str]:
    """Yield where a package exists, its newest version and its needs, then releases and facts.

    The date of a version is that of its first release. Without `has_all`, only the newest releases
    are listed.
    """
    labels = grouped(
        ((a.redist, CHANNEL_TITLES[a.channel], a.version, a.id.place), a.release)
        for a in report.archives
    )
    newest = {(a.channel, a.redist, a.id.place): a for a in report.archives}
    if report.archives:
        yield f"{report.asked}: {'; '.join(_places(report))}"
    for reason in report.reasons:
        yield f"not in package sets: {reason.text} ({reason.source})"
    for own in grouped((archive.channel, archive) for archive in newest.values()).values():
        yield from _newest(own)
    if labels:
        yield ""
        dates = {(a.redist, CHANNEL_TITLES[a.channel], a.release): a.date for a in report.archives}
        rows = [
            (*key, dates[*key[:2], releases[0]] or "-", " ".join(dict.fromkeys(releases)))
            for key, releases in labels.items()
        ]
        hidden = 0 if has_all else max(0, len(rows) - _ROWS)
        head = ("redist", "kind", "version", "platform", "date", "releases")
        yield from columns([head, *rows[hidden:]])
        if hidden:
            yield f"{hidden:,} older rows: see them with --all"
    for archive in newest.values():
        yield ""
        name = f"{archive.package} {archive.version} ({archive.redist} {archive.release})"
        kind = CHANNEL_TITLES[archive.channel]
        yield f"{name} for {archive.id.place}, {kind}"
        if not archive.is_examined:
            yield "  not examined"
        for title, words in _facts(archive).items():
            if words:
                yield f"  {title}: {words}"


def _places(report: PackageReport) -> Iterator[str]:
    """Yield the releases with the package in each channel, and the channels without it."""
    for channel in report.channels:
        own = [archive for archive in report.archives if archive.channel == channel]
        kind = "NVIDIA's archives" if channel == "redist" else "wheels"
        if not own:
            yield f"none of the known {'archives' if channel == 'redist' else 'wheels'}"
        for redist, labels in grouped((archive.redist, archive.release) for archive in own).items():
            ends = dict.fromkeys((labels[0], labels[-1]))
            yield f"{kind} of {redist} {' to '.join(ends)}"


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
    if len(versions) == len(newest) == 1:
        yield f"{newest[0].url or newest[0].relative_path} sha256 {newest[0].sha256 or 'unknown'}"
    if needs := sorted({name for archive in newest for name in archive.depends}):
        yield f"needs {', '.join(needs)}"
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
