"""Which data folder a command uses: the one given, `./data`, or the shipped one."""

from pathlib import Path

from cudaredist.errors import UsageError
from cudaredist.schema.base import Channel
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.files import names_in


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # such as a name that is too long
        return False


def data_folder(given: Path | None, *, writing: bool) -> Path:
    """Return the data folder to use: the one given, else `./data`, else (to read) the shipped one.

    To write, `./data` is also taken where it is empty or not there. Raises `UsageError` where a
    folder given to be read does not exist, or `./data` is something else.
    """
    default = Path("data")
    if given is not None:
        if not writing and not _is_folder(given):
            raise UsageError(f"{given}: no such folder", hint="name the data folder in --data-dir")
        return given
    if _is_folder(default / "manifests"):
        return default
    if not writing:
        return shipped_data()
    # An empty one may be the start of another run's.
    if default.exists() and (not default.is_dir() or names_in(default)):
        raise UsageError(
            "./data is no data folder (it has no manifests/)",
            hint="name one in --data-dir, or make ./data/manifests",
        )
    return default


def held_channel(root: Path) -> Channel:
    """Return the channel that a folder holds manifests of: redist, but wheels where it is alone."""
    has_wheels_only = Store(root, "wheels").redists() and not Store(root).redists()
    return "wheels" if has_wheels_only else "redist"


def held_folder(given: Path | None, *, writing: bool) -> Path:
    """Return the folder to work on what is held in, which must be there.

    Raises `UsageError` where it is not: nothing could be held in it.
    """
    root = data_folder(given, writing=writing)
    if not _is_folder(root):
        raise UsageError(
            f"{root}: no such folder", hint="cudaredist download-manifests fetches manifests first"
        )
    return root
