"""Shared libraries of a set: providers and dependents."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import lru_cache
from typing import Literal

from cudaredist.formats.base import OutputName
from cudaredist.formats.features import Library
from cudaredist.formats.packageset import (
    Depends,
    Diagnostic,
    ExternalSoname,
    InSet,
    Needed,
    Opened,
    OutsideSet,
    Provided,
    ReasonCode,
    SonameProvider,
)
from cudaredist.formats.policy import External, LibraryPolicy, LoadedLibrary
from cudaredist.sets.draft import Draft
from cudaredist.sets.entries import fixups_for, require_packages
from cudaredist.sets.headers import Included, header_depends, included_headers
from cudaredist.sets.inputs import SetData, is_within
from cudaredist.sets.outputs import ORDER, resolve
from cudaredist.sets.spec import SetSpec

_SYSTEM = frozenset({"driver", "jetson"})


def resolve_dependencies(
    entries: Mapping[str, Draft], aliases: Mapping[str, str], spec: SetSpec, data: SetData
) -> tuple[dict[str, Draft], list[Diagnostic]]:
    """Add libraries and dependencies to every package.

    A package becomes broken if it needs a library without a known provider, or with unavailable
    providers only. The packages that require it, for a library or by policy, become broken too.
    """
    connection = _Connection(dict(entries), aliases, spec, data)
    drafts = connection.drafts
    needs_of = {attr: connection.add(draft) for attr, draft in entries.items() if draft.has_files}
    included = included_headers(entries, spec.platform)
    while True:
        before = sum(drafts[attr].is_available for attr in needs_of)
        diagnostics: list[Diagnostic] = []
        for attr, needs in needs_of.items():
            draft = connection.with_needs(drafts[attr], needs)
            drafts[attr] = draft
            draft, lacking = connection.with_depends(draft, *header_depends(included[attr], drafts))
            drafts[attr] = draft
            drafts[attr] = require_packages(draft, connection.find, spec, data)
            diagnostics += lacking
        if sum(drafts[attr].is_available for attr in needs_of) == before:
            break
    for attr in needs_of:
        drafts[attr] = replace(drafts[attr], opens=tuple(connection.opened(drafts[attr])))
    return drafts, diagnostics


@dataclass(frozen=True, slots=True)
class _Connection:
    """The packages of a set and their libraries, by all names."""

    drafts: dict[str, Draft]
    aliases: Mapping[str, str]
    spec: SetSpec
    data: SetData
    of_package: dict[str, dict[str, Provided]] = field(default_factory=dict)
    """By attribute, without stubs, which are for linking only."""
    providers: dict[str, list[tuple[str, Provided]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By name: the attributes of the providers, additional versions last."""

    def add(self, draft: Draft) -> list[Needed]:
        """Add the libraries of a package, and return those that it needs."""
        provided = list(_provided(draft))
        own = {
            key_of(name): library
            for library, names in provided
            for name in sorted(names)
            if not library.stub
        }
        self.of_package[draft.attr] = own
        for name, library in own.items():
            self.providers[name].append((draft.attr, library))
        libraries = tuple(library for library, _ in provided)
        rules = _loading_rules(draft, self.spec, self.data)
        notes = self.data.policies.notes("libraries", *rules)
        self.drafts[draft.attr] = replace(draft, provides=libraries).noted(*notes)
        needed = [_need(*names, "needed") for names in _names_in(draft, "needed")]
        return [*needed, *_loaded(libraries, rules)]

    def find(self, name: str, by: Draft) -> list[Draft]:
        """Find the versions of a package that another one can use."""
        main = self.drafts.get(self.aliases.get(name, name))
        return [
            draft
            for draft in self.drafts.values()
            if draft is main or (draft.pname == name and by.can_use(draft))
        ]

    def with_needs(self, draft: Draft, needs: Iterable[Needed]) -> Draft:
        """Add the providers of needed libraries to a package.

        The package becomes broken if a library has no provider.
        """
        resolved = []
        problems: dict[str, tuple[ReasonCode, str]] = {}
        for need in needs:
            provider, unavailable = self._provider(draft, need)
            outside = find_external(need.soname, self.data.policies.libraries)
            # A library of the running system is never taken from another package.
            is_of_system = outside is not None and outside.owner in _SYSTEM
            satisfied_by: InSet | OutsideSet | None = provider
            is_other = provider is not None and provider.attr != draft.attr
            if outside is not None and (provider is None or (is_of_system and is_other)):
                provider, satisfied_by = None, OutsideSet(external=outside.owner)
            elif provider is None and need.kind == "needed":
                code: ReasonCode = "unresolved-library"
                text = f"{need.by_path} needs {need.soname}, which has no known provider"
                if unavailable:
                    code = "dependency-unavailable"
                    text = f"{need.by_path} needs {need.soname}, which is only in {unavailable}"
                problems[need.soname] = (code, text)
            soname = need.soname
            if need.kind == "dlopen" and provider is not None:
                sonames = (library.soname for library in self.drafts[provider.attr].provides)
                soname = next((name for name in sonames if stem_of(name) == soname), soname)
            update = {"satisfied_by": satisfied_by, "soname": soname}
            resolved.append(need.model_copy(update=update))
        resolved.sort(key=lambda need: (need.by_path, need.kind, need.soname))
        draft = replace(draft, needs=tuple(resolved))
        for soname, (code, text) in sorted(problems.items()):
            draft = draft.refused("broken", code, text, "features", soname)
        return draft

    def _provider(self, draft: Draft, need: Needed) -> tuple[InSet | None, str | None]:
        """Find the provider of a library, preferring the package itself.

        If no provider is available, return the names of the unavailable ones.
        """
        is_loaded = need.kind == "dlopen"
        key = key_of(need.soname)

        def fitting(names: Iterable[str]) -> Iterable[str]:
            return (name for name in names if stem_of(name) == key) if is_loaded else (key,)

        own = self.of_package.get(draft.attr, {})
        for name in fitting(own):
            if name in own:
                return InSet(attr=draft.attr, output=own[name].output), None
        providers = [
            (attr, library)
            for name in fitting(self.providers)
            for attr, library in self.providers.get(name, ())
            if draft.can_use(self.drafts[attr])
        ]
        for attr, library in providers:
            if self.drafts[attr].is_available:
                return InSet(attr=attr, output=library.output), None
        return None, " and ".join(sorted({attr for attr, _ in providers})) or None

    def opened(self, draft: Draft) -> Iterator[Opened]:
        """Yield the libraries that files may open at run time.

        Libraries already confirmed by policy are not repeated.
        """
        confirmed = {(n.by_path, stem_of(n.soname)) for n in draft.needs if n.kind == "dlopen"}
        for soname, path, output in _names_in(draft, "opens"):
            if (path, stem_of(soname)) not in confirmed:
                outside = find_external(soname, self.data.policies.libraries)
                satisfied_by: InSet | OutsideSet | None = None
                if outside is None or outside.owner not in _SYSTEM:
                    need = _need(soname, path, output, "needed")
                    satisfied_by = self._provider(draft, need)[0]
                if satisfied_by is None and outside is not None:
                    satisfied_by = OutsideSet(external=outside.owner)
                yield Opened(soname=soname, by_path=path, satisfied_by=satisfied_by)

    def with_depends(
        self, draft: Draft, by_headers: Iterable[Depends], lacking: Iterable[Included]
    ) -> tuple[Draft, list[Diagnostic]]:
        """Add all dependencies to a package.

        Also return a diagnostic for each missing dependency that does not break the package.
        """
        depends = [*_library_depends(draft), *by_headers]
        diagnostics = [
            warning(
                "dependency-unavailable",
                draft.attr,
                f"{header.by_path} includes {header.name}, which is only in "
                f"{' and '.join(header.providers)}",
            )
            for header in lacking
        ]
        policies, cuda = self.data.policies, self.spec.cuda
        required = []
        for rule in policies.libraries.dependencies:
            if rule.package == draft.pname and is_within(cuda, rule.cuda):
                draft = draft.noted(*policies.notes("libraries", rule))
                source = policies.source("libraries", rule)
                required.append((rule.needs, rule.kind, source, rule.reason))
        for fixup in fixups_for(draft.pname, self.spec, self.data):
            source = policies.source("fixups", fixup)
            required += [(name, "runtime", source, fixup.reason) for name in fixup.depends or ()]
        for name, kind, source, reason in required:
            other = next((other for other in self.find(name, draft) if other.is_available), None)
            if other is not None:
                first: tuple[OutputName, ...] = ("include", "dev") if kind == "header" else ("lib",)
                entry = Depends(attr=other.attr, output=resolve(first, other.outputs), kind=kind)
                known = {(one.attr, one.output, one.kind) for one in depends}
                if other.attr != draft.attr and (other.attr, entry.output, kind) not in known:
                    depends.append(entry)
            elif kind == "runtime":
                text = f"{name} is not available: {reason}"
                draft = draft.refused("broken", "dependency-unavailable", text, source, name)
            else:
                text = f"its headers need those of {name}, which is not in the set: {reason}"
                diagnostics.append(warning("dependency-unavailable", draft.attr, text))
        depends.sort(key=lambda entry: (entry.attr, ORDER.index(entry.output), entry.kind))
        return replace(draft, depends=tuple(depends)), diagnostics


