"""Reports of `explain package` as text."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from cudaredist.cli.text import columns, megabytes
from cudaredist.commands.explain.package_report import (
    ExplainedArchive,
    PackageClosure,
    PackageLicense,
    PackageReport,
)
from cudaredist.features.distributions import distribution_in_words
from cudaredist.formats.names import CHANNEL_SUBJECTS, CHANNEL_TITLES
from cudaredist.grouping import grouped
from cudaredist.primitives import Version
from cudaredist.similar_names import listed_names
from cudaredist.tables.advisories.texts import counted_states, vulnerability_lines
from cudaredist.words import shortened

_ROWS = 6
"""Maximum number of releases to list."""
_SHOWN = 3
"""Maximum number of libraries and headers to list for a dependency."""
_DETAILS = {"needed libraries", "may open (a guess)", "outputs"}
"""Facts that are shown with all details only."""


def package_text(report: PackageReport, *, has_details: bool = False) -> Iterator[str]:
    """Yield where a package exists, its newest version and license, then releases and facts.

    The date of a version is that of its first release. With details, all releases are listed, and
    each build has its address, hash and needs. Without, the facts of the newest version are listed
    once, and only those that differ are listed by platform.
    """
    newest = {(a.channel, a.redist, a.id.place): a for a in report.archives}
    if report.archives:
        yield f"{report.asked}: {'; '.join(_places(report))}"
    for reason in report.reasons:
        yield f"not in package sets: {reason.text} ({reason.source})"
    older: list[str] = []
    for own in grouped((archive.channel, archive) for archive in newest.values()).values():
        first, *others = _newest(own)
        yield from first
        older += chain.from_iterable(others)
    yield from dict.fromkeys(map(_license, report.licenses))
    yield from _needs(newest.values())
    if report.closure is not None:
        yield _closure(report.closure)
    yield from older
    if report.archives:
        yield ""
        yield from _releases(report.archives, has_all=has_details)
    if report.vulnerabilities:
        yield ""
        yield f"known vulnerabilities: {counted_states(report.vulnerabilities)}"
        yield from (f"  {line}" for line in vulnerability_lines(report.vulnerabilities))
    if has_details:
        yield from _blocks(newest.values())
    elif report.archives:
        yield from _short_blocks(newest.values())
        yield ""
        yield "all versions, addresses, hashes and needed libraries: add --all, or --platform NAME"


def _places(report: PackageReport) -> Iterator[str]:
    """Yield the releases with the package in each channel, and the channels without it."""
    for channel in report.channels:
        own = [archive for archive in report.archives if archive.channel == channel]
        kind = CHANNEL_SUBJECTS[channel]
        if not own:
            others = listed_names(report.other_packages.get(channel, ()))
            none = f"none of the known {CHANNEL_TITLES[channel]}"
            yield f"{none}, but of its parts: {others}" if others else none
        for redist, labels in grouped((archive.redist, archive.release) for archive in own).items():
            ends = dict.fromkeys((labels[0], labels[-1]))
            yield f"{kind} of {redist} {' to '.join(ends)}"


def _newest(archives: Iterable[ExplainedArchive]) -> list[list[str]]:
    """Return lines for each version that is the newest on some platforms, the newest first.

    A single archive has its address and hash.
    """
    versions = grouped(((a.package, a.version, a.redist, a.release, a.date), a) for a in archives)
    lines = []
    for (package, version, redist, release, date), own in versions.items():
        day = f", {date}" if date else ""
        places = ", ".join(sorted(archive.id.place for archive in own))
        kind = CHANNEL_TITLES[own[0].channel]
        line = f"{package} {version} ({redist} {release}{day}) for {places}, {kind}"
        address = f"{own[0].url or own[0].relative_path} sha256 {own[0].sha256 or 'unknown'}"
        is_single = len(versions) == len(own) == 1
        lines.append((Version.parse(release), [line, address] if is_single else [line]))
    lines.sort(key=lambda pair: pair[0], reverse=True)
    return [own for _, own in lines]


def _license(terms: PackageLicense) -> str:
    """Return the name of a license, and whether it permits redistribution."""
    permission = {
        True: "may be redistributed",
        False: "may not be redistributed",
        None: "whether it may be redistributed is unknown",
    }[terms.redistributable]
    return f"license: {terms.name or 'unknown'}; {permission}"


def _needs(archives: Iterable[ExplainedArchive]) -> Iterator[str]:
    """Yield the packages that the newest examined release needs, NVIDIA's archives first."""
    examined = grouped((a.channel, a) for a in archives if a.is_examined)
    for channel, own in examined.items():
        release = max(Version.parse(archive.release) for archive in own)
        of_release = [archive for archive in own if archive.release == str(release)]
        needs = sorted({name for archive in of_release for name in archive.depends})
        if needs:
            yield f"needs {', '.join(needs)} ({CHANNEL_TITLES[channel]} {release})"
        return


