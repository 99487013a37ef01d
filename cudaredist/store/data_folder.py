"""The data folder: manifests, features, tables, policies and the lock."""

import contextlib
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

from cudaredist.errors import CudaRedistError, InvalidFileError, ReadError
from cudaredist.formats.names import Channel
from cudaredist.hints import quoted
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version, parse_label, sha256_of
from cudaredist.store.files import (
    names_in,
    read_file,
    remove_file,
    require_file,
    sweep,
    sweep_file,
    write_file,
    write_or_remove,
    write_output,
)
from cudaredist.store.partial_features import describes_fewer, may_be_partial

if TYPE_CHECKING:
    from cudaredist.formats.lock import Lock, LockEntry

_log = logging.getLogger(__name__)
_NIXPKGS_FOLDER = ("pkgs", "development", "cuda-modules", "_cuda")
"""The end of the path of nixpkgs' own data folder."""
TABLE_NAMES = ("advisories", "nvcc_compat", "gpus", "runfiles")
Layer: TypeAlias = Literal["local", "shipped"]
"""The origin of a fact: the data folder or the data shipped with the package."""
_first_key = re.compile(rb'\{(\n[ \t]*)"').match
_date = re.compile(rb'\s*:\s*"([0-9-]{10})"').match


class ManifestSummary(NamedTuple):
    """The facts of a manifest that lists of releases show."""

    date: str | None
    """The day of the release. None: the manifest is broken, or does not state it."""
    is_preview: bool
    """Whether the release is early access."""


class _LabelFolder:
    """A folder of files, named `<prefix><label>.json`.

    A `base` is the same folder of a lower layer. It has the files of further labels.
    """

    prefixes: ClassVar[tuple[str, ...]]
    """Prefixes of file names. New files get the first one."""

    def __init__(
        self,
        path: Path,
        base: "_LabelFolder | None" = None,
        is_of_base: Callable[[Version], bool] = lambda _: False,
        only: "_LabelFolder | None" = None,
    ) -> None:
        """Open a folder. It has only labels that the folder `only` has, too."""
        self.path = path
        self._base, self._is_of_base, self._only = base, is_of_base, only

    def path_of(self, label: Version) -> Path:
        """Return the path for a label's file."""
        if self._base is not None and self._is_of_base(label):
            return self._base.path_of(label)
        usual, *others = (self.path / f"{prefix}{label}.json" for prefix in self.prefixes)
        return next((path for path in others if path.exists() and not usual.exists()), usual)

    def has(self, label: Version) -> bool:
        """Check if a label has a file."""
        is_left_out = self._only is not None and not self._only.has(label)
        return not is_left_out and self.path_of(label).exists()

    def labels(self) -> tuple[Version, ...]:
        """Return the labels of the files, in ascending order."""
        below = () if self._base is None else self._base.labels()
        return tuple(sorted({*(label for label, _ in self.files()), *below}))

    def files(self) -> Iterator[tuple[Version, str]]:
        """Yield the label and name of each file in this layer, in any order."""
        selected = None if self._only is None else {label for label, _ in self._only.files()}
        for label, name in self._all_files():
            if selected is None or label in selected:
                yield label, name

    def _all_files(self) -> Iterator[tuple[Version, str]]:
        for name in filter(lambda name: name.endswith(".json"), names_in(self.path)):
            for prefix in filter(name.startswith, self.prefixes):
                try:
                    yield parse_label(name.removeprefix(prefix).removesuffix(".json")), name
                except ValueError:
                    message = "%s is ignored, because its name has no valid label"
                    _log.info(message, self.path / name)

    def is_there(self) -> bool:
        """Check if the folder exists, readable or not."""
        return self.path.exists()

    def read(self, label: Version) -> bytes | None:
        """Return the bytes of a label's file, or None if it is missing."""
        return read_file(self.path_of(label))

    def write(self, label: Version, data: bytes) -> bool:
        """Write a label's file, and return True if it changed."""
        return write_file(self.path / f"{self.prefixes[0]}{label}.json", data)

    def sweep(self) -> None:
        """Remove the temporary files of killed runs."""
        sweep(self.path, lambda name: name.startswith(self.prefixes))


