"""Shared libraries of a set: who provides each, who needs it, and what no set holds."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import translate
from functools import lru_cache
from typing import Literal

from cudaredist.packagesets.draft import Draft
from cudaredist.packagesets.entries import Target, fixups_for, require_packages
from cudaredist.packagesets.inputs import SetData, is_within
from cudaredist.packagesets.outputs import ORDER, placed_libraries, placed_programs, resolve
from cudaredist.schema import (
    Depends,
    Diagnostic,
    External,
    ExternalSoname,
    InSet,
    Needed,
    OutputName,
    OutsideSet,
    Provided,
    ReasonCode,
    SonameProvider,
)

_SYSTEM = frozenset({"driver", "jetson"})

_Index = Mapping[str, list[tuple[Draft, Provided]]]


def connect(
    entries: Mapping[str, Draft], real: Mapping[str, str], target: Target, data: SetData
) -> list[Diagnostic]:
    """Fill in what every package provides, needs and depends on.

    `real` leads from each name to that of the entry it is an alias of, or to itself. A package that
    needs what nobody known has, or what only a package that is not available has, becomes broken,
    and so do those that need it in turn, be it for a library or by policy.
    """
    candidates = [draft for draft in entries.values() if draft.has_files]
    names: dict[str, dict[str, Provided]] = {}
    wanted: dict[str, list[Needed]] = {}
    for draft in candidates:
        provided = list(_provided(draft))
        draft.provides = [library for library, _ in provided]
        names[draft.attr] = {
            key_of(name): library
            for library, found_by in provided
            for name in sorted(found_by)
            # A stub is there to be linked with, never to be run.
            if not library.stub
        }
        wanted[draft.attr] = [*_needed(draft), *_loaded(draft, target, data)]
    index = _index_of(entries, names)
    while True:
        before = sum(draft.is_available for draft in candidates)
        diagnostics: list[Diagnostic] = []
        for draft in candidates:
            _satisfy(draft, wanted[draft.attr], names, index, entries, data)
            draft.depends = _depends(draft)
            diagnostics += _policy_depends(draft, entries, real, target, data)
            require_packages(draft, target, entries, real, data)
        if sum(draft.is_available for draft in candidates) == before:
            return diagnostics


def soname_index(entries: Iterable[Draft]) -> dict[str, tuple[SonameProvider, ...]]:
    """Return the libraries of all available packages by soname."""
    index = defaultdict(list)
    for draft in entries:
        if draft.is_available:
            for provided in draft.provides:
                index[provided.soname].append(
                    SonameProvider(
                        attr=draft.attr,
                        output=provided.output,
                        path=provided.path,
                        stub=provided.stub,
                    )
                )
    return {
        soname: tuple(sorted(index[soname], key=lambda p: (p.stub, p.attr, p.path)))
        for soname in sorted(index)
    }


def unread_files(draft: Draft) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the files of a package whose tables could not be read, with the fields that lack."""
    if draft.examined is not None and draft.layout is not None:
        for library, path, _ in placed_libraries(draft.examined, draft.layout):
            if library.unread:
                yield path, library.unread
        for program, path, _ in placed_programs(draft.examined, draft.layout):
            if program.unread:
                yield path, program.unread


def external_sonames(entries: Iterable[Draft], data: SetData) -> dict[str, ExternalSoname]:
    """Return the libraries that packages need and the set does not hold, with their owners."""
    needed_by = defaultdict(set)
    for draft in entries:
        for need in draft.needs if draft.has_files else ():
            is_missing = need.satisfied_by is None and need.kind == "needed"
            if isinstance(need.satisfied_by, OutsideSet) or is_missing:
                needed_by[need.soname].add(draft.attr)
    found = {}
    for soname in sorted(needed_by):
        entry = find_external(soname, data)
        found[soname] = ExternalSoname(
            owner="unknown" if entry is None else entry.owner,
            provider=None if entry is None else entry.provider,
            needed_by=tuple(sorted(needed_by[soname])),
        )
    return found


def find_external(soname: str, data: SetData) -> External | None:
    """Return the policy's entry of a library that no set holds; None where it has none."""
    name = key_of(soname)
    for entry in data.policies.libraries.external:
        if any(_pattern(key_of(pattern))(name) for pattern in entry.names):
            return entry
    return None


def key_of(soname: str) -> str:
    """Return the form by which names of libraries are compared: case counts not for DLLs."""
    return soname.lower() if soname.lower().endswith(".dll") else soname


