"""Rows of the index: the facts of a release, and of a table of symbols.

The values of a row are in the order of the columns in `facts_index.sql`. `document` is the id of
the file that they are from.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from sqlite3 import Connection
from typing import TypeAlias

from pydantic_core import to_json

from cudaredist.features.license_files import main_license
from cudaredist.formats.api_tables import ApiTable
from cudaredist.formats.base import OwnModel
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.features import ExaminedArchive, Features, Library, PackageFeatures
from cudaredist.formats.jetpack import JetPackPolicy
from cudaredist.formats.license_policy import LicensePolicy
from cudaredist.formats.runfile_records import Runfiles
from cudaredist.formats.set_policy import SetPolicy
from cudaredist.formats.symbol_tables import ImportGroup, Symbols
from cudaredist.formats.tables import CompilerRange, Gpus, NvccCompat
from cudaredist.manifests.manifest_values import Archive, Manifest
from cudaredist.primitives import nix_base32_of, parse_label, sri_of
from cudaredist.store.examined_archives import examined_archives
from cudaredist.store.policy_rows import policy_rows
from cudaredist.store.symbol_folder import table_name
from cudaredist.tables.driver_support import SYSTEMS, stated_drivers
from cudaredist.tables.gpus.gpu_table import fact_of
from cudaredist.tables.symbols.symbol_table import labels_in


def add_release(
    database: Connection,
    document: int,
    values: Sequence[object],
    manifest: Manifest | None,
    features: Features | None,
    address_of: Callable[[Archive], str | None] = lambda _: None,
    manifest_file: tuple[str | None, str | None] = (None, None),
) -> None:
    """Add the packages and archives of a release.

    `values` are the layer, the channel, the redistributable, the label and its sort key. An archive
    that only the feature file has gets no path and no address. `address_of` returns that of others.
    `manifest_file` is the address and SHA-256 of the manifest.
    """
    date = None if manifest is None else manifest.release_date
    row = (document, *values, date, manifest is not None, features is not None, *manifest_file)
    _add(database, "releases", [row])
    contents_ids = {
        (identity, archive.sha256): _add_contents(database, entry, position, archive)
        for identity, entry, position, archive in examined_archives(features)
    }
    for package in manifest.packages if manifest else ():
        _add(database, "packages", [(document, package.name, package.title, package.license)])
    archives: list[tuple[object, ...]] = []
    for one in manifest.archives if manifest else ():
        contents_id = contents_ids.pop((one.id, one.sha256), None)
        file: tuple[object, ...] = (one.relative_path, one.sha256, one.md5, one.size)
        values_of_file = _file_values(one, address_of(one))
        archives.append((*one.id, str(one.version), *file, contents_id, *values_of_file))
    # Only the feature file has the other archives.
    for (identity, sha256), contents_id in contents_ids.items():
        file = (None, sha256, None, None)
        hashes = (None, None, *_hash_values(sha256), None, None)
        archives.append((*identity, None, *file, contents_id, *hashes))
    query = """
        INSERT INTO archives (release, package, platform, variant, version, relative_path, sha256,
            md5, size, contents, file_name, url, sri, nix_base32, project, wheel_version)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
    database.executemany(query, ((document, *row) for row in archives))


def _file_values(archive: Archive, url: str | None) -> tuple[str | None, ...]:
    """Return the columns of an archive's file, from its name to the version of the wheel."""
    file_name = archive.relative_path.rpartition("/")[2]
    wheel_version = None if archive.project is None else file_name.split("-")[1]
    return (file_name, url, *_hash_values(archive.sha256), archive.project, wheel_version)


def _hash_values(sha256: str | None) -> tuple[str | None, str | None]:
    """Return the other forms of a SHA-256."""
    return (None, None) if sha256 is None else (sri_of(sha256), nix_base32_of(sha256))