class ManifestFolder(_LabelFolder):
    """A folder of manifests as published."""

    prefixes = ("redistrib_",)
    _base: "ManifestFolder | None"

    def __init__(
        self,
        path: Path,
        base: "ManifestFolder | None" = None,
        is_of_base: Callable[[Version], bool] = lambda _: False,
        recorded: "Callable[[Version], LockEntry | None]" = lambda _: None,
        only: "_LabelFolder | None" = None,
        lock_path: Path | None = None,
    ) -> None:
        super().__init__(path, base, is_of_base, only)
        self.recorded = recorded
        """The lock's entry of a label."""
        self._lock_path = lock_path

    def is_preview(self, label: Version) -> bool:
        """Check if a manifest is of an early-access release.

        The lock records the channel of releases in `releases.json`. Other early-access releases
        have archives in NVIDIA's pool.
        """
        return self.summary(label).is_preview

    def summary(self, label: Version) -> ManifestSummary:
        """Return the facts of a manifest for lists of releases."""
        if self._base is not None and self._is_of_base(label):
            return self._base.summary(label)
        data = b""
        with contextlib.suppress(CudaRedistError):  # reported when the manifest is read
            data = self.read(label) or b""
        return ManifestSummary(self._date(data), self._is_preview(label, data))

    def _date(self, data: bytes) -> str | None:
        # A manifest whose hash the lock has was validated. To read it again takes long.
        if sha256_of(data).encode() in self._lock:
            if b'"release_date"' not in data:
                return None
            date = _indented_date(data)
            if date is not None:
                return date
        with contextlib.suppress(CudaRedistError):
            return read_manifest(data).release_date
        return None

    def _is_preview(self, label: Version, data: bytes) -> bool:
        # Most locks name no channel, and their model is slow to import.
        entry = self.recorded(label) if b'"nvidia_channel"' in self._lock else None
        if entry is not None and entry.is_preview is not None:
            return entry.is_preview
        # Other manifests cannot have such a path. Parsing each of them takes long.
        if b"../" in data or b"\\" in data:
            with contextlib.suppress(CudaRedistError):  # as above
                return read_manifest(data).is_preview
        return False

    @cached_property
    def _lock(self) -> bytes:
        """The text of the layer's lock, empty if it cannot be read."""
        with contextlib.suppress(CudaRedistError):
            return (self._lock_path and read_file(self._lock_path)) or b""
        return b""

    def has_preview(self) -> bool:
        """Check if any manifest is of an early-access release."""
        return any(map(self.is_preview, self.labels()))


def _indented_date(data: bytes) -> str | None:
    """Return the date of a manifest if its keys are indented, else None.

    Keys of the release have the indentation of the first one. A package can have a date, too.
    """
    first = _first_key(data)
    if first is None:
        return None
    date = _date(data.partition(first[1] + b'"release_date"')[2])
    return None if date is None else date[1].decode()


class FeatureFolder(_LabelFolder):
    """A folder of feature files, also under nixpkgs' name."""

    prefixes = ("feature_", "redistrib_features_")


