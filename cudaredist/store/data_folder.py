"""The data folder: manifests, features, tables, policies and the lock."""

import contextlib
import errno
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Literal, TypeAlias

from cudaredist.errors import ReadError, WritingTo
from cudaredist.jsontext import canonical_json
from cudaredist.primitives import Version, label_of_manifest_name, manifest_name, parse_label
from cudaredist.schema.base import Channel
from cudaredist.schema.features import Lock, LockEntry
from cudaredist.schema.registry import read_own_file
from cudaredist.store.files import names_in, read_file, sweep, write_file

_log = logging.getLogger(__name__)
_FEATURE_NAMES = ("feature_", "redistrib_features_")
TABLE_NAMES = ("nvcc_compat", "gpus", "runfiles")
Layer: TypeAlias = Literal["local", "shipped"]
"""The origin of a fact: the data folder, or the data shipped with the package."""


class ManifestFolder:
    """One folder of manifests, `redistrib_<label>.json` each."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def place(self, label: Version) -> Path:
        """Return where the manifest of that label lies or would lie."""
        return self.path / manifest_name(label)

    def labels(self) -> tuple[Version, ...]:
        """Return the labels held, in ascending order."""
        return tuple(sorted(filter(None, map(label_of_manifest_name, names_in(self.path)))))

    def is_there(self) -> bool:
        """Say whether the folder exists, readable or not."""
        return self.path.exists()

    def read(self, label: Version) -> bytes | None:
        """Return a manifest's bytes; None where it is not held."""
        return read_file(self.place(label))

    def write(self, label: Version, data: bytes) -> bool:
        """Put a manifest's bytes as published; return whether that changed anything."""
        return write_file(self.place(label), data)

    def sweep(self) -> None:
        """Remove what a killed run left under temporary names."""
        sweep(self.path, ".redistrib_")


class FeatureFolder:
    """One folder of feature files, `feature_<label>.json` each; the peer's name is read too."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def place(self, label: Version) -> Path:
        """Return where the feature file lies or would lie."""
        usual, other = (self.path / f"{prefix}{label}.json" for prefix in _FEATURE_NAMES)
        return other if other.exists() and not usual.exists() else usual

    def labels(self) -> tuple[Version, ...]:
        """Return the labels for which a feature file is held, in ascending order."""
        labels = set()
        for name in names_in(self.path):
            for prefix in _FEATURE_NAMES:
                if name.startswith(prefix) and name.endswith(".json"):
                    with contextlib.suppress(ValueError):
                        labels.add(parse_label(name.removeprefix(prefix).removesuffix(".json")))
        return tuple(sorted(labels))

    def read(self, label: Version) -> bytes | None:
        """Return a feature file's bytes; None where it is not held."""
        return read_file(self.place(label))

    def write(self, label: Version, data: bytes) -> bool:
        """Put a feature file under its usual name; return whether that changed anything."""
        return write_file(self.path / f"{_FEATURE_NAMES[0]}{label}.json", data)

    def sweep(self) -> None:
        """Remove what a killed run left under temporary names."""
        for prefix in _FEATURE_NAMES:
            sweep(self.path, f".{prefix}")


