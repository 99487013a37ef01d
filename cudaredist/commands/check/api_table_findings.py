"""Findings about the tables of APIs in a data folder."""

from collections.abc import Iterator

from cudaredist.commands.check.findings import finding, own_file_findings
from cudaredist.commands.check.report import Finding
from cudaredist.formats.api_tables import ApiTable
from cudaredist.formats.features import Features
from cudaredist.formats.registry import FILE_KINDS
from cudaredist.hints import command_line
from cudaredist.primitives import Version
from cudaredist.store.api_folder import ApiFolder
from cudaredist.store.data_folder import Store
from cudaredist.store.examined_archives import examined_archives
from cudaredist.tables.api.api_packages import API_PACKAGES, PLATFORM
from cudaredist.tables.symbols.label_ranges import KEY_SIZE


class ApiTables:
    """The tables of APIs, and the archives that each contains."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._archives: dict[str, set[str]] = {}
        """The keys of the archives in each table, by package."""
        self._broken: set[str] = set()
        """Packages with a table that cannot be read."""

    def findings(self) -> Iterator[Finding]:
        """Read the tables, and find broken ones."""
        folder = ApiFolder(self._store.api_path)
        for package in folder.names():
            path = folder.place(package)
            model = yield from own_file_findings(self._store, path, FILE_KINDS["api"])
            if not isinstance(model, ApiTable):
                self._broken.add(package)
                continue
            if model.package != package:
                text = f"is the table of {model.package}"
                yield finding("invalid", text, path=self._store.relative(path))
            keys = (provider.releases.values() for provider in model.providers)
            self._archives[package] = set().union(*keys)

    def lacking(self, features: Features, redist: str, label: Version) -> Iterator[Finding]:
        """Find the packages of a release whose headers are not in the tables.

        A folder without tables has no findings, because tables are optional.
        """
        if not self._archives and not self._broken:
            return
        lacking: set[str] = set()
        for identity, *_, archive in examined_archives(features):
            package = identity.package
            if package not in API_PACKAGES or identity.platform != PLATFORM or not archive.sha256:
                continue
            key = archive.sha256[:KEY_SIZE]
            if package not in self._broken and key not in self._archives.get(package, ()):
                lacking.add(package)
        names = sorted(lacking)
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            message = f"the headers of {names[0]}{more} are not in any table"
            hint = f"{command_line('update-api', channel=self._store.channel)} adds them"
            yield finding("table-lacks", message, redist=redist, label=label, hint=hint)