def _add_contents(
    database: Connection, entry: PackageFeatures, position: int, archive: ExaminedArchive
) -> int:
    """Add the contents of an archive, unless they are known, and return their id."""
    shared = [files for files in entry.files if position in files.archives]
    headers = to_json(entry.missing_headers_of(position)).decode()
    facts = archive.model_dump_json(exclude={"code_by_file"})
    code = None if archive.code_by_file is None else to_json(archive.code_by_file).decode()
    folders = [
        (files.output, path, names)
        for files in shared
        for path, names in sorted(files.folders.items())
    ]
    digest = _digest(facts, code, headers, folders)
    known = _known_row(database, "contents", digest)
    if known:
        return known
    has_code = bool(archive.code_by_file or archive.device_code)
    licenses = archive.license_files or {}
    license_sha256 = licenses.get(main_license(licenses) or "")
    about = (bool(shared), archive.unlisted, license_sha256)
    values = (digest, facts, headers, code, has_code, *about)
    contents_id = add_row(database, "contents", values)
    outputs = archive.outputs.items()
    _add(database, "outputs", ((contents_id, name, of.files, of.bytes) for name, of in outputs))
    for binary in (*archive.libraries, *archive.programs):
        kind: tuple[str | None, ...] = ("program", None, None)
        links: tuple[str, ...] = ()
        if isinstance(binary, Library):
            kind = ("stub" if binary.stub else "library", binary.soname, table_name(binary))
            links = binary.links
        place = (contents_id, binary.path, binary.output, *kind)
        ways = (("needed", binary.needed), ("opens", binary.opens))
        libraries = json.dumps([(name, way) for way, names in ways for name in names])
        needs = (binary.glibc, binary.libstdcxx, ":".join(binary.runpath), libraries)
        binary_id = add_row(database, "binaries", (*place, *needs))
        _add(database, "links", ((binary_id, link) for link in links))
    folder_rows = (
        (contents_id, output, _add_folder(database, path, names)) for output, path, names in folders
    )
    _add(database, "contents_folders", folder_rows)
    return contents_id


def _add_folder(database: Connection, path: str, names: str) -> int:
    """Add a folder of files, unless it is known, and return its id."""
    digest = _digest(path, names)
    known = _known_row(database, "folders", digest)
    if known:
        return known
    row = add_row(database, "folders", (digest, path))
    _add(database, "folder_files", ((row, name) for name in names.split("/")))
    return row


def add_symbols(database: Connection, document: int, layer: str, table: Symbols) -> None:
    """Add the exports and imports of a library, and the releases that have them.

    Raises `InvalidFileError` for packed names that cannot be read, before it adds anything.
    """
    groups = [(group, group.symbols()) for group in (*table.exports, *table.imports)]
    providers = []
    for one in table.providers:
        source = (one.channel, one.redist, one.package, one.platform, one.variant, one.stub)
        row = add_row(database, "symbol_providers", (document, layer, table.soname, *source))
        providers.append((row, sorted(one.releases, key=parse_label)))
        for archives, is_read in ((one.unread, False), (one.releases, True)):
            rows = ((row, label, archive, is_read) for label, archive in archives.items())
            _add(database, "symbol_archives", rows)
    for group, names in groups:
        library = group.library if isinstance(group, ImportGroup) else None
        releases = json.dumps(group.releases)
        values = (document, table.soname, group.version, library, releases)
        row = add_row(database, "symbol_groups", values)
        _add(database, "symbols", ((row, name) for name in names))
        texts = group.releases or ("*",) * len(providers)
        for (provider, labels), text in zip(providers, texts, strict=True):
            known = labels_in(text, labels)
            _add(database, "symbol_releases", ((row, provider, label) for label in known))


def add_api(database: Connection, document: int, layer: str, table: ApiTable) -> None:
    """Add the headers of a package with the forms of their names, and the releases."""
    providers = []
    for one in table.providers:
        source = (one.channel, one.redist, one.platform, one.variant)
        row = add_row(database, "api_providers", (document, layer, table.package, *source))
        labels = sorted(one.releases, key=parse_label)
        providers.append((row, labels))
        _add(database, "api_archives", ((row, label, one.releases[label]) for label in labels))
    sets: dict[tuple[str, ...], int] = {}

    def set_of(releases: tuple[str, ...]) -> int:
        texts = releases or ("*",) * len(providers)
        if texts not in sets:
            row = sets[texts] = add_row(database, "api_sets", (document, json.dumps(texts)))
            for (provider, labels), text in zip(providers, texts, strict=True):
                known = labels_in(text, labels)
                _add(database, "api_releases", ((row, provider, label) for label in known))
        return sets[texts]

    rows: list[tuple[object, ...]] = []
    for path, header in table.headers.items():
        place = (document, layer, table.package, path)
        row = set_of(header.releases)
        rows.append((*place, "header", path, "", path, "", None, row))
        for unread in header.unread:
            row = set_of(unread.releases)
            rows.append((*place, "unread", path, "", unread.reason, "", None, row))
        for group in header.groups:
            row = set_of(group.releases)
            rows += ((*place, *form, row) for form in group.forms())
    _add(database, "api_forms", rows)


