"""Single files that are held, read for the questions asked of them; an error names the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from cudaredist.errors import InvalidFileError, Problem, ReadError, UsageError
from cudaredist.manifests.manifest_values import Manifest
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version
from cudaredist.schema.base import Channel, OwnModel
from cudaredist.schema.features import Features
from cudaredist.schema.registry import (
    parse_own_json,
    read_own_document,
    read_own_file,
    schema_version_of,
)
from cudaredist.store.data_folder import Store

Model = TypeVar("Model", bound=OwnModel)


def redists_held(store: Store) -> tuple[str, ...]:
    """Return the names under which manifests are held; raises `UsageError` where there are none."""
    held = store.redists()
    if not held:
        other: Channel = "redist" if store.channel == "wheels" else "wheels"
        if Store(store.root, other).redists():
            hint = f"manifests of --channel {other} are held there"
        else:
            channel = " --channel wheels" if store.channel == "wheels" else ""
            hint = (
                f"cudaredist download-manifests{channel} fetches them; --data-dir names other data"
            )
        raise UsageError(
            f"no manifest of the channel {store.channel} is held in {store.root}", hint=hint
        )
    return held


def held_manifest(store: Store, redist: str, label: Version) -> Manifest:
    """Return a manifest; raises `ReadError` or `InvalidFileError` where there is no valid one."""
    folder = store.manifests(redist)
    data = folder.read(label)
    if data is None:
        raise ReadError(folder.place(label), FileNotFoundError("no such file"))
    with located(store.relative(folder.place(label))):
        return read_manifest(data, label=label)


def held_features(store: Store, redist: str, label: Version) -> Features | None:
    """Return a feature file; None where there is none, or one of another tool.

    Raises `ReadError` or `InvalidFileError`.
    """
    folder = store.features(redist)
    data = folder.read(label)
    if data is None:
        return None
    with located(store.relative(folder.place(label))):
        document = parse_own_json(data, "features file")
        if schema_version_of(document) is None:
            return None
        return read_own_document(document, data, Features)


def read_file_given(path: Path, data: bytes, model: type[Model]) -> Model:
    """Read one of our files that the user named; `InvalidFileError` says where it lies."""
    try:
        return read_own_file(data, model)
    except InvalidFileError as error:
        raise InvalidFileError(f"{error.what} ({path})", error.problems) from None


@contextmanager
def located(where: str) -> Iterator[None]:
    """Name the file in every problem of what is found to be invalid meanwhile."""
    try:
        yield
    except InvalidFileError as error:
        problems = [
            Problem(f"{where}: {problem.path}".rstrip(": "), problem.message)
            for problem in error.problems
        ]
        raise InvalidFileError(error.what, problems) from None
