"""explain package: a package over releases and platforms."""

from collections.abc import Iterator

from cudaredist.errors import shortened
from cudaredist.render.common import columns
from cudaredist.reports.answer_reports import ExplainedArchive, PackageReport

_SHOWN = 3
"""Libraries and headers that are named for a package depended on."""


def package_text(report: PackageReport) -> Iterator[str]:
    """Yield the versions of a package, then what each version provides and needs on a platform."""
    labels: dict[tuple[str, ...], list[str]] = {}
    shown: dict[tuple[str, str], ExplainedArchive] = {}
    for archive in report.archives:
        place = _place(archive)
        key = (archive.redist, archive.version, place)
        labels.setdefault(key, []).append(archive.release)
        shown[archive.redist, place] = archive
    yield from columns(
        [
            ("redist", "version", "platform", "releases"),
            *((*key, " ".join(dict.fromkeys(found))) for key, found in labels.items()),
        ]
    )
    for archive in shown.values():
        yield ""
        name = f"{archive.package} {archive.version} ({archive.redist} {archive.release})"
        yield f"{name} for {_place(archive)}"
        if not archive.is_examined:
            yield "  not examined"
        for title, words in _facts(archive).items():
            if words:
                yield f"  {title}: {words}"


def _place(archive: ExplainedArchive) -> str:
    return archive.platform if archive.variant is None else f"{archive.platform}/{archive.variant}"


def _facts(archive: ExplainedArchive) -> dict[str, str]:
    sizes = (f"{name} {files.size / 1e6:,.1f} MB" for name, files in archive.outputs.items())
    return {
        "outputs": ", ".join(sizes),
        "sonames": " ".join(archive.sonames),
        "architectures": " ".join(archive.architectures),
        "needed libraries": " ".join(archive.needed),
        "may open (a guess)": " ".join(archive.opens),
        "depends on": "; ".join(
            f"{name} ({', '.join(shortened(names, _SHOWN))})"
            for name, names in archive.depends.items()
        ),
    }
