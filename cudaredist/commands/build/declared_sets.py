"""build: the package sets that a distribution declares in its configuration file."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cudaredist.cli.configuration import DeclaredSets, place_in_sets
from cudaredist.commands.build.build_sets import Attempt, Spec, make_sets, set_path, specs_for
from cudaredist.errors import UsageError
from cudaredist.formats.settings import DEFAULT_NAME
from cudaredist.primitives import Version
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.sets.inputs import SetData
from cudaredist.sets.load import read_set_data
from cudaredist.sets.spec import RefusedSet, Request, SetSpec
from cudaredist.store.data_folder import Store
from cudaredist.store.files import is_folder


class SetGroup(NamedTuple):
    """Package sets to build from the same data, for example those of one declaration."""

    data: SetData
    specs: Sequence[Spec]


def declared_groups(declared: DeclaredSets, store: Store, template: Request) -> list[SetGroup]:
    """Return the sets of each declaration.

    The request has the options that apply to all sets. Raises `UsageError` for a declaration that
    no release or platform fits, for an overlay that is missing, and for two sets with one name and
    platform, each with its line.
    """

    @cache
    def read_data(overlays: tuple[Path, ...]) -> SetData:
        stores = [Store(path, store.channel) for path in overlays]
        return read_set_data(store, stores, "--overlay")

    place_by_path: dict[str, str] = {}
    groups = []
    for number in range(len(declared.sets)):
        data = read_data(tuple(_overlays(declared, number)))
        group = _group(declared, number, data, template)
        place = place_in_sets(declared.path, number)
        for spec in group.specs:
            if isinstance(spec, RefusedSet):
                continue
            path = str(set_path(spec))
            other = place_by_path.setdefault(path, place)
            if other != place:
                message = f"{place}: {path} is the name of two sets, the other in {other}"
                raise UsageError(message, hint="give one of them another `name`")
        groups.append(group)
    return list(_with_alias_labels(groups))


def _with_alias_labels(groups: Sequence[SetGroup]) -> Iterator[SetGroup]:
    """Limit the aliases of each set to the declared releases with its name and platform."""
    labels: dict[tuple[str | None, str], set[Version]] = defaultdict(set)
    specs = [spec for group in groups for spec in group.specs if isinstance(spec, SetSpec)]
    for spec in specs:
        labels[spec.request.name, spec.platform].add(spec.cuda)
    for group in groups:
        yield SetGroup(group.data, [_with_labels(spec, labels) for spec in group.specs])


def _with_labels(spec: Spec, labels: Mapping[tuple[str | None, str], set[Version]]) -> Spec:
    if isinstance(spec, RefusedSet):
        return spec
    own = tuple(sorted(labels[spec.request.name, spec.platform]))
    return replace(spec, request=replace(spec.request, alias_labels=own))


def make_groups(
    groups: Sequence[SetGroup],
    *,
    strict: bool = False,
    progress: Progress = NO_PROGRESS,
) -> Iterator[Attempt]:
    """Yield each set, or its error."""
    for data, specs in groups:
        yield from make_sets(specs, data, strict=strict, progress=progress)


def _group(declared: DeclaredSets, number: int, data: SetData, template: Request) -> SetGroup:
    """Return the sets of one declaration."""
    entry = declared.sets[number]
    request = replace(
        template,
        name=None if entry.name == DEFAULT_NAME else entry.name,
        capabilities=(*entry.capabilities, *entry.gpus),
        forward_compat=entry.forward_compat,
        pins=entry.redist,
        also=tuple(_release(declared, number, text) for text in entry.also),
        default_gcc=entry.default_gcc,
        available_gcc=tuple(entry.available_gcc),
        aliases=entry.aliases,
        alias_fallback=declared.alias_fallback,
        allow=template.allow | {*entry.allow},
        allow_missing_features=template.allow_missing_features or entry.allow_missing_features,
    )
    try:
        specs = [
            spec
            for platform in entry.platforms
            for spec in specs_for(replace(request, platform=platform), data, entry.cuda)
        ]
    except UsageError as error:
        place = place_in_sets(declared.path, number)
        raise UsageError(f"{place}: {error.message}", hint=error.hint) from None
    return SetGroup(data, specs)


def _overlays(declared: DeclaredSets, number: int) -> Iterator[Path]:
    for name in declared.sets[number].overlays:
        path = declared.path.parent / name
        if not is_folder(path):
            place = place_in_sets(declared.path, number, "overlays")
            hint = f"create {path}, or remove it from `overlays`"
            raise UsageError(f"{place}: no such overlay: {path}", hint=hint)
        yield path


def _release(declared: DeclaredSets, number: int, text: str) -> tuple[str, str]:
    name, equals, label = text.partition("=")
    if not (name and equals and label):
        place = place_in_sets(declared.path, number, "also")
        hint = 'write it as also = ["cudnn=8.9.7"]'
        raise UsageError(f"{place}: {text}: expected NAME=LABEL", hint=hint)
    return name, label
