"""Find the data folder of a command, layered over the shipped data."""

from collections.abc import Collection
from pathlib import Path
from typing import get_args

from cudaredist.errors import UsageError
from cudaredist.formats.names import Channel
from cudaredist.hints import again
from cudaredist.primitives import find_release
from cudaredist.redists import CUDA
from cudaredist.store.data_folder import TABLE_NAMES, Store, shipped_data
from cudaredist.store.files import folder_problem, is_folder, names_in, temporary_files

_DEFAULT = Path("data")


def data_folder(given: Path | None, *, writing: bool, use_shipped: bool = True) -> Path:
    """Return the given data folder, else `./data`, else the shipped one.

    The shipped folder is only for reading. To read, `./data` must contain a manifest or a table. To
    write, it may also be missing or empty. Raises `UsageError` if a given folder to read does not
    exist, or if `./data` is not a data folder.
    """
    if given is not None:
        problem = None if writing else folder_problem(given)
        if problem is not None:
            usual = again(without=["--data-dir"])
            hint = f"for the usual data folder, run `{usual}`"
            if usual == again():
                hint = "for the origin of this setting, run `cudaredist config`"
            raise UsageError(f"{given}: {problem}", hint=hint)
        return given
    if not writing:
        return shipped_data() if use_shipped and not _has_data(_DEFAULT) else _DEFAULT
    # A folder without files, or with temporary ones, may be the beginning of another run's data
    # folder.
    is_free = not _DEFAULT.exists() or (
        _DEFAULT.is_dir() and len(list(temporary_files(_DEFAULT))) == len(names_in(_DEFAULT))
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
    with_unexamined: bool = False,
    redists: Collection[str] = (CUDA,),
) -> Store:
    """Return the data folder to read, over the shipped data.

    The shipped data is left out unless `is_layered` and `use_shipped`. Below a data folder, it has
    only the releases that were examined, unless `with_unexamined`: package sets and comparisons
    would otherwise prefer newer releases without known contents to those of the data folder.

    The channel is the given one. If there is none, it is the channel of the folder's manifests of
    `redists`, else that of the shipped data. Without shipped data, it is the channel of all
    manifests of the folder. With `reads_features`, a channel without feature files does not count.
    """
    root, shipped = data_folder(given, writing=False, use_shipped=use_shipped), shipped_data()
    is_other = root.resolve() != shipped.resolve()
    base = shipped if is_layered and use_shipped and is_other else None
    if base is None:
        return Store(root, channel or local_channel(root))
    if channel is None:
        channel = _channel_of(root, redists, with_features=reads_features) or local_channel(base)
    return Store(root, channel, Store(base, channel, examined_only=not with_unexamined))


def channels_to_read(store: Store, named: Channel | None) -> tuple[Channel, ...]:
    """Return the channels of a question about facts: the named one, else all with manifests.

    NVIDIA's archives come first. Without any manifests, it is the channel of the store.
    """
    if named is not None:
        return (named,)
    channels = (
        channel for channel in get_args(Channel) if store.of_channel(channel).has_manifests()
    )
    return tuple(channels) or (store.channel,)


def with_releases(store: Store, releases: Collection[tuple[str, str]]) -> Store:
    """Return the data of the other channel if only that has all releases, else the same data.

    A release is a redistributable and a label, or the beginning of one.
    """
    if _has_releases(store, releases):
        return store
    other = store.in_other_channel()
    return other if _has_releases(other, releases) else store


def _has_releases(store: Store, releases: Collection[tuple[str, str]]) -> bool:
    return all(find_release(text, store.manifests(name).labels()) for name, text in releases)


def local_channel(root: Path) -> Channel:
    """Return the channel of a folder's manifests.

    It is wheels if the folder has only manifests of wheels, else redist. Of the shipped data, only
    wheels are examined, so that they are its channel.
    """
    if root.resolve() == shipped_data().resolve():
        return _channel_of(root, (CUDA,), with_features=True) or "redist"
    has_wheels_only = Store(root, "wheels").has_manifests() and not Store(root).has_manifests()
    return "wheels" if has_wheels_only else "redist"


def _channel_of(root: Path, redists: Collection[str], *, with_features: bool) -> Channel | None:
    """Return the first channel with manifests of all redistributables, None if there is none.

    With `with_features`, it needs feature files of any.
    """
    for store in (Store(root, channel) for channel in get_args(Channel)):
        has_all = all(store.manifests(name).labels() for name in redists)
        if has_all and (store.feature_redists() or not with_features):
            return store.channel
    return None


def describe_all(store: Store, channels: Collection[Channel]) -> str:
    """Return the sentence that names the channels of a question, and the layers."""
    if len(channels) == 1:
        return describe_data(store, store.channel)
    layers = [
        layer
        for layer in store.layers
        if any(layer.of_channel(channel).has_manifests() for channel in channels)
    ]
    return f"using NVIDIA's archives and wheels of {' and '.join(map(_title, layers))}"


def _title(layer: Store) -> str:
    is_shipped = layer.root == shipped_data()
    return "the data shipped with cudaredist" if is_shipped else str(layer.root)


def describe_data(store: Store, named: Channel | None) -> str:
    """Return the sentence that names the channel and the layers with its releases.

    If no channel is `named`, and the folder has manifests of another one only, it names that, too.
    """
    layers = [layer for layer in store.layers if layer.has_manifests()] or store.layers[:1]
    sentence = f"using --channel {store.channel} of {' and '.join(map(_title, layers))}"
    local = store.layers[0]
    other = local.in_other_channel()
    if named is None and other.has_manifests() and not local.has_manifests():
        sentence += f"; for the manifests in {local.root}, add --channel {other.channel}"
    return sentence


def _has_data(root: Path) -> bool:
    """Check if a folder contains a manifest or a table.

    Killed runs may leave a folder without either.
    """
    tables = (Store(root).table_path(name) for name in TABLE_NAMES)
    return _has_manifests(root) or any(table.exists() for table in tables)


def _has_manifests(root: Path) -> bool:
    return Store(root).has_manifests() or Store(root, "wheels").has_manifests()
