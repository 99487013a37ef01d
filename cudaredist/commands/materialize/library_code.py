"""Find the device code of a runtime root that no GPU of the set uses."""

from collections.abc import Iterable, Mapping

from cudaredist.commands.materialize.report import LibraryCode
from cudaredist.formats.features import FileCode
from cudaredist.formats.packageset import PackageSet, SetPackage
from cudaredist.primitives import parse_label
from cudaredist.store.data_folder import Store
from cudaredist.store.examined_archives import examined_archives
from cudaredist.store.layered_tables import read_layered
from cudaredist.store.read_data import load_features
from cudaredist.store.table_registry import GPU_TABLE
from cudaredist.tables.gpus.coverage import CoverageRules

_NO_CODE = FileCode(output="out", modules={}, bytes={}, unpacked={})


def library_code(
    package_set: PackageSet, paths: Mapping[str, Iterable[str]], store: Store
) -> LibraryCode | None:
    """Return the sizes of the device code in libraries, by package, from the feature files.

    Returns None if the data folder has no table of GPUs.
    """
    gpus = read_layered(store, GPU_TABLE)
    if gpus is None:
        return None
    rules, flags = CoverageRules(gpus.table), package_set.capabilities
    keeps_portable = flags.forward_compat and flags.has_plain
    size = 0
    unused: dict[str, int] = {}
    unknown: list[str] = []
    for attr, libraries in sorted(paths.items()):
        package = package_set.packages[attr]
        codes = _code_by_path(package, store)
        for path in sorted(libraries):
            code = None if codes is None else codes.get(_archive_path(package, path), _NO_CODE)
            # Images that are compressed together have no size of their own.
            if code is None or 0 in code.bytes.values():
                unknown.append(path)
                continue
            used = rules.used_images(code, flags.effective, keeps_portable=keeps_portable)
            size += sum(code.bytes.values())
            unused_bytes = sum(count for name, count in code.bytes.items() if name not in used)
            if unused_bytes:
                unused[path] = unused_bytes
    return LibraryCode(
        capabilities=flags.effective,
        size=size,
        unused=unused,
        unused_size=sum(unused.values()),
        unknown=tuple(unknown),
    )


def _code_by_path(package: SetPackage, store: Store) -> Mapping[str, FileCode] | None:
    """Return the device code in a package's archive, or None if it is unknown."""
    if package.archive is None or package.redist is None or package.release is None:
        return None
    for layer in store.layers:
        features = load_features(layer, package.redist, parse_label(package.release))
        for *_, archive in examined_archives(features):
            if archive.sha256 == package.archive.sha256:
                return archive.code_by_file
    return None


def _archive_path(package: SetPackage, path: str) -> str:
    """Return a library's path in the archive: a folder such as `lib/13` may replace `lib`."""
    folder, slash, rest = path.partition("/")
    if folder == "lib":
        for change in package.normalise:
            if change.op == "lift":
                folder = change.source
                break
    return f"{folder}{slash}{rest}"