class Store:
    """A data folder with `manifests/`, `features/` and tables.

    A `base` is another data folder to read from, a lower layer. It completes this folder: its
    entries of tables and its releases are used if this folder does not have them.
    """

    def __init__(
        self,
        root: Path,
        channel: Channel = "redist",
        base: "Store | None" = None,
        *,
        examined_only: bool = False,
    ) -> None:
        self.root = root
        self.channel = channel
        self.base = base
        self.examined_only = examined_only
        """Whether releases without a feature file are left out."""

    def _folder(self, part: str) -> Path:
        """Return the folder of the channel's manifests or features."""
        # The default channel, NVIDIA's server, has no folder of its own.
        return self.root / part / ("" if self.channel == "redist" else self.channel)

    @property
    def layers(self) -> "tuple[Store, ...]":
        """Each layer as a data folder without a base, this folder first."""
        below = () if self.base is None else self.base.layers
        return (Store(self.root, self.channel, examined_only=self.examined_only), *below)

    def of_channel(self, channel: Channel) -> "Store":
        """Return the same data with the releases of a channel."""
        base = self.base and self.base.of_channel(channel)
        return Store(self.root, channel, base, examined_only=self.examined_only)

    def only_examined(self) -> "Store":
        """Return the same data without releases that have no feature file."""
        return Store(self.root, self.channel, self.base, examined_only=True)

    def with_unexamined(self) -> "Store":
        """Return the same data with all releases of the lower layers."""
        return Store(self.root, self.channel, self.base and self.base.with_unexamined())

    def in_other_channel(self) -> "Store":
        """Return the same data with the releases of the other channel."""
        return self.of_channel("redist" if self.channel == "wheels" else "wheels")

    def layer_of(self, redist: str, label: Version) -> "Store":
        """Return the layer with the manifest and the feature file of a release."""
        if self.base is not None and self._is_of_base(redist, label):
            return self.base.layer_of(redist, label)
        return Store(self.root, self.channel)

    def _is_of_base(self, redist: str, label: Version) -> bool:
        """Check if the base has a release, and this folder adds nothing to it."""
        if self.base is None or not self.base.manifests(redist).has(label):
            return False
        is_own = Store(self.root, self.channel).manifests(redist).path_of(label).exists()
        return not is_own or self.is_described_below(redist, label)

    def is_described_below(self, redist: str, label: Version) -> bool:
        """Check if the base has the same manifest, and features of more archives.

        Otherwise, local features of a few packages or platforms would hide the others.
        """
        if self.base is None:
            return False
        own = Store(self.root, self.channel)
        own_features = own.features(redist).path_of(label)
        base_features = self.base.features(redist).path_of(label)
        has_own = own_features.exists()
        if not base_features.exists() or (has_own and not may_be_partial(own_features)):
            return False
        own_data = own.manifests(redist).read(label)
        base_data = self.base.manifests(redist).read(label)
        if own_data is None or base_data is None or own_data.rstrip() != base_data.rstrip():
            return False
        return not has_own or describes_fewer(own_features, base_features)

    @property
    def checkout(self) -> Path:
        """The folder to which links of this one may lead: the one that contains it."""
        parent = self.root.resolve().parent
        return self.root if parent == parent.parent else parent

    @property
    def lock_path(self) -> Path:
        """The path of the lock, which records the fetched manifests.

        It is not in `manifests/`, where nixpkgs expects only manifests. The wheels channel, which
        nixpkgs does not have, has its own lock in `manifests/wheels/`.
        """
        return self._record_folder / "lock.json"

    @property
    def is_of_nixpkgs(self) -> bool:
        """Whether the folder is that of a checkout of nixpkgs."""
        return self.root.resolve().parts[-len(_NIXPKGS_FOLDER) :] == _NIXPKGS_FOLDER

    def manifest_paths(self) -> list[Path]:
        """Return the paths of the folder's own manifests, sorted."""
        return sorted(self._folder("manifests").glob("*/redistrib_*.json"))

    @property
    def stored_lock_path(self) -> Path:
        """The path of the lock, or of the one that an earlier version wrote to `manifests/`."""
        is_old = not os.path.lexists(self.lock_path) and os.path.lexists(self._old_lock_path)
        return self._old_lock_path if is_old else self.lock_path

    @property
    def _old_lock_path(self) -> Path:
        return self._folder("manifests") / "lock.json"

    @property
    def _record_folder(self) -> Path:
        """The folder of the lock and of bump's record."""
        return self.root if self.channel == "redist" else self._folder("manifests")

    def redists(self) -> tuple[str, ...]:
        """Return the names of the redistributables with manifests, sorted."""
        below = () if self.base is None else self.base.redists()
        return tuple(sorted({*self._own_redists(), *below}))

    def has_manifests(self) -> bool:
        """Check if any redistributable has manifests. It takes less time than to list all."""
        has_own = any(self._own_redists())
        return has_own or (self.base is not None and self.base.has_manifests())

    def _own_redists(self) -> Iterator[str]:
        """Yield the names of the redistributables with manifests in this layer."""
        for name in self._names_below("manifests", ManifestFolder):
            if not self.examined_only or any(self.manifests(name).files()):
                yield name

    def sweep(self) -> None:
        """Remove the temporary files of the lock, of tables and of bumps."""
        for path in (self.lock_path, self._old_lock_path, self._pending_path):
            sweep_file(path)

    def manifests(self, redist: str) -> ManifestFolder:
        """Return the folder of one redistributable's manifests."""
        base = None if self.base is None else self.base.manifests(redist)
        path = self._folder("manifests") / redist
        recorded, is_of_base = partial(self._entry, redist), partial(self._is_of_base, redist)
        only = FeatureFolder(self._folder("features") / redist) if self.examined_only else None
        return ManifestFolder(path, base, is_of_base, recorded, only, self.stored_lock_path)

    def address_of(self, redist: str, label: Version) -> str | None:
        """Return the path of a manifest on NVIDIA's second server, None if not from there."""
        entry = self._entry(redist, label)
        return None if entry is None else entry.address

    def _entry(self, redist: str, label: Version) -> "LockEntry | None":
        """Return the lock's entry of a release, None if its layer has none."""
        return self.layer_of(redist, label).recorded(redist).get(str(label))

    def recorded(self, redist: str) -> "Mapping[str, LockEntry]":
        """Return the lock's entries of a redistributable, empty if the lock is broken.

        The commands that write the lock, and `check`, report a broken one.
        """
        path = self.stored_lock_path
        with contextlib.suppress(CudaRedistError, OSError):
            about = path.stat()
            return _entries(path, about.st_ino, about.st_mtime_ns, about.st_size).get(redist, {})
        return {}

    def lock(self) -> "Lock":
        """Return the lock, empty if the file is missing.

        It has no entries of releases that are left out. Raises `InvalidFileError` if the file is
        broken.
        """
        # Lookups need no lock, and its model is slow to import.
        from cudaredist.formats.lock import Lock  # noqa: PLC0415
        from cudaredist.formats.registry import read_own_file  # noqa: PLC0415

        path = self.stored_lock_path
        data = read_file(path)
        if data is None:
            return Lock(schema_version=1, redists={})
        try:
            lock = read_own_file(data, Lock)
        except InvalidFileError as error:
            broken = InvalidFileError(f"{error.what} ({path})", error.problems)
            broken.hint = (
                f"restore it, or run `rm {quoted(str(path))}`: the next `download-manifests` "
                "records the local manifests again"
            )
            raise broken from None
        if not self.examined_only:
            return lock
        names = self.redists()
        kept = {name: labels for name, labels in lock.redists.items() if name in names}
        return lock.model_copy(update={"redists": kept})

    def update_lock(self, entries: "Mapping[str, Mapping[str, LockEntry]]") -> None:
        """Add entries to the lock.

        Raises `InvalidFileError` if the file is broken.
        """
        recorded = self.lock().redists
        changed = {
            name: {**recorded.get(name, {}), **labels} for name, labels in entries.items() if labels
        }
        if changed:
            self.save_lock({**recorded, **changed})

    def save_lock(self, redists: "Mapping[str, Mapping[str, LockEntry]]") -> None:
        """Write the lock, and remove that of an earlier version."""
        from cudaredist.formats.lock import Lock  # noqa: PLC0415 - slow

        lock = Lock.model_validate({"schema_version": 1, "redists": redists})
        write_output(self.lock_path, lock.canonical(), self.checkout)
        if self._old_lock_path != self.lock_path:
            remove_file(self._old_lock_path)

    def pending(self) -> frozenset[tuple[str, Version]]:
        """Return the releases that bump has started but not reported.

        Lines that cannot be parsed are skipped: bump writes none, so they name no release.
        """
        data = read_file(self._pending_path) or b""
        releases = set()
        for line in data.decode(errors="replace").splitlines():
            redist, _, label = line.partition(" ")
            with contextlib.suppress(ValueError):
                releases.add((redist, parse_label(label)))
        return frozenset(releases)

    def write_pending(self, releases: Iterable[tuple[str, Version]]) -> None:
        """Store the releases that bump must still report.

        Without any, remove the file.
        """
        lines = sorted(f"{redist} {label}\n" for redist, label in releases)
        write_or_remove(self._pending_path, "".join(lines).encode() or None, self.checkout)

    @property
    def _pending_path(self) -> Path:
        return self._record_folder / ".bump"

    def features(self, redist: str) -> FeatureFolder:
        """Return the folder of one redistributable's feature files."""
        base = None if self.base is None else self.base.features(redist)
        path = self._folder("features") / redist
        return FeatureFolder(path, base, partial(self._is_of_base, redist))

    def feature_redists(self) -> tuple[str, ...]:
        """Return the names of the redistributables with feature files, sorted."""
        below = () if self.base is None else self.base.feature_redists()
        return tuple(sorted({*self._names_below("features", FeatureFolder), *below}))

    def _names_below(
        self, part: str, folder_type: type[ManifestFolder] | type[FeatureFolder]
    ) -> Iterator[str]:
        """Return the names of subfolders with labels, and of unreadable ones.

        `wheels` is not a redistributable, but the folder of the wheels channel.
        """
        folder = self._folder(part)

        def may_have_labels(name: str) -> bool:
            with contextlib.suppress(ReadError):
                return name != "wheels" and any(folder_type(folder / name).files())
            return True

        return filter(may_have_labels, names_in(folder))

    def table_path(self, name: str) -> Path:
        """Return the path for a table, `nvcc_compat` or `gpus`."""
        return self.root / f"{name}.json"

    def read_table(self, name: str) -> bytes | None:
        """Return a table's bytes, or None if it is missing.

        Raises `ReadError`.
        """
        return read_file(self.table_path(name))

    def table_layers(self, name: str) -> dict[Layer, bytes]:
        """Return a table's bytes in each layer, lowest layer first.

        If both layers have the same bytes, only the data folder's is returned. Raises `ReadError`.
        """
        layers: dict[Layer, bytes] = {} if self.base is None else self.base.table_layers(name)
        data = self.read_table(name)
        if data is not None:
            layers = {layer: lower for layer, lower in layers.items() if lower != data}
            layers[layer_of(self.root)] = data
        return layers

    @property
    def symbol_path(self) -> Path:
        """The folder of the tables of symbols."""
        return self.root / "symbols"

    @property
    def symbol_paths(self) -> tuple[Path, ...]:
        """The folders of the tables of symbols in all layers, the lowest layer first."""
        below = () if self.base is None else self.base.symbol_paths
        return (*below, self.symbol_path)

    @property
    def api_path(self) -> Path:
        """The folder of the tables of APIs."""
        return self.root / "api"

    def own_policy(self, name: str) -> bytes | None:
        """Return the data folder's own policy file, or None if it has none.

        Raises `ReadError`.
        """
        return read_file(self.root / "policy" / f"{name}.json")

    def read_policy(self, name: str) -> bytes:
        """Return a policy file of the data folder, else the shipped one.

        Raises `ReadError`.
        """
        own = self.own_policy(name)
        shipped = shipped_data() / "policy" / f"{name}.json"
        return require_file(shipped) if own is None else own

    def relative(self, path: Path) -> str:
        """Return a path relative to its data folder, with slashes."""
        if self.base is not None and path.is_relative_to(self.base.root):
            return f"shipped {self.base.relative(path)}"
        return path.relative_to(self.root).as_posix()


@lru_cache(maxsize=8)
def _entries(path: Path, *_version: int) -> "Mapping[str, Mapping[str, LockEntry]]":
    """Read a lock once for each version of the file."""
    from cudaredist.formats.lock import Lock  # noqa: PLC0415 - slow
    from cudaredist.formats.registry import read_own_file  # noqa: PLC0415 - slow

    return read_own_file(require_file(path), Lock).redists


def layer_of(root: Path) -> Layer:
    """Return the layer of a data folder."""
    return "shipped" if root == shipped_data() else "local"


@cache
def shipped_data() -> Path:
    """Return the shipped data folder, or the checkout's."""
    package = Path(str(resources.files("cudaredist")))
    shipped = package / "data"
    return shipped if shipped.is_dir() else package.parent / "data"
