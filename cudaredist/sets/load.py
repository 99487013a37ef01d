"""Read the inputs of package sets: data folder, shipped tables, overlays."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cudaredist.errors import InvalidFileError, UnknownNameError, UsageError, located
from cudaredist.features.legacy import legacy_outputs
from cudaredist.formats.base import OwnModel
from cudaredist.formats.features import ExaminedArchive, Features
from cudaredist.formats.names import OutputName
from cudaredist.formats.packageset import Input
from cudaredist.formats.registry import (
    POLICIES_CACHED,
    names_schema_version,
    parse_own_json,
    read_own_file,
)
from cudaredist.formats.tables import Gpus, NvccCompat
from cudaredist.hints import again
from cudaredist.manifests.manifest_values import Archive
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import (
    ArchiveId,
    Version,
    label_of_manifest_name,
    published_sha256,
    sha256_of,
)
from cudaredist.redists import CUDA
from cudaredist.sets.cuda_majors import shipped_wheels
from cudaredist.sets.inputs import (
    POLICY_MODELS,
    InputFeatures,
    InputManifest,
    Policies,
    SetData,
    archive_headers,
)
from cudaredist.similar_names import misspelled_names
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.layered_tables import require_layered
from cudaredist.store.read_data import RUNFILES, read_runfiles
from cudaredist.store.symbol_folder import LayeredSymbols
from cudaredist.store.table_registry import GPU_TABLE, NVCC_TABLE

_InputKind: TypeAlias = Literal["nvcc", "capabilities", "policy", "runfiles"]

_OF_OTHER_COMMANDS = ("components", "gpus", "nvcc")
_OVERLAY_PARTS = frozenset({"features", "manifests", "policy"})
_POLICY_NAMES = frozenset({f"{name}.json" for name in (*POLICY_MODELS, *_OF_OTHER_COMMANDS)})


def read_set_data(
    store: Store, overlays: Sequence[Store] = (), overlay_option: str = "overlays"
) -> SetData:
    """Read the inputs of package sets.

    The files of an overlay override those of the data folder. Hints name `overlay_option`. Raises
    `InvalidFileError` for a broken file, and `IncompleteError` if a table is missing.
    """
    for overlay in overlays:
        _check_overlay(overlay, overlay_option)
    stores = [store, *_overlay_stores(overlays)]
    inputs: list[Input] = []
    nvcc, gpus = _tables(store, inputs)
    policies = read_policies(store, overlays, inputs)
    runfiles = store.read_table(RUNFILES)
    if runfiles is not None:
        inputs.append(_input("runfiles", RUNFILES, runfiles))
    return SetData(
        channel=store.channel,
        manifests=_manifests(stores),
        read_features=_features_reader(stores),
        read_files=_files_reader(stores),
        nvcc=nvcc,
        gpus=gpus,
        policies=policies,
        runfiles=read_runfiles(runfiles).runfiles,
        inputs=tuple(inputs),
        shipped_wheels=shipped_wheels if store.channel == "redist" else lambda _: (),
        symbols=LayeredSymbols(store.symbol_paths),
        archives_of_cuda=partial(_archives_of_cuda, store.with_unexamined().of_channel("redist")),
    )


def _archives_of_cuda(store: Store, label: Version) -> Sequence[Archive]:
    """Return NVIDIA's archives of a CUDA release, empty if its manifest is not in the data."""
    data = store.manifests(CUDA).read(label)
    return () if data is None else tuple(read_manifest(data, label=label).archives)


def _overlay_stores(overlays: Sequence[Store]) -> Iterator[Store]:
    """Yield the stores of overlays.

    Custom packages use the redist channel's format on every channel, so an overlay for another
    channel has two stores.
    """
    for overlay in overlays:
        yield Store(overlay.root)
        if overlay.channel != "redist":
            yield overlay


def _check_overlay(overlay: Store, option: str) -> None:
    """Raise `UsageError` if a folder is not an overlay.

    Also raises it for files that no command would read.
    """
    present = [path.name for path in overlay.root.iterdir() if path.is_dir()]
    if not _OVERLAY_PARTS & set(present):
        message = f"overlay {overlay.root} has no manifests/, features/ or policy/ folder"
        call = again(without=[option])
        hint = f"an overlay has the same structure as a data folder; without it, run `{call}`"
        raise UsageError(message, hint=hint)
    for name in sorted(set(present) - _OVERLAY_PARTS):
        if misspelled_names(name, _OVERLAY_PARTS):
            raise UnknownNameError("part of an overlay", name, _OVERLAY_PARTS)
    for path in sorted((overlay.root / "manifests").rglob("*.json")):
        is_manifest = label_of_manifest_name(path.name) and path.parent.name != "manifests"
        if not is_manifest and path.name != "lock.json":
            raise UsageError(
                f"{path} is not the path of a manifest",
                hint="rename it to manifests/NAME/redistrib_LABEL.json, or to "
                "features/NAME/feature_LABEL.json if it is a feature file",
            )
    for path in sorted((overlay.root / "policy").glob("*")):
        if path.name not in _POLICY_NAMES:
            raise UnknownNameError("policy file", path.name, _POLICY_NAMES)


