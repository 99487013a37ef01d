"""Reports of `explain package` as text."""

from collections.abc import Iterator

from cudaredist.cli.text import columns, grouped
from cudaredist.commands.explain.report import ExplainedArchive, PackageReport
from cudaredist.errors import shortened

_SHOWN = 3
"""Maximum number of libraries and headers to list for a dependency."""


def package_text(report: PackageReport) -> Iterator[str]:
    """Yield a package's versions, then the facts for each platform.

    The date of a version is that of its first release.
    """
    labels = grouped(((a.redist, a.version, a.id.place), a.release) for a in report.archives)
    newest = {(archive.redist, archive.id.place): archive for archive in report.archives}
    for reason in report.reasons:
        yield f"not in package sets: {reason.text} ({reason.source})"
    if labels:
        dates = {(a.redist, a.release): a.date for a in report.archives}
        rows = (
            (*key, dates[key[0], releases[0]] or "-", " ".join(dict.fromkeys(releases)))
            for key, releases in labels.items()
        )
        yield from columns([("redist", "version", "platform", "date", "releases"), *rows])
    for archive in newest.values():
        yield ""
        name = f"{archive.package} {archive.version} ({archive.redist} {archive.release})"
        yield f"{name} for {archive.id.place}"
        if not archive.is_examined:
            yield "  not examined"
        for title, words in _facts(archive).items():
            if words:
                yield f"  {title}: {words}"


def _facts(archive: ExplainedArchive) -> dict[str, str]:
    sizes = (f"{name} {files.size / 1e6:,.1f} MB" for name, files in archive.outputs.items())
    return {
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
