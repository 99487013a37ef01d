"""explain package: one package over all releases and platforms of the data folder."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from cudaredist.errors import UnknownNameError
from cudaredist.manifests.manifest_values import Archive
from cudaredist.packagesets.headers import ROOTS, holds
from cudaredist.packagesets.libraries import key_of
from cudaredist.pipeline.read_data import held_features, held_manifest, require_manifests
from cudaredist.primitives import Platform, Version, natural_order
from cudaredist.reports.answer_reports import ExplainedArchive, PackageReport
from cudaredist.reports.report import OutputFiles
from cudaredist.schema.features import ExaminedArchive, Features, Library, MissingHeaders, Program
from cudaredist.store.data_folder import Store

_KINDS = ("sm", "compute", "lto")
"""Kinds of device code, those that run as they are first."""


class _Known(NamedTuple):
    """An archive as the feature file knows it."""

    examined: ExaminedArchive
    headers: MissingHeaders
    files: Iterable[str]

    @property
    def binaries(self) -> Iterator[Library | Program]:
        """The libraries and programs, without stubs."""
        yield from (library for library in self.examined.libraries if not library.stub)
        yield from self.examined.programs


def explain_package(name: str, store: Store) -> PackageReport:
    """Return the releases of a package, with what each archive provides and needs.

    Raises `UnknownNameError` for a package that no local manifest names, and `UsageError` if there
    are no manifests.
    """
    archives: list[ExplainedArchive] = []
    names: set[str] = set()
    for redist in require_manifests(store):
        for label in store.manifests(redist).labels():
            manifest = held_manifest(store, redist, label)
            names |= {package.name for package in manifest.packages}
            own = [archive for archive in manifest.archives if archive.package == name]
            features = held_features(store, redist, label) if own else None
            archives += _explained(redist, label, own, features)
    if name not in names:
        raise UnknownNameError("package", name, names)
    return PackageReport(asked=name, archives=tuple(archives))


def _explained(
    redist: str, label: Version, own: Iterable[Archive], features: Features | None
) -> Iterator[ExplainedArchive]:
    places: dict[tuple[str, str | None], dict[str, _Known]] = defaultdict(dict)
    for package, entry in features.packages.items() if features else ():
        for position, examined in enumerate(entry.archives):
            if isinstance(examined, ExaminedArchive):
                headers = entry.missing_headers_of(position) or {}
                known = _Known(examined, headers, entry.files_of(position) or ())
                places[examined.platform, examined.variant][package] = known
    for archive in sorted(own, key=lambda one: (one.platform, one.variant or "")):
        others = places[archive.platform, archive.variant]
        found = others.get(archive.package)
        if found is None or found.examined.sha256 != archive.sha256:
            yield ExplainedArchive.of(redist, label, archive, is_examined=False)
            continue
        targets = chain.from_iterable(
            (*part.sass, *part.ptx, *part.lto)
            for code in found.examined.device_code.values()
            for part in (code.declared, code.embedded)
        )
        libraries = found.examined.libraries
        yield ExplainedArchive.of(
            redist,
            label,
            archive,
            is_examined=True,
            outputs=OutputFiles.by_output(found.examined.outputs),
            sonames=tuple(sorted({one.soname for one in libraries if one.soname})),
            architectures=tuple(sorted(set(targets), key=_architecture_order)),
            needed=tuple(sorted({name for one in found.binaries for name in one.needed})),
            opens=tuple(sorted({name for one in found.binaries for name in one.opens})),
            depends=_depends(archive, found, others),
        )


def _architecture_order(name: str) -> tuple[int, object]:
    kind = name.partition("_")[0]
    return (_KINDS.index(kind) if kind in _KINDS else len(_KINDS)), natural_order(name)


def _depends(
    archive: Archive, found: _Known, others: Mapping[str, _Known]
) -> dict[str, tuple[str, ...]]:
    """Return the packages of the same release that have libraries or headers that it needs."""
    system = Platform(archive.platform).os
    needed = {key_of(name) for file in found.binaries for name in file.needed}
    headers = {
        f"{root}{name}"
        for name, ways in found.headers.items()
        if any(holds(condition, system) for condition in ways.values())
        for root in ROOTS
    }
    depends: dict[str, tuple[str, ...]] = {}
    for package, known in sorted(others.items()):
        sonames = {
            key_of(library.soname or "") for library in known.examined.libraries if not library.stub
        }
        names = sorted(needed & sonames) + sorted(headers & set(known.files))
        if names and package != archive.package:
            depends[package] = tuple(names)
    return depends
