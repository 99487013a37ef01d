"""diff: compare two releases, feature files or package sets."""

import functools
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from cudaredist.commands.diff.api_changes import api_counts
from cudaredist.commands.diff.arguments import is_local_release
from cudaredist.commands.diff.comparable import Comparable, add_releases, files_of, of_platforms
from cudaredist.commands.diff.compare import compare
from cudaredist.commands.diff.export_changes import add_exports
from cudaredist.commands.diff.read_sides import (
    add_paths,
    contents_of,
    of_features,
    of_manifest,
    of_package_set,
    of_tables,
)
from cudaredist.commands.diff.report import DiffReport
from cudaredist.commands.diff.vulnerability_changes import vulnerability_changes
from cudaredist.errors import InvalidFileError, Problem, UnknownNameError, UsageError, located
from cudaredist.formats.features import Features
from cudaredist.formats.policy import NamePolicy
from cudaredist.formats.registry import (
    kind_of_document,
    parse_own_json,
    read_own_file,
    schema_version_of,
)
from cudaredist.formats.tables import Gpus, NvccCompat
from cudaredist.hints import command_line, corrected
from cudaredist.manifests.manifest_values import Manifest
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version, find_release, label_of_manifest_name, parse_label
from cudaredist.redists import CUDA, REDISTS
from cudaredist.similar_names import listed_names, nearest_releases
from cudaredist.source_code.api import Api, read_api
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index
from cudaredist.store.files import read_file
from cudaredist.store.layered_tables import LayeredTable, read_layered
from cudaredist.store.local_manifests import load_manifest, refuse_other_channel, require_manifests
from cudaredist.store.read_data import load_features
from cudaredist.store.table_registry import GPU_TABLE, NVCC_TABLE
from cudaredist.tables.advisories.states import KnownVulnerabilities
from cudaredist.tables.gpus.coverage import CoverageRules
from cudaredist.words import shown


class ComparedTables:
    """The tables that releases are compared with."""

    def __init__(
        self, compat: LayeredTable[NvccCompat] | None, gpus: LayeredTable[Gpus] | None
    ) -> None:
        self.compat = compat.table if compat else None
        self.gpus = gpus.table if gpus else None
        self.rules = CoverageRules(gpus.table) if gpus else None


def compare_releases(
    old: str,
    new: str,
    store: Store,
    cache: Cache,
    known: KnownVulnerabilities,
    *,
    platforms: Collection[str] = (),
    index: Index | None = None,
) -> DiffReport:
    """Compare two files of one kind, or two local releases (`cuda@12.9.1`).

    `platforms` limits the comparison. Local releases are compared with their features and their
    entries in tables. `index` is that of the store, and is opened if it is missing. If the sides
    are of different redistributables, the report has a note, and known vulnerabilities are not
    compared. Raises `UsageError` for a side that is neither a file nor a local release, and for
    files of different kinds.
    """
    tables = functools.cache(
        lambda: ComparedTables(read_layered(store, NVCC_TABLE), read_layered(store, GPU_TABLE))
    )
    first = _read(old, store, cache, tables)
    second = _read(new, store, cache, tables)
    if first.kind != second.kind:
        hint = "compare two manifests, two feature files or two package sets"
        raise UsageError(f"{old} is a {first.kind}, but {new} is a {second.kind}", hint=hint)
    names = read_own_file(store.read_policy("names"), NamePolicy)
    if is_local_release(old) and is_local_release(new):
        index = index or Index(store, cache)
        add_exports(first, second, index)
    if platforms:
        first, second = of_platforms(first, platforms), of_platforms(second, platforms)
    report = compare(first, second, names)
    if first.redist and second.redist and first.redist != second.redist:
        note = f"different redistributables: {first.redist} and {second.redist}"
        return report.changed(notes=(note,))
    update: dict[str, object] = {"vulnerabilities": vulnerability_changes(first, second, known)}
    if index is not None and first.redist is not None:
        before, after = (parse_label(one.name.rpartition("@")[2]) for one in (first, second))
        api = read_api(index, first.redist, (before, after))
        update["api"] = api_counts(api, before, after)
    return report.changed(**update)


def compare_in_order(
    redist: str,
    releases: Mapping[Version, tuple[Manifest, Features | None]],
    store: Store,
    tables: ComparedTables,
    api: Api,
) -> dict[Version, DiffReport]:
    """Return the changes of each release since the one before it.

    The first release has none. Symbols are left out, because their names would be most of the
    report.
    """
    names = read_own_file(store.read_policy("names"), NamePolicy)
    sides = [
        _of_release(redist, label, manifest, features, tables)
        for label, (manifest, features) in releases.items()
    ]
    pairs = zip(list(releases)[1:], pairwise(sides), strict=True)
    reports = {label: compare(old, new, names) for label, (old, new) in pairs}
    return {
        label: report.changed(api=api_counts(api, before, label))
        for before, (label, report) in zip(releases, reports.items(), strict=False)
    }


