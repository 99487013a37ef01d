"""The facts of a feature file that findings about other files need."""

from collections import defaultdict
from collections.abc import Iterable

from cudaredist.commands.check.checked_files import Facts
from cudaredist.formats.features import ExaminedArchive, Features
from cudaredist.primitives import ArchiveId
from cudaredist.store.examined_archives import examined_archives
from cudaredist.store.symbol_folder import can_be_stored, table_name
from cudaredist.tables.api.api_packages import API_PACKAGES, PLATFORM
from cudaredist.tables.symbols.label_ranges import KEY_SIZE


def facts_of_features(features: Features) -> Facts:
    """Return the origin of a feature file, and the archives that each table must contain."""
    symbols: dict[str, set[str]] = defaultdict(set)
    apis: dict[str, set[str]] = defaultdict(set)
    for identity, *_, archive in examined_archives(features):
        key = (archive.sha256 or "")[:KEY_SIZE]
        for name in filter(can_be_stored, map(table_name, archive.libraries)):
            symbols[name].add(key)
        for name in _packages_with_api(identity, archive):
            apis[name].add(key)
    return {
        "made_from": [features.manifest_sha256, features.redist, features.label],
        "rules": features.rules,
        "symbols": {name: sorted(keys) for name, keys in symbols.items()},
        "api": {name: sorted(keys) for name, keys in apis.items()},
    }


def _packages_with_api(identity: ArchiveId, archive: ExaminedArchive) -> Iterable[str]:
    is_read = identity.package in API_PACKAGES and identity.platform == PLATFORM
    return [identity.package] if is_read and archive.sha256 else []