class Store:
    """A data folder: `manifests/`, `features/`, and the tables beside them.

    A `base` is another one to read from: its tables complete those of the folder, and its manifests
    and features are used if the folder has no manifest of the channel.
    """

    def __init__(
        self, root: Path, channel: Channel = "redist", base: "Store | None" = None
    ) -> None:
        self.root = root
        self.channel = channel
        self._base = base
        self.manifest_root = root
        """The folder of the manifests and features: the data folder, or the base's."""
        self._set_folders()
        if base is not None and not self.redists():
            self.manifest_root = base.root
            self._set_folders()

    def _set_folders(self) -> None:
        # NVIDIA's server is the channel everyone means, so that it needs no folder of its own.
        below = "" if self.channel == "redist" else self.channel
        self._manifests = self.manifest_root / "manifests" / below
        self._features = self.manifest_root / "features" / below

    @property
    def lock_path(self) -> Path:
        """Where the record of fetched manifests lies."""
        return self._manifests / "lock.json"

    def redists(self) -> tuple[str, ...]:
        """Return the names under which the folder holds manifests, sorted."""
        return self._held_below(self._manifests, lambda name: self.manifests(name).labels())

    def sweep(self) -> None:
        """Remove what a killed run left of the lock file, and of what a bump keeps in mind."""
        for path in (self.lock_path, self._untold_path):
            sweep(path.parent, f".{path.name}.")

    def manifests(self, redist: str) -> ManifestFolder:
        """Return the folder of one redistributable's manifests."""
        return ManifestFolder(self._manifests / redist)

    def lock(self) -> Lock:
        """Return the record of fetched manifests, empty where there is none yet.

        Raises `InvalidFileError` where the file is broken.
        """
        data = read_file(self.lock_path)
        if data is None:
            return Lock(schema_version=1, redists={})
        return read_own_file(data, Lock)

    def update_lock(self, entries: Mapping[str, Mapping[str, LockEntry]]) -> bool:
        """Add to the record of fetched manifests; return whether that changed anything.

        Raises `InvalidFileError` where the file is broken.
        """
        recorded = self.lock().redists
        changed = {
            name: {**recorded.get(name, {}), **labels} for name, labels in entries.items() if labels
        }
        if not changed:
            return False
        lock = Lock(schema_version=1, redists={**recorded, **changed})
        return write_file(self.lock_path, canonical_json(lock.model_dump(mode="json")))

    def untold(self) -> frozenset[tuple[str, Version]]:
        """Return the releases that a bump began with and that no message tells of yet.

        What cannot be understood is left out: it stands for nothing that is held.
        """
        data = read_file(self._untold_path) or b""
        found = set()
        for line in data.decode(errors="replace").splitlines():
            redist, _, label = line.partition(" ")
            with contextlib.suppress(ValueError):
                found.add((redist, parse_label(label)))
        return frozenset(found)

    def write_untold(self, releases: Iterable[tuple[str, Version]]) -> None:
        """Keep in mind which releases are to be told of; the file is there only while any are."""
        lines = sorted(f"{redist} {label}\n" for redist, label in releases)
        if lines:
            write_file(self._untold_path, "".join(lines).encode())
            return
        with WritingTo(self._untold_path):
            self._untold_path.unlink(missing_ok=True)

    @property
    def _untold_path(self) -> Path:
        return self._manifests / ".bump"

    def features(self, redist: str) -> FeatureFolder:
        """Return the folder of one redistributable's feature files."""
        return FeatureFolder(self._features / redist)

    def feature_redists(self) -> tuple[str, ...]:
        """Return the names under which the folder holds feature files, sorted."""
        return self._held_below(self._features, lambda name: self.features(name).labels())

    def _held_below(
        self, part: Path, labels: Callable[[str], Sequence[Version]]
    ) -> tuple[str, ...]:
        """Return the names in a part of the folder that hold anything, or may, being unreadable.

        `wheels` is no redistributable: the wheel channel lies there.
        """

        def may_hold(name: str) -> bool:
            try:
                return name != "wheels" and bool(labels(name))
            except ReadError:
                return True

        return tuple(filter(may_hold, sorted(names_in(part))))

    def table_path(self, name: str) -> Path:
        """Return where a table, `nvcc_compat` or `gpus`, lies or would lie."""
        return self.root / f"{name}.json"

    def read_table(self, name: str) -> bytes | None:
        """Return a table's bytes; None where it is not there. Raises `ReadError`."""
        return read_file(self.table_path(name))

    def table_layers(self, name: str) -> dict[Layer, bytes]:
        """Return a table's bytes in each layer that has it, the lowest layer first.

        Equal tables are one, that of the data folder. Raises `ReadError`.
        """
        found: dict[Layer, bytes] = {} if self._base is None else self._base.table_layers(name)
        data = self.read_table(name)
        if data is not None:
            found = {layer: lower for layer, lower in found.items() if lower != data}
            found["shipped" if self.root == shipped_data() else "local"] = data
        return found

    def write_table(self, name: str, data: bytes) -> bool:
        """Put a table; return whether that changed anything."""
        return write_file(self.table_path(name), data)

    def sweep_table(self, name: str) -> None:
        """Remove what a killed run left of a table."""
        sweep(self.root, f".{self.table_path(name).name}.")

    def own_policy(self, name: str) -> bytes | None:
        """Return a policy file of the folder itself; None where it has none. Raises `ReadError`."""
        return read_file(self.root / "policy" / f"{name}.json")

    def read_policy(self, name: str) -> bytes:
        """Return a policy file, such as `nvcc`: the data folder's own, else the shipped one.

        Raises `ReadError`.
        """
        own = self.own_policy(name)
        shipped = shipped_data() / "policy" / f"{name}.json"
        data = own if own is not None else read_file(shipped)
        if data is None:
            raise ReadError(shipped, FileNotFoundError(errno.ENOENT, "no such file"))
        return data

    def relative(self, path: Path) -> str:
        """Return a file's path below its data folder, with slashes."""
        if self._base is not None and path.is_relative_to(self._base.root):
            return f"shipped {self._base.relative(path)}"
        return path.relative_to(self.root).as_posix()


def shipped_data() -> Path:
    """Return the data folder that is shipped with the package, or the checkout's own."""
    package = Path(str(resources.files("cudaredist")))
    shipped = package / "data"
    return shipped if shipped.is_dir() else package.parent / "data"