def add_table(database: Connection, document: int, layer: str, table: OwnModel) -> None:
    """Add the rows of a table, such as those of GPUs, compilers, drivers or runfiles."""
    match table:
        case Gpus():
            rows_by_table = {"gpus": _gpu_rows(table)}
        case NvccCompat():
            rows_by_table = {"compilers": _compiler_rows(table), "glibc_bounds": _glibc_rows(table)}
        case DriverPolicy():
            ptx = ((cuda, one.version, one.reference) for cuda, one in table.ptx.items())
            rows_by_table = {"drivers": _driver_rows(table), "ptx_versions": ptx}
        case JetPackPolicy():
            compat = _jetson_compat_rows(table)
            rows_by_table = {"jetpacks": _jetpack_rows(table), "jetson_compat": compat}
        case LicensePolicy():
            rows_by_table = {
                "license_texts": _license_text_rows(table),
                "distributable_names": _distributable_rows(table),
                "policies": policy_rows(table),
            }
        case SetPolicy():
            rows_by_table = {"policies": policy_rows(table)}
        case Runfiles():
            rows_by_table = {"runfiles": _runfile_rows(table)}
        case _:
            rows_by_table = {}
    for name, rows in rows_by_table.items():
        _add(database, name, ((document, layer, *row) for row in rows))


_Rows: TypeAlias = Iterator[tuple[object, ...]]


def _gpu_rows(table: Gpus) -> _Rows:
    for capability, gpu in table.capabilities.items():
        name = capability.replace(".", "")
        number = int(name.rstrip("af")) * 10
        releases = (gpu.first_cuda, gpu.last_cuda)
        renamed_to = fact_of(gpu.policy, "renamed_to")
        about = (gpu.family, *releases, gpu.jetson, json.dumps(gpu.products), renamed_to)
        yield (capability, f"sm_{name}", name, number, *about)


def _compiler_rows(table: NvccCompat) -> _Rows:
    for label, release in table.releases.items():
        for name, one in release.compilers.items():
            limits: tuple[object, ...] = (None, None, None)
            if isinstance(one, CompilerRange):
                limits = (one.min, one.max, one.unit)
            yield (label, name, one.status, *limits)


def _glibc_rows(table: NvccCompat) -> _Rows:
    for label, release in table.releases.items():
        glibc = release.glibc
        if glibc is not None:
            yield (label, glibc.newest, not glibc.clashes, json.dumps(glibc.clashes))


def _runfile_rows(table: Runfiles) -> _Rows:
    for label, by_platform in table.runfiles.items():
        for platform, one in by_platform.items():
            hashes = (one.sha256, one.sri, one.md5)
            yield (label, platform, one.name, one.url, one.size, *hashes, one.driver)


def _license_text_rows(policy: LicensePolicy) -> _Rows:
    for text in policy.texts.values():
        for sha256 in text.files:
            yield (sha256, text.title, text.has_list)


def _distributable_rows(policy: LicensePolicy) -> _Rows:
    for text in policy.texts.values():
        for listed in text.listed:
            for pattern in listed.files:
                file_name = pattern.rpartition("/")[2].lower()
                about = (pattern, file_name, listed.is_conditional)
                yield (text.title, listed.component, listed.system, *about)


def _jetpack_rows(policy: JetPackPolicy) -> _Rows:
    """Yield a row for each release of L4T."""
    for name, release in policy.releases.items():
        libraries = (release.cuda, release.cudnn, release.tensorrt)
        about = (json.dumps(release.capabilities), release.platform, release.reference)
        for l4t in release.l4t:
            yield (name, l4t, int(release.generation), *libraries, *about)


def _jetson_compat_rows(policy: JetPackPolicy) -> _Rows:
    for generation, packages in policy.compat.items():
        for one in packages:
            yield (int(generation), one.package, one.version, one.cuda, one.reference)


def _driver_rows(policy: DriverPolicy) -> _Rows:
    """Yield the drivers of each CUDA release and operating system."""
    for label, release in policy.releases.items():
        for system in SYSTEMS:
            stated = stated_drivers(parse_label(label), system, policy)
            yield (label, system, stated.native, stated.minor, release.reference)


def _digest(*values: object) -> bytes:
    return blake2b(json.dumps(values).encode(), digest_size=16).digest()


def _known_row(database: Connection, table: str, digest: bytes) -> int:
    """Return the row with a digest, 0 if there is none."""
    found = database.execute(f"SELECT id FROM {table} WHERE digest = ?", [digest]).fetchone()
    row: int = found[0] if found else 0
    return row


def add_row(database: Connection, table: str, values: Sequence[object]) -> int:
    """Add a row with a new number, and return the number."""
    marks = ", ".join("?" * len(values))
    query = f"INSERT INTO {table} VALUES (NULL, {marks})"
    return database.execute(query, values).lastrowid or 0


def _add(database: Connection, table: str, rows: Iterable[Sequence[object]]) -> None:
    listed = list(rows)
    if listed:
        marks = ", ".join("?" * len(listed[0]))
        query = f"INSERT INTO {table} VALUES ({marks})"
        database.executemany(query, listed)
