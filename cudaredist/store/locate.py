"""Find the data folder of a command, layered over the shipped data."""

from pathlib import Path

from cudaredist.errors import UsageError
from cudaredist.formats.base import Channel
from cudaredist.hints import again
from cudaredist.store.data_folder import TABLE_NAMES, Store, shipped_data
from cudaredist.store.files import TEMPORARY_SUFFIX, is_folder, names_in

_DEFAULT = Path("data")


def data_folder(given: Path | None, *, writing: bool, use_shipped: bool = True) -> Path:
    """Return the given data folder, else `./data`, else the shipped one.

    The shipped folder is only for reading. To read, `./data` must contain a manifest or a table. To
    write, it may also be missing or empty. Raises `UsageError` if a given folder to read does not
    exist, or if `./data` is not a data folder.
    """
    if given is not None:
        if not writing and not is_folder(given):
            usual = again(without=["--data-dir"])
            hint = f"for the usual data folder, run `{usual}`"
            if usual == again():
                hint = "for the origin of this setting, run `cudaredist config`"
            raise UsageError(f"{given}: no such folder", hint=hint)
        return given
    if not writing:
        return shipped_data() if use_shipped and not _has_data(_DEFAULT) else _DEFAULT
    # A folder without files, or with temporary ones, may be the beginning of another run's data
    # folder.
    is_free = not _DEFAULT.exists() or (
        _DEFAULT.is_dir() and all(name.endswith(TEMPORARY_SUFFIX) for name in names_in(_DEFAULT))
    )
    has_folder = any(is_folder(_DEFAULT / name) for name in ("manifests", "handwritten"))
    if not is_free and not has_folder and not _has_data(_DEFAULT):
        hint = "run `mkdir data/manifests` to make it one, or add --data-dir FOLDER"
        raise UsageError("./data is not a data folder (it has no manifests/)", hint=hint)
    return _DEFAULT


def store_to_read(
    given: Path | None,
    channel: Channel | None,
    *,
    use_shipped: bool = True,
    is_layered: bool = True,
    reads_features: bool = False,
) -> Store:
    """Return the data folder to read, over the shipped data.

    The shipped data is left out unless `is_layered` and `use_shipped`.

    The channel is the given one, else the channel of the manifests. With `reads_features`, it is
    that of the shipped data if no feature file describes the manifests.
    """
    root, shipped = data_folder(given, writing=False, use_shipped=use_shipped), shipped_data()
    is_other = root.resolve() != shipped.resolve()
    base = shipped if is_layered and use_shipped and is_other else None
    if channel is None:
        channel = local_channel(root if base is None or _has_manifests(root) else base)
        if reads_features and base is not None and not _has_features(root, channel):
            channel = local_channel(base)
    return Store(root, channel, None if base is None else Store(base, channel))


def local_channel(root: Path) -> Channel:
    """Return the channel of a folder's manifests.

    It is wheels if the folder has only manifests of wheels, else redist.
    """
    has_wheels_only = Store(root, "wheels").redists() and not Store(root).redists()
    return "wheels" if has_wheels_only else "redist"


def _has_data(root: Path) -> bool:
    """Check if a folder contains a manifest or a table.

    Killed runs may leave a folder without either.
    """
    tables = (Store(root).table_path(name) for name in TABLE_NAMES)
    return _has_manifests(root) or any(table.exists() for table in tables)


def _has_features(root: Path, channel: Channel) -> bool:
    store = Store(root, channel)
    return any(store.features(name).labels() for name in store.redists())


def _has_manifests(root: Path) -> bool:
    return bool(Store(root).redists() or Store(root, "wheels").redists())
