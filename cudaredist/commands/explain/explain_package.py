"""explain package: report a package in all local releases and platforms."""

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import chain
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from cudaredist.commands.explain.package_closure import closure_of_archive
from cudaredist.commands.explain.package_report import (
    ExplainedArchive,
    PackageClosure,
    PackageLicense,
    PackageReport,
)
from cudaredist.errors import NotInDataError, UnknownNameError, UsageError
from cudaredist.features.distribution_list import distribution_of
from cudaredist.features.wheel import unusual_notes
from cudaredist.formats.features import Library, MissingHeaders
from cudaredist.formats.fixup_policy import FixupPolicy
from cudaredist.formats.license_policy import LicensePolicy, LicenseText
from cudaredist.formats.names import Channel
from cudaredist.formats.output_policy import OutputPolicy
from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.formats.packageset import Reason
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.report import OutputFiles
from cudaredist.grouping import grouped
from cudaredist.hints import again, command_for_archives, command_line, corrected
from cudaredist.primitives import KNOWN_PLATFORMS, Platform, Version, find_release, natural_order
from cudaredist.redists import CUDA, REDISTS
from cudaredist.sets.draft import Draft
from cudaredist.sets.entries import unpublished_draft, versioned_attr, withheld_draft
from cudaredist.sets.headers import ROOTS, holds
from cudaredist.sets.library_names import key_of
from cudaredist.sets.load import read_policies
from cudaredist.sets.metadata import UNKNOWN_TEXT, find_license, find_text
from cudaredist.sets.outputs import OutputSplit, split_outputs
from cudaredist.similar_names import listed_names
from cudaredist.store.archive_address import archive_address
from cudaredist.store.examined_contents import examined_contents
from cudaredist.store.facts_index import Index, IndexedArchive, Question
from cudaredist.store.indexed_vulnerabilities import indexed_vulnerabilities
from cudaredist.wheel_projects import METAPACKAGES, PLATFORMS, canonical_project, package_of_project
from cudaredist.words import shown

_headers = TypeAdapter(MissingHeaders | None)
_KINDS = ("sm", "compute", "lto")
"""Kinds of device code, machine code first."""
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
    policies = read_policies(index.store, (), [])
    return frozenset(local.union(policies.packages(), METAPACKAGES, REDISTS))


def explain_package(name: str, index: Index, platform: str | None = None) -> PackageReport:
    """Return a package's releases, with the contents and needs of archives.

    `platform` limits the archives. Raises the errors of `package_archives`, and `UnknownNameError`
    for a platform without the package.
    """
    archives, reasons = package_archives(name, index)
    known = {place.archive.platform for place in archives}
    if platform is not None and archives and platform not in known:
        raise _no_archives(name, platform, known, index)
    urls = read_own_file(index.store.read_policy("fixups"), FixupPolicy).urls
    explained = []
    for place, own in archives.items():
        if platform is None or place.archive.platform == platform:
            store = index.store.of_channel(place.channel)
            address = store.address_of(place.redist, place.label)
            url = archive_address(place.redist, place.archive, urls, address)
            explained.append(own.model_copy(update={"url": url}))
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
    policy = read_own_file(index.store.read_policy("licenses"), LicensePolicy)
    words = manifest_licenses(index, {one.archive.package for one in archives})
    newest = {(one.channel, one.redist): (one, own) for one, own in archives.items()}
    for one, own in newest.values():
        package = one.archive.package
        word = words.get((one.channel, one.redist, str(one.label), package))
        texts = (text for text in policy.texts.values() if text.title == own.license_text)
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
    policies = read_policies(index.store, (), [])
    redists = index.redists()
    local = {row.package for row in index.ask(_PACKAGES)}
    names = local.union(policies.packages())
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
    draft = withheld_draft(Draft(attr=name, pname=name, redist=None), policies)
    if not own:
        draft = unpublished_draft(draft)
    explained = explain_archives(index, own, policies.outputs, policies.licenses)
    return dict(explained), tuple(draft.reasons)


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


def explain_archives(
    index: Index, own: Iterable[IndexedArchive], policy: OutputPolicy, licenses: LicensePolicy
) -> Iterator[tuple[IndexedArchive, ExplainedArchive]]:
    """Yield archives with their contents and needs, in the order of releases and platforms.

    The outputs are those of package sets. Libraries and programs that sets omit are not included,
    except in sizes. Archives that were not examined have the sonames and the device code of the
    wheel of the same version.
    """
    rows = sorted(own, key=lambda one: (one.archive.platform, one.archive.variant or ""))
    rows.sort(key=lambda one: (one.channel, one.redist, one.label))
    by_wheel = _by_wheel(index, rows)
    contents = {one.contents for one in rows if one.contents}
    examined = examined_contents(index, {*contents, *by_wheel.values()})
    neighbors = _Neighbors(index, {one.redist for one in rows}, contents)

    @cache
    def described(row: int, package: str, version: Version) -> dict[str, Any]:
        # Releases share archives: each is described once.
        return _describe(split_outputs(package, version, examined[row], None, policy), licenses)

    for one in rows:
        archive = one.archive
        paths = {"relative_path": archive.relative_path, "sha256": archive.sha256}
        fields: dict[str, Any] = {"date": one.date, **paths}
        if one.contents:
            fields |= described(one.contents, archive.package, archive.version)
            fields["depends"] = neighbors.providers(one, fields["needed"])
        about = {"channel": one.channel, "is_examined": one.contents > 0}
        if one in by_wheel:
            of_wheel = described(by_wheel[one], archive.package, archive.version)
            fields |= {key: of_wheel[key] for key in ("sonames", "architectures")}
            about["is_by_wheel"] = True
        explained = ExplainedArchive.of(one.redist, one.label, archive, **about, **fields)
        yield one, explained


