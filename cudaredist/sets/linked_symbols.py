"""The symbols that an archive needs from the libraries of CUDA and of other selected releases."""

from collections.abc import Iterator

from cudaredist.formats.features import ExaminedArchive
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Version
from cudaredist.sets.file_outputs import is_for_other_cuda
from cudaredist.sets.inputs import InputManifest, SetData
from cudaredist.sets.platforms import select_archive
from cudaredist.sets.requirements import SetTarget
from cudaredist.store.symbol_folder import table_name
from cudaredist.tables.symbols.symbol_check import LinkedLibrary, check_symbols
from cudaredist.tables.symbols.symbol_table import LibraryRelease
from cudaredist.words import listed

_NAMES_SHOWN = 2


class LinkedSymbols:
    """The symbols of the libraries that a set has so far."""

    def __init__(self, target: SetTarget, data: SetData) -> None:
        self._target = target
        self._data = data
        self._libraries: dict[LinkedLibrary, LibraryRelease | None] = {}

    def add(self, manifest: InputManifest) -> None:
        """Add the libraries of a release."""
        for package in manifest.packages.values():
            archive = select_archive(package, self._target.platform, self._target.cuda)
            if isinstance(archive, Archive):
                self._libraries |= self._libraries_of(manifest, archive)

    def refusal(self, manifest: InputManifest, archive: Archive) -> str | None:
        """Return a refusal if an archive needs symbols that the set does not have, or None.

        Symbols that no table has are not checked.
        """
        own = self._libraries_of(manifest, archive)
        missing = check_symbols({**self._libraries, **own}, of=own).missing
        for library, provider, names in missing:
            return (
                f"{library.soname} needs symbols that {provider.soname} of {provider.owner} "
                f"does not export: {listed(list(names), _NAMES_SHOWN)}"
            )
        return None

    def _libraries_of(
        self, manifest: InputManifest, archive: Archive
    ) -> dict[LinkedLibrary, LibraryRelease | None]:
        """Return the libraries of an archive, with their symbols if a table has them."""
        examined = examined_archive(manifest, archive, self._data)
        if examined is None or archive.sha256 is None:
            return {}
        libraries: dict[LinkedLibrary, LibraryRelease | None] = {}
        for name in _table_names(examined, self._target.cuda):
            table = self._data.symbols.table(name)
            library = LinkedLibrary(name, archive.package, archive.sha256)
            libraries[library] = table.in_archive(archive.sha256) if table else None
        return libraries


def examined_archive(
    manifest: InputManifest, archive: Archive, data: SetData
) -> ExaminedArchive | None:
    """Return the facts of an archive, or None if unexamined."""
    features = data.read_features(manifest.redist, manifest.label)
    if features is None or archive.sha256 is None:
        return None
    return features.examined.get((archive.package, archive.sha256))


def _table_names(examined: ExaminedArchive, cuda: Version) -> Iterator[str]:
    """Yield the names of the tables of an archive's libraries for a CUDA release."""
    folders = examined.cuda_versions_in_lib
    for library in examined.libraries:
        if not library.stub and not is_for_other_cuda(library.path, folders, cuda):
            yield table_name(library)
