"""explain package: report a package in all local releases and platforms."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from cudaredist.commands.explain.report import ExplainedArchive, PackageReport
from cudaredist.errors import UnknownNameError
from cudaredist.formats.features import ExaminedArchive, Features, Library, MissingHeaders, Program
from cudaredist.formats.policy import OutputPolicy
from cudaredist.formats.report import OutputFiles
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Platform, Version, natural_order
from cudaredist.sets.draft import Draft
from cudaredist.sets.entries import unpublished_draft, versioned_attr, withheld_draft
from cudaredist.sets.headers import ROOTS, holds
from cudaredist.sets.libraries import key_of
from cudaredist.sets.load import read_policies
from cudaredist.sets.outputs import split_outputs
from cudaredist.store.data_folder import Store
from cudaredist.store.read_data import (
    examined_archives,
    load_features,
    load_manifest,
    require_manifests,
)

_KINDS = ("sm", "compute", "lto")
"""Kinds of device code, machine code first."""


class _Known(NamedTuple):
    """An archive in a feature file."""

    examined: ExaminedArchive
    headers: MissingHeaders
    files: Iterable[str]


def explain_package(name: str, store: Store) -> PackageReport:
    """Return a package's releases, with the contents and needs of archives.

    The package may have other names, and the name may be one of an additional version, such as
    `cudnn_8_9`. Raises `UnknownNameError` for a package that is in no local manifest or policy, and
    `UsageError` if the data folder has no manifests.
    """
    policies = read_policies(store, (), [])
    archives: list[ExplainedArchive] = []
    names = set(policies.packages())
    for redist in require_manifests(store):
        for label in store.manifests(redist).labels():
            manifest = load_manifest(store, redist, label)
            names |= {package.name for package in manifest.packages}
            own = [
                archive
                for archive in manifest.archives
                if name == versioned_attr(archive.package, label)
                or policies.root(name) == policies.root(archive.package)
            ]
            features = load_features(store, redist, label) if own else None
            archives += explain_archives(redist, label, own, features, policies.outputs)
    if not archives and name not in names:
        raise UnknownNameError("package", name, names)
    draft = withheld_draft(Draft(attr=name, pname=name, redist=None), policies)
    if not archives:
        draft = unpublished_draft(draft)
    return PackageReport(asked=name, archives=tuple(archives), reasons=draft.reasons)


def explain_archives(
    redist: str,
    label: Version,
    own: Iterable[Archive],
    features: Features | None,
    policy: OutputPolicy,
) -> Iterator[ExplainedArchive]:
    """Yield the contents and needs of archives of one release, ordered by platform.

    The outputs are those of package sets. Libraries and programs that sets omit are not included,
    except in sizes.
    """
    by_platform: dict[tuple[str, str | None], dict[str, _Known]] = defaultdict(dict)
    for (package, *_), entry, position, examined in examined_archives(features):
        headers, files = entry.missing_headers_of(position), entry.files_of(position)
        known = _Known(examined, headers or {}, files or ())
        by_platform[examined.platform, examined.variant][package] = known
    for archive in sorted(own, key=lambda archive: (archive.platform, archive.variant or "")):
        others = by_platform[archive.platform, archive.variant]
        own_features = others.get(archive.package)
        if own_features is None or own_features.examined.sha256 != archive.sha256:
            yield ExplainedArchive.of(redist, label, archive, is_examined=False)
            continue
        split = split_outputs(archive.package, archive.version, own_features.examined, None, policy)
        placed = [file for file, _, _ in split.placed(split.binaries)]
        binaries = [file for file in placed if not (isinstance(file, Library) and file.stub)]
        targets = chain.from_iterable(
            (*part.sass, *part.ptx, *part.lto)
            for code in own_features.examined.device_code.values()
            for part in (code.declared, code.embedded)
        )
        libraries = [file for file in placed if isinstance(file, Library)]
        yield ExplainedArchive.of(
            redist,
            label,
            archive,
            is_examined=True,
            outputs=OutputFiles.by_output(split.contents),
            sonames=tuple(sorted({library.soname for library in libraries if library.soname})),
            architectures=tuple(sorted(set(targets), key=architecture_order)),
            needed=tuple(sorted({name for file in binaries for name in file.needed})),
            opens=tuple(sorted({name for file in binaries for name in file.opens})),
            depends=_dependencies(archive, own_features, binaries, others),
        )


def architecture_order(name: str) -> tuple[int, object]:
    """Return the sort key of an architecture, machine code first."""
    kind = name.partition("_")[0]
    return (_KINDS.index(kind) if kind in _KINDS else len(_KINDS)), natural_order(name)


def _dependencies(
    archive: Archive,
    known: _Known,
    binaries: Iterable[Library | Program],
    others: Mapping[str, _Known],
) -> dict[str, tuple[str, ...]]:
    """Return the packages of the release with required libraries or headers."""
    platform = Platform(archive.platform)
    needed = {key_of(name) for file in binaries for name in file.needed}
    headers = {
        f"{root}{name}"
        for name, ways in known.headers.items()
        if any(holds(condition, platform) for condition in ways.values())
        for root in ROOTS
    }
    depends: dict[str, tuple[str, ...]] = {}
    for package, other in sorted(others.items()):
        sonames = {
            key_of(library.soname or "") for library in other.examined.libraries if not library.stub
        }
        names = sorted(needed & sonames) + sorted(headers & set(other.files))
        if names and package != archive.package:
            depends[package] = tuple(names)
    return depends
