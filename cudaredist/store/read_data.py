"""Read single files of a data folder, with errors that name the file."""

import shlex
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from cudaredist.errors import InvalidFileError, Problem, UsageError
from cudaredist.formats.base import OwnModel
from cudaredist.formats.features import Features
from cudaredist.formats.registry import names_schema_version, parse_own_json, read_own_file
from cudaredist.formats.runfile_records import Runfiles
from cudaredist.formats.toolkit_record import RECORD_NAME, ToolkitRecord
from cudaredist.hints import again, command_line, takes
from cudaredist.manifests.manifest_values import Manifest
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version, find_release
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.files import read_file, require_file
from cudaredist.words import shown

RUNFILES = "runfiles"
"""The name of the file of records, without its suffix."""

Model = TypeVar("Model", bound=OwnModel)


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


def load_features(store: Store, redist: str, label: Version) -> Features | None:
    """Return a feature file, or None if it is missing.

    A feature file of another tool counts as missing. Raises `ReadError` or `InvalidFileError`.
    """
    path = store.features(redist).path_of(label)
    data = read_file(path)
    if data is None:
        return None
    with located(store.relative(path)):
        if names_schema_version(data):
            return read_own_file(data, Features)
        parse_own_json(data, "features file")
        return None


def read_runfiles(data: bytes | None) -> Runfiles:
    """Read the file of records, which may be missing. Raises `InvalidFileError`."""
    if data is None:
        return Runfiles(schema_version=1, runfiles={})
    with located(f"{RUNFILES}.json"):
        return read_own_file(data, Runfiles)


_OTHER_FORMATS = {b'"CycloneDX"': "a CycloneDX document", b'"spdxVersion"': "an SPDX document"}
"""Documents that cudaredist writes but does not read, by a name in them."""


def read_file_given(path: Path, data: bytes, model: type[Model]) -> Model:
    """Read a file of ours that the user named.

    Raises `InvalidFileError` with the path.
    """
    try:
        return read_own_file(data, model)
    except InvalidFileError as error:
        title = next((name for mark, name in _OTHER_FORMATS.items() if mark in data), None)
        problems = (
            [Problem("", f"is {title}, which cudaredist writes but cannot read")]
            if title
            else error.problems
        )
        raise InvalidFileError(f"{error.what} ({path})", problems) from None


def read_record(root: Path) -> ToolkitRecord | None:
    """Return the record of a toolkit root, None if it has none. Raises `InvalidFileError`."""
    path = root / RECORD_NAME
    data = read_file(path)
    return None if data is None else read_file_given(path, data, ToolkitRecord)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Add a file's name to the problems of an `InvalidFileError`."""
    try:
        yield
    except InvalidFileError as error:
        problems = [Problem(f"{where}: {path}".rstrip(": "), text) for path, text in error.problems]
        raise InvalidFileError(error.what, problems) from None
