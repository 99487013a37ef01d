"""explain package: report a package in all local releases and platforms."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib import import_module
from typing import NamedTuple

from cudaredist.commands.explain.archive_facts import explain_archives
from cudaredist.commands.explain.package_closure import closure_of_archive
from cudaredist.commands.explain.package_report import (
    ExplainedArchive,
    PackageClosure,
    PackageLicense,
    PackageReport,
)
from cudaredist.errors import NotInDataError, UnknownNameError, UsageError
from cudaredist.formats.names import Channel
from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.formats.reason import Reason
from cudaredist.grouping import grouped
from cudaredist.hints import again, command_for_archives, command_line, corrected
from cudaredist.primitives import KNOWN_PLATFORMS, Version, find_release, versioned_attr
from cudaredist.redists import CUDA, REDISTS
from cudaredist.sets.licenses import UNKNOWN_TEXT, find_license
from cudaredist.sets.omissions import reasons_to_withhold, unpublished
from cudaredist.similar_names import listed_names
from cudaredist.store.archive_address import archive_address
from cudaredist.store.documents import STORED_POLICIES
from cudaredist.store.facts_index import Index, IndexedArchive, Question
from cudaredist.store.indexed_policies import (
    PackageNames,
    archive_urls,
    license_rules,
    names_in_policies,
    withheld_packages,
)
from cudaredist.store.indexed_vulnerabilities import indexed_vulnerabilities
from cudaredist.wheel_projects import METAPACKAGES, PLATFORMS, canonical_project, package_of_project
from cudaredist.words import shown

_PLATFORM = "linux-x86_64"
"""The platform of the closure, if the call has none."""


class _Package(NamedTuple):
    package: str


_PACKAGES = Question(_Package, "SELECT DISTINCT package FROM packages")
_PACKAGES_OF_REDIST = Question(
    _Package,
    """
    SELECT DISTINCT package FROM packages JOIN releases ON id = release
    WHERE redist = ?
    ORDER BY package""",
)


_PACKAGES_OF_CHANNEL = Question(
    _Package,
    """
    SELECT DISTINCT package FROM packages JOIN releases ON id = release
    WHERE redist = ? AND channel = ?
    ORDER BY package""",
)


def package_names(index: Index) -> frozenset[str]:
    """Return the names of packages, products and metapackages."""
    local = {row.package for row in index.ask(_PACKAGES)}
    return frozenset(local.union(_names(index).packages, METAPACKAGES, REDISTS))


def _names(index: Index) -> PackageNames:
    """Return the names of packages in policies.

    Raises the error of the first policy of package sets that cannot be read.
    """
    broken = {document.name for document in index.unreadable()}
    if not broken.isdisjoint(f"policy/{name}" for name in STORED_POLICIES):
        # Most lookups import no models.
        import_module("cudaredist.sets.load").read_policies(index.store, (), [])
    return names_in_policies(index)


def explain_package(name: str, index: Index, platform: str | None = None) -> PackageReport:
    """Return a package's releases, with the contents and needs of archives.

    `platform` limits the archives. Raises the errors of `package_archives`, and `UnknownNameError`
    for a platform without the package.
    """
    archives, reasons = package_archives(name, index)
    known = {place.archive.platform for place in archives}
    if platform is not None and archives and platform not in known:
        raise _no_archives(name, platform, known, index)
    urls = archive_urls(index)
    explained = []
    for place, own in archives.items():
        if platform is None or place.archive.platform == platform:
            url = place.url
            if place.redist in urls:
                url = archive_address(place.redist, place.archive, urls, address=None)
            explained.append(own if url is None else own.changed(url=url))
    bare = name.partition("@")[0]
    projects = {one.archive.project for one in archives if one.archive.package != bare}
    is_project = canonical_project(bare) in projects
    channels: tuple[Channel, ...] = ("wheels",) if is_project else index.channels
    return PackageReport(
        asked=name,
        channels=channels,
        other_packages=_other_packages(bare, channels, archives, index),
        archives=tuple(explained),
        licenses=tuple(dict.fromkeys(_licenses(archives, index))),
        closure=_closure(archives, index, platform),
        reasons=reasons,
        vulnerabilities=tuple(_vulnerabilities(archives, index, platform)),
    )


def _closure(
    archives: Iterable[IndexedArchive], index: Index, platform: str | None
) -> PackageClosure | None:
    """Return the closure of the newest examined archive, by default of linux-x86_64."""
    examined = [one for one in archives if one.contents]
    own = [one for one in examined if one.archive.platform == (platform or _PLATFORM)]
    # The archives are in the order of their releases.
    newest = own[-1:] or ([] if platform else examined[-1:])
    return closure_of_archive(newest[0], index) if newest else None


def _vulnerabilities(
    archives: Collection[IndexedArchive], index: Index, platform: str | None
) -> Iterator[PackageVulnerability]:
    """Yield the known vulnerabilities of a package, under each of its names."""
    places = grouped(
        ((one.redist, one.archive.package), (str(one.label), one.archive.platform))
        for one in archives
        if platform in {None, one.archive.platform}
    )
    for (redist, package), own in places.items():
        yield from indexed_vulnerabilities(index, redist, package, set(own))


def _other_packages(
    name: str,
    channels: Iterable[Channel],
    archives: Collection[IndexedArchive],
    index: Index,
) -> dict[Channel, tuple[str, ...]]:
    """Return the packages of a product in channels without a package of its name.

    cuQuantum, for example, is one archive, but a wheel for each library.
    """
    packages: dict[Channel, tuple[str, ...]] = {}
    for channel in set(channels).difference(one.channel for one in archives):
        own = tuple(row.package for row in index.ask(_PACKAGES_OF_CHANNEL, name, channel))
        if own:
            packages[channel] = own
    return packages


def _licenses(
    archives: Mapping[IndexedArchive, ExplainedArchive], index: Index
) -> Iterator[PackageLicense]:
    """Yield the license of the newest release in each channel and product."""
    policy = license_rules(index)
    words = manifest_licenses(index, {one.archive.package for one in archives})
    newest = {(one.channel, one.redist): (one, own) for one, own in archives.items()}
    for one, own in newest.values():
        package = one.archive.package
        word = words.get((one.channel, one.redist, str(one.label), package))
        texts = (one.terms for one in policy.texts.values() if one.title == own.license_text)
        terms = next(texts, find_license(package, one.redist, word, policy))
        is_named = terms is not policy.default
        is_known = is_named and own.license_text != UNKNOWN_TEXT
        yield PackageLicense(
            name=terms.short_name if is_named else word,
            redistributable=terms.redistributable if is_known else None,
            reason=terms.reason if is_known else None,
        )


class _ManifestLicense(NamedTuple):
    channel: Channel
    redist: str
    label: str
    package: str
    license: str | None


_MANIFEST_LICENSES = Question(
    _ManifestLicense,
    """
    SELECT channel, redist, label, package, license
    FROM packages JOIN current_releases ON release = current_releases.id
    WHERE package IN (SELECT value FROM json_each(?))""",
)


def manifest_licenses(
    index: Index, packages: Collection[str]
) -> dict[tuple[Channel, str, str, str], str | None]:
    """Return the licenses by channel, redistributable, label and package."""
    return {
        (row.channel, row.redist, row.label, row.package): row.license
        for row in index.ask(_MANIFEST_LICENSES, packages)
    }


def _no_archives(name: str, platform: str, known: Collection[str], index: Index) -> UsageError:
    """Return the error for a platform that no archive of a package is for."""
    if platform not in KNOWN_PLATFORMS:
        return UnknownNameError(f"platform of {name}", platform, known)
    hint = f"run `{again(without=['--platform'])}`"
    if "redist" not in index.channels and platform not in PLATFORMS:
        download = command_for_archives("download-manifests")
        hint += f"; NVIDIA has no wheels for {platform}: for its archives, run `{download}`"
    only = ", ".join(sorted(known))
    message = f"no local release of {name} is for {platform}, only for {only}"
    return UsageError(message, hint=hint)


def package_archives(
    name: str, index: Index
) -> tuple[dict[IndexedArchive, ExplainedArchive], tuple[Reason, ...]]:
    """Return a package's archives in order, and why package sets omit it.

    The package may have other names. The name may be one of an additional version, such as
    `cudnn_8_9`. For a project in the package index, such as nvidia-cublas-cu12, only its wheels are
    returned. Raises `UnknownNameError` for a package that is in no local manifest or policy, and
    `UsageError` if the data folder has no manifests. `cudnn@9.10` is a package in one release.
    """
    name, _, release = name.partition("@")
    policies = _names(index)
    redists = index.redists()
    local = {row.package for row in index.ask(_PACKAGES)}
    names = local | policies.packages
    packages = _packages_of_product(name, index)
    if name not in names and len(packages) == 1:
        name = packages[0]
    project = None
    if name not in names and package_of_project(name) in names:
        project, name = canonical_project(name), package_of_project(name)
    others = {package for package in local if policies.root(package) == policies.root(name)}
    versioned = {package for package in local if name.startswith(f"{package}_")}
    condition = "package IN (SELECT value FROM json_each(?))"
    own = [
        one
        for one in index.archives(redists, condition, others | versioned)
        if one.archive.package in others or name == versioned_attr(one.archive.package, one.label)
    ]
    if not own and name not in names:
        raise _no_package(name, index, names)
    if project is not None and "wheels" in index.channels:
        projects = {one.archive.project or "" for one in own}
        own = [one for one in own if one.archive.project == project]
        if not own and not project.endswith(tuple("0123456789")):
            # Users shorten the name of a package, too: `cublas` for libcublas.
            raise NotInDataError(f"package {shown(project)}", project, names, (name,))
        if not own:
            raise UnknownNameError(f"project of {name}", project, projects)
    if release:
        own = _of_release(name, release, own)
    return dict(explain_archives(index, own)), _reasons(name, index, is_published=bool(own))


def _reasons(name: str, index: Index, *, is_published: bool) -> tuple[Reason, ...]:
    """Return why package sets omit a package."""
    entry = withheld_packages(index).get(name)
    reasons: list[Reason] = []
    if entry is not None:
        reasons += reasons_to_withhold(name, entry, "policy/withheld.json")
    if not is_published:
        reasons.append(unpublished(name))
    return tuple(dict.fromkeys(reasons))


def _packages_of_product(name: str, index: Index) -> list[str]:
    """Return the packages of a product or metapackage, none for other names."""
    product = METAPACKAGES.get(canonical_project(name), name)
    return [row.package for row in index.ask(_PACKAGES_OF_REDIST, product)]


def _of_release(name: str, release: str, own: Iterable[IndexedArchive]) -> list[IndexedArchive]:
    """Return the archives of a release: the newest one with a prefix, in each channel.

    Raises `NotInDataError` for a release that may exist, and `UnknownNameError` for a name that is
    not one of a release.
    """
    by_product = grouped(((one.channel, one.redist), one) for one in own)
    labels = {
        product: find_release(release, {one.label for one in archives})
        for product, archives in by_product.items()
    }
    selected = [
        one for key, archives in by_product.items() for one in archives if one.label == labels[key]
    ]
    if not selected:
        known = {str(one.label) for archives in by_product.values() for one in archives}
        try:
            Version.parse(release)
        except ValueError:
            raise UnknownNameError(f"release of {name}", release, known) from None
        raise NotInDataError(f"{name} {release}", release, known)
    return selected


def _no_package(name: str, index: Index, names: Collection[str]) -> UsageError:
    """Return the error for a name that is not one of a package."""
    packages = _packages_of_product(name, index)
    if not packages:
        return NotInDataError(f"package {shown(name)}", name, names)
    call = corrected(name, packages) or command_line("explain package", packages[0])
    hint = f"its packages: {listed_names(packages)}; run `{call}`"
    if CUDA in {name, METAPACKAGES.get(canonical_project(name))}:
        hint += f", or for a release `{command_line('explain cuda', '13.0')}`"
    return UsageError(f"{shown(name)} is a product, not a package", hint=hint)