def _manifests(stores: Sequence[Store]) -> dict[str, dict[Version, InputManifest]]:
    manifests: dict[str, dict[Version, InputManifest]] = {}
    for store in stores:
        for layer in store.layers:
            layer.lock()  # raises the error of a broken one
        for redist in store.redists():
            folder = store.manifests(redist)
            for label in folder.labels():
                data = folder.read(label)
                if data is None:
                    continue
                with located(_shown_path(store, folder.path_of(label), stores)):
                    manifest = read_manifest(data, label=label)
                entry = folder.recorded(label)
                sha256 = published_sha256(data, entry.sha256 if entry else None)
                manifests.setdefault(redist, {})[label] = InputManifest(
                    redist=redist,
                    label=label,
                    manifest=manifest,
                    sha256=sha256,
                    is_overlay=store is not stores[0],
                    is_shipped=store.layer_of(redist, label).root == shipped_data(),
                    packages={package.name: package for package in manifest.packages},
                    entry=entry,
                    is_edited=entry is not None and entry.sha256 != sha256,
                )
    return manifests


def _shown_path(store: Store, path: Path, stores: Sequence[Store]) -> str:
    """Return a file's path for messages: relative only in the data folder."""
    return store.relative(path) if store is stores[0] else str(path)


def _features_reader(stores: Sequence[Store]) -> Callable[[str, Version], InputFeatures | None]:
    @cache
    def read(redist: str, label: Version) -> InputFeatures | None:
        for store in reversed(stores):
            folder = store.features(redist)
            data = folder.read(label)
            if data is not None:
                with located(_shown_path(store, folder.path_of(label), stores)):
                    return _features(data, is_overlay=store is not stores[0])
        return None

    return read


def _files_reader(
    stores: Sequence[Store],
) -> Callable[[str, Version, ArchiveId], Mapping[str, OutputName] | None]:
    # The files of all packages of all releases would need much memory.
    @lru_cache(maxsize=4)
    def document(redist: str, label: Version) -> Features | None:
        for store in reversed(stores):
            data = store.features(redist).read(label)
            if data is not None and names_schema_version(data):
                return read_own_file(data, Features)
        return None

    def read(redist: str, label: Version, archive: ArchiveId) -> Mapping[str, OutputName] | None:
        features = document(redist, label)
        package = None if features is None else features.packages.get(archive.package)
        archives = () if package is None else package.archives
        for position, own in enumerate(archives):
            if (own.platform, own.variant) == archive[1:] and package is not None:
                return package.files_of(position)
        return None

    return read


def _features(data: bytes, *, is_overlay: bool) -> InputFeatures:
    examined, unexamined, headers = {}, {}, {}
    if not names_schema_version(data):
        outputs = legacy_outputs(parse_own_json(data, "features file"))
        if not outputs:
            message = "unknown format: neither the current nor the earlier one"
            raise InvalidFileError.of("features file", message)
        return InputFeatures(sha256_of(data), is_overlay, {}, {}, outputs)
    features = read_own_file(data, Features)
    for name, package in features.packages.items():
        for position, archive in enumerate(package.archives):
            if archive.sha256 is None:
                continue
            if isinstance(archive, ExaminedArchive):
                examined[name, archive.sha256] = archive
                files, missing = package.files_of(position), package.missing_headers_of(position)
                if files is not None and missing is not None:
                    headers[name, archive.sha256] = archive_headers(files, missing)
            else:
                unexamined[name, archive.sha256] = archive.reason
    return InputFeatures(sha256_of(data), is_overlay, examined, unexamined, {}, headers)


def _tables(store: Store, inputs: list[Input]) -> tuple[NvccCompat, Gpus]:
    """Return both tables, and add their files to the inputs."""
    compat, gpus = require_layered(store, NVCC_TABLE), require_layered(store, GPU_TABLE)
    inputs += (_input("nvcc", NVCC_TABLE.name, data) for data in compat.files)
    inputs += (_input("capabilities", GPU_TABLE.name, data) for data in gpus.files)
    if len(gpus.files) > 1:
        # This policy controls the merge of several GPU tables.
        inputs.append(_input("policy", "gpus", store.read_policy("gpus")))
    return compat.table, gpus.table


