"""The manifests in a data folder, with hints for missing ones."""

import shlex
from collections.abc import Collection

from cudaredist.errors import UsageError, located
from cudaredist.hints import again, command_line, takes
from cudaredist.manifests.manifest_values import Manifest
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version, find_release
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.files import require_file
from cudaredist.words import shown


def require_manifests(store: Store, redists: Collection[str] = ()) -> tuple[str, ...]:
    """Return the redistributables with local manifests.

    `redists` limits them to these names. Raises `UsageError` if there are none.
    """
    local = _local_redists(store, redists)
    if local:
        return local
    raise no_manifests(store, redists)


def _local_redists(store: Store, redists: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in store.redists() if not redists or name in redists)


def no_manifests(store: Store, redists: Collection[str] = ()) -> UsageError:
    """Return the error for missing local manifests, with a command to get them."""
    other = store.in_other_channel()
    download = command_line(
        "download-manifests", *(f"--redist {name}" for name in redists), channel=store.channel
    )
    hint = f"run `{download}`, or select another folder with --data-dir"
    if takes("--channel") and _local_redists(other, redists):
        without = ["--base-url", "--allow-http"] if other.channel == "wheels" else []
        call = again(channel=other.channel, without=without)
        hint = f"--channel {other.channel} has local manifests: run `{call}`"
    of = f" of {', '.join(redists)}" if redists else ""
    folder = "the shipped data" if store.root == shipped_data() else store.root
    message = f"no local manifests{of} for --channel {store.channel} in {folder}"
    return UsageError(message, hint=hint)


def refuse_other_channel(store: Store, redist: str, text: str) -> None:
    """Raise `UsageError` if only the other channel has a release with a label or its beginning."""
    other = store.in_other_channel()
    release = find_release(text, store.manifests(redist).labels())
    release_of_other = find_release(text, other.manifests(redist).labels())
    if release is None and release_of_other is not None:
        hint = f"--channel {other.channel} has it: run `{again(channel=other.channel)}`"
        message = f"no local release of {redist} is called {shown(text)}"
        raise UsageError(f"{message} for --channel {store.channel}", hint=hint)


def process_command(
    store: Store, redists: Collection[str] = (), platform: str | None = None
) -> str:
    """Return the command to create the feature files of local manifests."""
    flags = [f"--redist {shlex.quote(redist)}" for redist in redists]
    flags += [f"--platform {shlex.quote(platform)}"] if platform else []
    return command_line("process-manifests", *flags, channel=store.channel)


def load_manifest(store: Store, redist: str, label: Version) -> Manifest:
    """Return a local manifest.

    Raises `ReadError` if it is missing or unreadable, and `InvalidFileError` if it is not valid.
    """
    path = store.manifests(redist).path_of(label)
    data = require_file(path)
    with located(store.relative(path)):
        return read_manifest(data, label=label)