def _by_wheel(index: Index, rows: Iterable[IndexedArchive]) -> dict[IndexedArchive, int]:
    """Return the contents of the wheels of the same version for archives without contents."""
    unexamined = [one for one in rows if not one.contents and one.channel == "redist"]
    if not unexamined:
        return {}
    redists = {one.redist for one in unexamined}
    packages = {one.archive.package for one in unexamined}
    named = "package IN (SELECT value FROM json_each(?))"
    # With the packages of wheels, which are the same, the query does not read all wheels.
    condition = f"archives.{named} AND wheel IN (SELECT id FROM archives WHERE {named})"
    found = index.archives_by_wheel(redists, condition, packages, packages)
    contents = {one._replace(contents=0, is_by_wheel=False): one.contents for one in found}
    return {one: contents[one] for one in unexamined if one in contents}


def _describe(split: OutputSplit, licenses: LicensePolicy) -> dict[str, Any]:
    """Return the fields of an archive with its contents."""
    placed = [file for file, _, _ in split.placed(split.binaries)]
    binaries = [file for file in placed if not (isinstance(file, Library) and file.stub)]
    libraries = [file for file in binaries if isinstance(file, Library)]
    targets = chain.from_iterable(
        (*part.sass, *part.ptx, *part.lto)
        for code in split.examined.device_code.values()
        for part in (code.declared, code.embedded)
    )
    text = find_text(split.examined.license_files, licenses)
    required = (file.glibc for file in binaries if file.glibc is not None)
    return {
        "license_text": text.title if isinstance(text, LicenseText) else text,
        "distribution": {lib.path: distribution_of(lib.path, text) for lib in libraries},
        "outputs": OutputFiles.by_output(split.contents),
        "sonames": tuple(sorted({library.soname for library in libraries if library.soname})),
        "architectures": tuple(sorted(set(targets), key=architecture_order)),
        "glibc": max(required, key=Version.parse, default=None),
        "needed": tuple(sorted({name for file in binaries for name in file.needed})),
        "opens": tuple(sorted({name for file in binaries for name in file.opens})),
        "notes": unusual_notes(split.examined.notes),
    }


class _Neighbor(NamedTuple):
    package: str
    contents: int
    channel: Channel
    redist: str
    label: str
    platform: str
    variant: str | None


_NEIGHBORS = Question(
    _Neighbor,
    """
    SELECT package, contents, channel, redist, label, platform, variant
    FROM current_releases JOIN archives ON release = current_releases.id
    WHERE contents IS NOT NULL AND redist IN (SELECT value FROM json_each(?))
    ORDER BY package""",
)


class _MissingHeaders(NamedTuple):
    contents: int
    headers: str
    """As JSON."""


_MISSING_HEADERS = Question(
    _MissingHeaders,
    """
    SELECT id AS contents, headers FROM contents
    WHERE id IN (SELECT value FROM json_each(?))""",
)


class _File(NamedTuple):
    contents: int
    whole_path: str


_FILES_WITH_NAMES = Question(
    _File,
    """
    SELECT contents, folders.path || '/' || name AS whole_path
    FROM (SELECT DISTINCT value AS file FROM json_each(?)) JOIN folder_files ON name = file
    JOIN folders ON folders.id = folder JOIN contents_folders USING (folder)""",
)


class _Neighbors:
    """The other archives of each release and platform, with their libraries and headers."""

    def __init__(self, index: Index, redists: Collection[str], contents: Collection[int]) -> None:
        """Read the archives of some redistributables, and the headers that contents lack."""
        self._places = grouped(
            ((row.channel, row.redist, row.label, row.platform, row.variant), row)
            for row in index.ask(_NEIGHBORS, redists)
        )
        self._sonames = grouped(
            (row.contents, key_of(row.soname)) for row in index.sonames() if row.kind == "library"
        )
        self._missing = {
            row.contents: _headers.validate_json(row.headers) or {}
            for row in index.ask(_MISSING_HEADERS, contents)
        }
        missing = {name for headers in self._missing.values() for name in headers}
        paths = {f"{root}{name}" for root in ROOTS for name in missing}
        names = [*map(posixpath.basename, paths)]
        self._headers = grouped(
            (row.contents, row.whole_path)
            for row in index.ask(_FILES_WITH_NAMES, names)
            if row.whole_path in paths
        )

    def providers(self, one: IndexedArchive, needed: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return the packages of the release with required libraries or headers."""
        archive, libraries = one.archive, {key_of(name) for name in needed}
        headers = {
            f"{root}{name}"
            for name, ways in self._missing[one.contents].items()
            if any(holds(condition, Platform(archive.platform)) for condition in ways.values())
            for root in ROOTS
        }
        place = (one.channel, one.redist, str(one.label), archive.platform, archive.variant)
        depends: dict[str, tuple[str, ...]] = {}
        for neighbor in self._places[place]:
            names = sorted(libraries.intersection(self._sonames.get(neighbor.contents, ())))
            names += sorted(headers.intersection(self._headers.get(neighbor.contents, ())))
            if names and neighbor.package != archive.package:
                depends[neighbor.package] = tuple(names)
        return depends


@lru_cache(maxsize=1024)
def architecture_order(name: str) -> tuple[int, object]:
    """Return the sort key of an architecture, machine code first."""
    kind = name.partition("_")[0]
    return (_KINDS.index(kind) if kind in _KINDS else len(_KINDS)), natural_order(name)