# -- policies


def read_policies(store: Store, overlays: Sequence[Store], inputs: list[Input]) -> Policies:
    """Return the policies with the changes of overlays, and add their files to the inputs."""
    merged: dict[str, Any] = {}
    from_overlay: list[OwnModel] = []
    removals: set[tuple[str, str]] = set()
    for subject, model in POLICY_MODELS.items():
        data = store.read_policy(subject)
        document = base = _document(data, subject)
        inputs.append(_input("policy", subject, data))
        added: Mapping[str, Any] = {}
        place = f"policy/{subject}.json"
        for overlay in overlays:
            own = overlay.own_policy(subject)
            if own is not None:
                inputs.append(_input("policy", subject, own, is_overlay=True))
                path = overlay.root / "policy" / f"{subject}.json"
                with located(str(path)):
                    changes = _document(own, subject)
                removals |= {(subject, name) for name in _removed_names(document, changes, path)}
                document = merge_policy(document, changes)
                added = merge_policy(added, changes)
                place = f"{place} (with {overlay.root / 'policy' / subject}.json)"
        if document is not base:
            data = json.dumps(document).encode()
        with located(place):
            policy = read_own_file(data, model)
        merged[subject] = policy
        from_overlay += _entries_of(policy, added)
    return Policies(**merged, from_overlay=tuple(from_overlay), removals=frozenset(removals))


def overlay_model(path: Path) -> type[OwnModel] | None:
    """Return the model of `policy/SUBJECT.json`, or None."""
    return POLICY_MODELS.get(path.stem) if path.absolute().parent.name == "policy" else None


def read_overlay_policy(path: Path, data: bytes) -> OwnModel:
    """Read an overlay's policy file, merged into the shipped policy.

    Raises `InvalidFileError`.
    """
    shipped = _document(Store(shipped_data()).read_policy(path.stem), path.stem)
    changes = _document(data, f"overlay {path.stem}")
    try:
        tuple(_removed_names(shipped, changes, path))
    except UnknownNameError as error:
        message = f"{error.message}; {error.hint}"
        raise InvalidFileError.of(f"policy-{path.stem} file", message) from None
    merged = json.dumps(merge_policy(shipped, changes)).encode()
    return read_own_file(merged, POLICY_MODELS[path.stem])


def merge_policy(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a policy with an overlay's changes.

    The keys of an object override those of the base, and null removes a key. The items of a list
    are inserted first.
    """
    merged = dict(base)
    for key, value in changes.items():
        current = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(current, dict) and _is_table(current):
            both = current | value
            merged[key] = {name: entry for name, entry in both.items() if entry is not None}
        elif isinstance(value, list) and isinstance(current, list):
            merged[key] = [*value, *current]
        else:
            merged[key] = value
    return merged


def _removed_names(
    base: Mapping[str, Any], changes: Mapping[str, Any], path: Path
) -> Iterator[str]:
    """Yield the names of entries that are null in an overlay's file.

    Raises `UnknownNameError` if the base has no such entry.
    """
    for key, value in changes.items():
        current = base.get(key)
        if not isinstance(value, dict) or not isinstance(current, dict) or not _is_table(current):
            continue
        for name in (name for name, entry in value.items() if entry is None):
            if name not in current:
                raise UnknownNameError(f"entry of {key} in {path}", name, current)
            yield name


def _is_table(value: dict[str, Any]) -> bool:
    return all(isinstance(entry, dict | str) for entry in value.values()) and "reason" not in value


def _entries_of(policy: OwnModel, added: Mapping[str, Any]) -> list[OwnModel]:
    """Return a merged policy's entries that are from an overlay."""
    entries: list[object] = []
    for key, value in added.items():
        merged = getattr(policy, key, None)
        if isinstance(merged, tuple) and isinstance(value, list):
            entries += merged[: len(value)]
        elif isinstance(merged, dict) and isinstance(value, dict):
            entries += [merged[name] for name in value if name in merged]
        elif isinstance(merged, OwnModel):
            entries.append(merged)
    return [entry for entry in entries if isinstance(entry, OwnModel)]


@lru_cache(maxsize=POLICIES_CACHED)
def _document(data: bytes, subject: str) -> Mapping[str, Any]:
    """Parse a policy file once for each content."""
    document = parse_own_json(data, f"policy file ({subject})")
    if not isinstance(document, dict):
        raise InvalidFileError.of(f"policy file ({subject})", "expected an object")
    return document


def _input(kind: _InputKind, name: str, data: bytes, *, is_overlay: bool = False) -> Input:
    return Input(kind=kind, name=name, label=None, sha256=sha256_of(data), overlay=is_overlay)