def _closure(closure: PackageClosure) -> str:
    """Return the sizes of a closure with its packages."""
    more = f" with {', '.join(closure.packages)}" if closure.packages else ""
    kind = CHANNEL_TITLES[closure.channel]
    text = f"closure: {megabytes(closure.size)} unpacked{more}"
    if closure.opened_packages:
        opened = ", ".join(closure.opened_packages)
        text += f", {megabytes(closure.opened_size)} more if it opens {opened}"
    if closure.outside:
        text += f", and of other products {', '.join(closure.outside)}"
    return f"{text} ({closure.place}, {kind} {closure.release})"


def _releases(archives: Sequence[ExplainedArchive], *, has_all: bool) -> Iterator[str]:
    """Yield a table of the versions, the newest last."""
    order = sorted(archives, key=lambda a: (a.redist, Version.parse(a.release)))
    labels = grouped(
        ((a.redist, CHANNEL_TITLES[a.channel], a.version, a.id.place), a.release) for a in order
    )
    dates = {(a.redist, CHANNEL_TITLES[a.channel], a.release): a.date for a in archives}
    places = grouped(
        ((*key[:3], dates[*key[:2], releases[0]] or "-", " ".join(dict.fromkeys(releases))), key[3])
        for key, releases in labels.items()
    )
    rows = [(*cells, " ".join(sorted(own))) for cells, own in places.items()]
    hidden = 0 if has_all else max(0, len(rows) - _ROWS)
    head = ("redist", "kind", "version", "date", "releases", "platforms")
    yield from columns([head, *rows[hidden:]])
    if hidden:
        yield f"{hidden:,} older rows: see them with --all"


def _short_blocks(archives: Collection[ExplainedArchive]) -> Iterator[str]:
    """Yield the facts of the newest version in each channel, each fact once if builds agree.

    Facts by wheels are left out if wheels are listed, too.
    """
    has_examined = any(archive.is_examined for archive in archives)
    for own in grouped((archive.channel, archive) for archive in archives).values():
        last = max(own, key=lambda archive: Version.parse(archive.release))
        builds = [a for a in own if (a.redist, a.release) == (last.redist, last.release)]
        title = f"{last.package} {last.version} ({last.redist} {last.release})"
        yield from ("", f"{title}, {CHANNEL_TITLES[last.channel]}")
        by_wheel = any(archive.is_by_wheel for archive in builds)
        unknown = [a.id.place for a in builds if not a.is_examined and not a.is_by_wheel]
        if by_wheel and has_examined:
            yield "  not examined; the libraries are those of the wheel of the same version"
            continue
        if by_wheel:
            yield "  not examined; by the wheel of the same version:"
        if unknown:
            places = "" if len(unknown) == len(builds) else f": {', '.join(sorted(unknown))}"
            yield f"  not examined{places}"
        yield from _common_facts(builds)


def _common_facts(builds: Iterable[ExplainedArchive]) -> Iterator[str]:
    """Yield each fact of some builds, with the platforms if it differs."""
    facts = [(archive.id.place, _facts(archive)) for archive in builds]
    for name in facts[0][1]:
        if name not in _DETAILS:
            places = grouped((own[name], place) for place, own in facts if own[name])
            for words, names in places.items():
                platforms = f" ({', '.join(sorted(names))})" if len(places) > 1 else ""
                yield f"  {name}{platforms}: {words}"


def _blocks(archives: Iterable[ExplainedArchive]) -> Iterator[str]:
    """Yield the facts of archives. Builds with the same facts have one block."""
    order = sorted(archives, key=lambda a: Version.parse(a.release), reverse=True)
    order.sort(key=lambda a: a.channel)  # `redist` comes first
    blocks = grouped(
        ((a.package, a.version, a.redist, a.release, a.channel, tuple(_facts(a).items())), a)
        for a in order
    )
    for (package, version, redist, release, channel, facts), own in blocks.items():
        places = ", ".join(sorted(archive.id.place for archive in own))
        title = f"{package} {version} ({redist} {release}) for {places}, {CHANNEL_TITLES[channel]}"
        yield from ("", title)
        if own[0].is_by_wheel:
            yield "  not examined; by the wheel of the same version:"
        elif not own[0].is_examined:
            yield "  not examined"
        for name, words in facts:
            if words:
                yield f"  {name}: {words}"
        for archive in own:
            name = "archive" if len(own) == 1 else archive.id.place
            yield f"  {name}: {archive.url or archive.relative_path}"
            if archive.sha256:
                yield f"  SHA-256: {archive.sha256}"


def _facts(archive: ExplainedArchive) -> dict[str, str]:
    """Return the facts that several builds can have in common."""
    sizes = (f"{name} {megabytes(files.size)}" for name, files in archive.outputs.items())
    return {
        "license text": archive.license_text or "",
        "listed as distributable": distribution_in_words(archive.distribution),
        "outputs": ", ".join(sizes),
        "sonames": " ".join(archive.sonames),
        "architectures": " ".join(archive.architectures),
        "lowest glibc": archive.glibc or "",
        "needed libraries": " ".join(archive.needed),
        "may open (a guess)": " ".join(archive.opens),
        "depends on": "; ".join(
            f"{name} ({', '.join(shortened(names, _SHOWN))})"
            for name, names in archive.depends.items()
        ),
        "notes": "; ".join(shortened(archive.notes, _SHOWN)),
    }