def soname_index(entries: Iterable[Draft]) -> dict[str, tuple[SonameProvider, ...]]:
    """Return the libraries of all available packages by soname."""
    index: dict[str, list[SonameProvider]] = defaultdict(list)
    for draft in entries:
        for library in draft.provides if draft.is_available else ():
            index[library.soname].append(
                SonameProvider(
                    attr=draft.attr, output=library.output, path=library.path, stub=library.stub
                )
            )
    return {
        soname: tuple(sorted(index[soname], key=lambda p: (p.stub, p.attr, p.path)))
        for soname in sorted(index)
    }


def external_sonames(entries: Iterable[Draft], data: SetData) -> dict[str, ExternalSoname]:
    """Return libraries from outside the set, with their owners."""
    needed_by = defaultdict(set)
    for draft in entries:
        for need in draft.needs if draft.has_files else ():
            is_missing = need.satisfied_by is None and need.kind == "needed"
            if isinstance(need.satisfied_by, OutsideSet) or is_missing:
                needed_by[need.soname].add(draft.attr)
    sonames = {}
    for soname in sorted(needed_by):
        entry = find_external(soname, data.policies.libraries)
        sonames[soname] = ExternalSoname(
            owner="unknown" if entry is None else entry.owner,
            provider=None if entry is None else entry.provider,
            needed_by=tuple(sorted(needed_by[soname])),
        )
    return sonames