def _read(
    text: str, store: Store, cache: Cache, tables: Callable[[], ComparedTables]
) -> Comparable:
    if is_local_release(text):
        return _read_release(text, store, cache, tables())
    path = Path(text)
    data = read_file(path)
    if data is None:
        usable = "use a file, or a local release such as cuda@12.9.1"
        hint = f"{usable}; to list releases, run `{command_line('versions', '--offline')}`"
        raise UsageError(f"{text}: no such file", hint=hint)
    with located(text):
        document = parse_own_json(data)
        if schema_version_of(document) is None:
            manifest = read_manifest(data, label=label_of_manifest_name(path.name))
            side = of_manifest(text, manifest)
            side.redist = _redist_of(manifest.release_product)
            if side.redist is not None and manifest.label is not None:
                add_releases(side, side.redist, manifest.label)
            side.files = _files_of(manifest, cache)
            return side
        kind = kind_of_document(document)
        value: Any = None if kind is None else read_own_file(data, kind.model)
        if kind is not None and kind.name == "features":
            return of_features(text, value, tables().rules)
        if kind is not None and kind.name == "package-set":
            return of_package_set(text, value)
        problem = Problem("", "is not a manifest, feature file or package set")
        raise InvalidFileError("file to compare", [problem])


def _redist_of(product: str | None) -> str | None:
    """Return the redistributable of a `release_product`, such as `nccl-nccl-stable-cuda-13`."""
    names = [] if product is None else [product, product.partition("-")[0]]
    return next((name for name in names if name in REDISTS), None)


def _read_release(text: str, store: Store, cache: Cache, tables: ComparedTables) -> Comparable:
    redist, _, label_text = text.partition("@")
    known = require_manifests(store)
    if redist not in known:
        raise UnknownNameError("local redistributable", redist, known)
    labels = store.manifests(redist).labels()
    label = find_release(label_text, labels)
    if label is None:
        refuse_other_channel(store, redist, label_text)
        raise _no_release(redist, label_text, store)
    manifest, features = load_manifest(store, redist, label), load_features(store, redist, label)
    side = _of_release(redist, label, manifest, features, tables)
    side.files = _files_of(manifest, cache) if features is None else files_of(side)
    return side


def _no_release(redist: str, text: str, store: Store) -> UsageError:
    """Return the error for a release that is not local, with a command that finds or gets it."""
    labels = list(map(str, store.manifests(redist).labels()))
    hint = f"local: {listed_names(labels)}"
    calls = (corrected(text, [label]) for label in nearest_releases(text, labels) or labels)
    # A release that is compared with itself has no differences.
    call = next((call for call in calls if call and len(set(_sides(call, redist))) > 1), None)
    if call is not None:
        hint += f"; run `{call}`"
    elif re.fullmatch(r"[0-9]+(\.[0-9]+)*", text):
        options = {"redist": redist, "version": text}
        command = command_line("download-manifests", channel=store.channel, **options)
        hint += f"; to download it, run `{command}`"
    return UsageError(f"no local release of {redist} is called {shown(text)}", hint=hint)


def _sides(call: str, redist: str) -> list[str]:
    """Return the releases of a redistributable in a call."""
    return [word for word in shlex.split(call) if word.startswith(f"{redist}@")]


def _of_release(
    redist: str,
    label: Version,
    manifest: Manifest,
    features: Features | None,
    tables: ComparedTables,
) -> Comparable:
    """Return the compared fields of a release, without its symbols."""
    contents = contents_of(features, tables.rules) if features else {}
    side = of_manifest(f"{redist}@{label}", manifest, contents)
    side.redist = redist
    add_releases(side, redist, label)
    if features is not None:
        add_paths(side, features)
    if redist == CUDA:
        side.tables = of_tables(str(label), tables.compat, tables.gpus)
    return side


def _files_of(manifest: Manifest, cache: Cache) -> dict[str, frozenset[str]]:
    """Return the file paths of each package, from its cached archives."""
    # Most releases have feature files, and readers of archives are slow to import.
    from cudaredist.features.archive_tree import build_tree  # noqa: PLC0415
    from cudaredist.features.wheel import as_redistributable  # noqa: PLC0415
    from cudaredist.store.facts_cache import known_facts  # noqa: PLC0415

    files: dict[str, set[str]] = {}
    for archive in manifest.archives:
        facts = known_facts(cache, archive.sha256)
        if facts is not None:
            members, _ = as_redistributable(facts.members)
            # Files at the top, such as the license, are in every package.
            paths = (path for path in build_tree(members).files if "/" in path)
            files.setdefault(archive.package, set()).update(paths)
    return {name: frozenset(paths) for name, paths in files.items()}