@lru_cache(maxsize=4096)
def _pattern(text: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(translate(text)).match


# -- what files state


def _provided(draft: Draft) -> Iterator[tuple[Provided, set[str]]]:
    """Yield the libraries of a package, each with all names it can be found by."""
    if draft.examined is None or draft.layout is None:
        return
    for library, path, output in placed_libraries(draft.examined, draft.layout):
        names = {name.rpartition("/")[2] for name in (path, *library.links)}
        soname = library.soname or path.rpartition("/")[2]
        provided = Provided(soname=soname, path=path, output=output, stub=library.stub)
        yield provided, {soname, *names}


def _needed(draft: Draft) -> Iterator[Needed]:
    if draft.examined is None or draft.layout is None:
        return
    files: list[tuple[tuple[str, ...], str, OutputName]] = [
        (library.needed, path, output)
        for library, path, output in placed_libraries(draft.examined, draft.layout)
        if not library.stub
    ]
    files += [
        (program.needed, path, output)
        for program, path, output in placed_programs(draft.examined, draft.layout)
    ]
    for needed, path, output in files:
        for soname in dict.fromkeys(needed):
            yield Needed(
                soname=soname, by_path=path, output=output, satisfied_by=None, kind="needed"
            )


def _loaded(draft: Draft, target: Target, data: SetData) -> Iterator[Needed]:
    """Yield what policy says that libraries of a package load while they run."""
    if draft.archive is None or target.system != "linux":
        return
    for entry in data.policies.libraries.loaded:
        if entry.package == draft.pname and is_within(draft.archive.version, entry.versions):
            draft.note(data.policies, "libraries", entry)
            for provided in draft.provides:
                if not provided.stub and provided.soname.partition(".so")[0] == entry.by:
                    yield Needed(
                        soname=entry.loads,
                        by_path=provided.path,
                        output=provided.output,
                        satisfied_by=None,
                        kind="dlopen",
                    )


# -- who satisfies whom


def _index_of(entries: Mapping[str, Draft], names: Mapping[str, Mapping[str, Provided]]) -> _Index:
    index = defaultdict(list)
    for attr, provided in names.items():
        draft = entries[attr]
        # Further versions serve only themselves.
        if draft.attr == draft.pname:
            for name, library in provided.items():
                index[name].append((draft, library))
    return index


def _satisfy(
    draft: Draft,
    wanted: Iterable[Needed],
    names: Mapping[str, Mapping[str, Provided]],
    index: _Index,
    entries: Mapping[str, Draft],
    data: SetData,
) -> None:
    needs = []
    problems: dict[str, tuple[ReasonCode, str]] = {}
    for need in wanted:
        found, unavailable = _find(draft, need, names, index)
        outside = find_external(need.soname, data)
        # What the running system has is never another package's, even where one has it, too.
        is_of_system = outside is not None and outside.owner in _SYSTEM
        satisfied_by: InSet | OutsideSet | None = found
        if outside is not None and (found is None or (is_of_system and found.attr != draft.attr)):
            found, satisfied_by = None, OutsideSet(external=outside.owner)
        elif found is None and need.kind == "needed":
            if unavailable:
                text = f"{need.soname}, which {need.by_path} needs, is in {unavailable} only"
                problems[need.soname] = ("dependency-unavailable", text)
            else:
                text = f"{need.by_path} needs {need.soname}, which nothing known provides"
                problems[need.soname] = ("unresolved-library", text)
        soname = need.soname
        if need.kind == "dlopen" and found is not None:
            soname = next(
                (p.soname for p in entries[found.attr].provides if _stem(p.soname) == need.soname),
                soname,
            )
        needs.append(need.model_copy(update={"satisfied_by": satisfied_by, "soname": soname}))
    draft.needs = sorted(needs, key=lambda need: (need.by_path, need.kind, need.soname))
    for soname, (code, text) in sorted(problems.items()):
        draft.refuse("broken", code, text, soname, "features")


def _find(
    draft: Draft, need: Needed, names: Mapping[str, Mapping[str, Provided]], index: _Index
) -> tuple[InSet | None, str | None]:
    """Return who in the set has a library, its own package first; else who would have it."""
    is_loaded = need.kind == "dlopen"
    key = key_of(need.soname)

    def fitting(held: Iterable[str]) -> Iterable[str]:
        return (name for name in held if _stem(name) == key) if is_loaded else (key,)

    own = names.get(draft.attr, {})
    for name in fitting(own):
        if name in own:
            return InSet(attr=draft.attr, output=own[name].output), None
    holders = [holder for name in fitting(index) for holder in index.get(name, ())]
    for holder, library in holders:
        if holder.is_available:
            return InSet(attr=holder.attr, output=library.output), None
    others = sorted({holder.attr for holder, _ in holders})
    return None, " and ".join(others) or None


def _stem(name: str) -> str:
    return name.partition(".so")[0]


# -- who depends on whom


def _depends(draft: Draft) -> list[Depends]:
    found: dict[tuple[str, str], Depends] = {}
    for need in draft.needs:
        by = need.satisfied_by
        if isinstance(by, InSet) and by.attr != draft.attr:
            kind: Literal["runtime", "dlopen"] = "runtime" if need.kind == "needed" else "dlopen"
            key = (by.attr, by.output)
            if key not in found or kind == "runtime":
                found[key] = Depends(attr=by.attr, output=by.output, kind=kind)
    return [found[key] for key in sorted(found)]


def _policy_depends(
    draft: Draft,
    entries: Mapping[str, Draft],
    real: Mapping[str, str],
    target: Target,
    data: SetData,
) -> Iterator[Diagnostic]:
    """Add what policy and fixups say that a package needs; yield what of it the set lacks."""
    wanted = []
    for rule in data.policies.libraries.dependencies:
        if rule.package == draft.pname and is_within(target.cuda, rule.cuda):
            draft.note(data.policies, "libraries", rule)
            source = data.policies.source("libraries", rule)
            wanted.append((rule.needs, rule.kind, source, rule.reason))
    for fixup in fixups_for(draft.pname, target, data):
        source = data.policies.source("fixups", fixup)
        wanted += [(name, "runtime", source, fixup.reason) for name in fixup.depends or ()]
    for name, kind, source, reason in wanted:
        other = entries.get(real.get(name, name))
        if other is not None and other.is_available:
            first: tuple[OutputName, ...] = ("include", "dev") if kind == "header" else ("lib",)
            output = resolve(first, other.outputs)
            entry = Depends(attr=other.attr, output=output, kind=kind)
            if entry not in draft.depends and other.attr != draft.attr:
                draft.depends.append(entry)
        elif kind == "runtime":
            text = f"{name} is not available: {reason}"
            draft.refuse("broken", "dependency-unavailable", text, name, source)
        else:
            yield Diagnostic(
                level="warning",
                code="dependency-unavailable",
                subject=draft.attr,
                text=f"its headers need those of {name}, which the set lacks: {reason}",
            )
    draft.depends.sort(key=lambda entry: (entry.attr, ORDER.index(entry.output), entry.kind))