def find_external(soname: str, policy: LibraryPolicy) -> External | None:
    """Return policy's entry for an external library, or None."""
    name = key_of(soname)
    return next((entry for entry in policy.external if _pattern(entry.names)(name)), None)


def key_of(soname: str) -> str:
    """Return a library name for comparison: DLL names ignore case."""
    return soname.lower() if soname.lower().endswith(".dll") else soname


@lru_cache(maxsize=4096)
def _pattern(names: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    return re.compile("|".join(translate(key_of(name)) for name in names) or "(?!)").match


# -- facts of the files


def _provided(draft: Draft) -> Iterator[tuple[Provided, set[str]]]:
    """Yield the libraries of a package, each with all its names."""
    if draft.split is not None:
        for library, path, output in draft.split.placed(draft.split.examined.libraries):
            names = {name.rpartition("/")[2] for name in (path, *library.links)}
            soname = library.soname or path.rpartition("/")[2]
            provided = Provided(soname=soname, path=path, output=output, stub=library.stub)
            yield provided, {soname, *names}


def _names_in(
    draft: Draft, names: Literal["needed", "opens"]
) -> Iterator[tuple[str, str, OutputName]]:
    """Yield the names of libraries in a package's files, with path and output of the file."""
    if draft.split is not None:
        for file, path, output in draft.split.placed(draft.split.binaries):
            is_stub = isinstance(file, Library) and file.stub
            for soname in dict.fromkeys(() if is_stub else getattr(file, names)):
                yield soname, path, output


def _loading_rules(draft: Draft, spec: SetSpec, data: SetData) -> list[LoadedLibrary]:
    """Return policy's rules for libraries loaded at run time."""
    archive = draft.archive
    if archive is None or spec.platform.os != "linux":
        return []
    return [
        rule
        for rule in data.policies.libraries.loaded
        if rule.package == draft.pname and is_within(archive.version, rule.versions)
    ]


def _loaded(libraries: Sequence[Provided], rules: Iterable[LoadedLibrary]) -> Iterator[Needed]:
    for rule in rules:
        for library in libraries:
            if not library.stub and stem_of(library.soname) == rule.by:
                yield _need(rule.loads, library.path, library.output, "dlopen")


def _need(soname: str, path: str, output: OutputName, kind: Literal["needed", "dlopen"]) -> Needed:
    return Needed(soname=soname, by_path=path, output=output, satisfied_by=None, kind=kind)


def stem_of(name: str) -> str:
    """Return a library's name without `.so` and its version."""
    return name.partition(".so")[0]


def _library_depends(draft: Draft) -> Iterable[Depends]:
    """Return a package's dependencies by libraries, each output once."""
    depends: dict[tuple[str, str], Depends] = {}
    for need in draft.needs:
        by = need.satisfied_by
        if isinstance(by, InSet) and by.attr != draft.attr:
            kind: Literal["runtime", "dlopen"] = "runtime" if need.kind == "needed" else "dlopen"
            key = (by.attr, by.output)
            if key not in depends or kind == "runtime":
                depends[key] = Depends(attr=by.attr, output=by.output, kind=kind)
    return depends.values()


def warning(code: str, subject: str, text: str) -> Diagnostic:
    """Return a diagnostic for the maintainer of the set."""
    return Diagnostic(level="warning", code=code, subject=subject, text=text)
