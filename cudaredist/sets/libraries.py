"""Shared libraries of a set: providers and dependents."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Literal

from cudaredist.formats.features import Library
from cudaredist.formats.library_policy import LibraryPolicy, LoadedLibrary, OptionalLibrary
from cudaredist.formats.names import OutputName
from cudaredist.formats.packageset import (
    Depends,
    Diagnostic,
    ExternalSoname,
    InSet,
    Needed,
    Opened,
    OutsideSet,
    Provided,
    SonameProvider,
)
from cudaredist.formats.reason import ReasonCode
from cudaredist.sets.bounds import is_within
from cudaredist.sets.distributions import (
    NIXPKGS,
    find_distributions,
    is_old_library,
    old_library_text,
)
from cudaredist.sets.draft import Draft
from cudaredist.sets.entries import fixups_for, with_requirements
from cudaredist.sets.file_outputs import ORDER, resolve
from cudaredist.sets.headers import Included, header_depends, included_headers
from cudaredist.sets.library_names import (
    DRIVER_OWNERS,
    find_external,
    key_of,
    name_pattern,
    stem_of,
)
from cudaredist.sets.spec import SetSpec


def resolve_dependencies(
    entries: Mapping[str, Draft], aliases: Mapping[str, str], spec: SetSpec
) -> tuple[dict[str, Draft], list[Diagnostic]]:
    """Add libraries and dependencies to every package.

    A package becomes broken if it needs a library without a known provider, or with unavailable
    providers only. The packages that require it, for a library or by policy, become broken too.
    """
    connection = _Connection(dict(entries), aliases, spec)
    drafts = connection.drafts
    needs_of = {attr: connection.add(draft) for attr, draft in entries.items() if draft.has_files}
    included = included_headers(entries, spec.platform)
    # A package that becomes broken may break those that require it, until no more do.
    while True:
        before = sum(drafts[attr].is_available for attr in needs_of)
        diagnostics: list[Diagnostic] = []
        for attr, needs in needs_of.items():
            # Each step looks packages up in `drafts`, also this one.
            drafts[attr] = connection.with_needs(drafts[attr], needs)
            by_headers, lacking_headers = header_depends(included[attr], drafts)
            draft, found = connection.with_depends(drafts[attr], by_headers, lacking_headers)
            diagnostics += found
            drafts[attr] = draft
            drafts[attr] = with_requirements(draft, spec, connection.find)
        if sum(drafts[attr].is_available for attr in needs_of) == before:
            break
    for attr in needs_of:
        drafts[attr] = connection.with_opens(drafts[attr])
    return drafts, diagnostics


@dataclass(frozen=True, slots=True)
class _Connection:
    """The packages of a set and their libraries, by all names."""

    drafts: dict[str, Draft]
    aliases: Mapping[str, str]
    spec: SetSpec
    providers: dict[str, list[InSet]] = field(default_factory=lambda: defaultdict(list))
    """By name, without stubs, which are for linking only. Additional versions are last."""

    def add(self, draft: Draft) -> list[Needed]:
        """Add the libraries of a package, and return those that it needs."""
        provided = list(_provided(draft))
        outputs = {
            key_of(name): library.output
            for library, names in provided
            for name in sorted(names)
            if not library.stub
        }
        for name, output in outputs.items():
            self.providers[name].append(InSet(attr=draft.attr, output=output))
        libraries = tuple(library for library, _ in provided)
        rules = _loading_rules(draft, self.spec)
        notes = self.spec.policies.notes("libraries", *rules)
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
        needs = list(needs)
        gone = self._gone(need.soname for need in needs if need.kind == "needed")
        problems: dict[str, tuple[ReasonCode, str]] = {}
        for need in needs:
            soname = need.soname
            provider, providers = self._provider(draft, soname, need.kind)
            outside, is_of_system = self._outside(soname)
            is_own = provider is not None and provider.attr == draft.attr
            satisfied_by: InSet | OutsideSet | None = None
            # A library of the running system is never taken from another package.
            if provider is not None and (is_own or not is_of_system):
                satisfied_by = provider
                if need.kind == "dlopen":  # only the stem of the name is known
                    stem = soname
                    sonames = (library.soname for library in self.drafts[provider.attr].provides)
                    soname = next((name for name in sonames if stem_of(name) == stem), stem)
            elif outside is not None and soname not in gone:
                satisfied_by = outside
            elif need.kind == "needed":
                # All providers are unavailable.
                code: ReasonCode = "dependency-unavailable" if providers else "unresolved-library"
                lack = "which has no known provider"
                if providers:
                    lack = f"which is only in {providers}"
                elif soname in gone:
                    lack = old_library_text({}, self.spec.policies.libraries)
                problems[soname] = (code, f"{need.by_path} needs {soname}, {lack}")
            update = {"satisfied_by": satisfied_by, "soname": soname}
            resolved.append(need.model_copy(update=update))
        resolved.sort(key=lambda need: (need.by_path, need.kind, need.soname))
        draft = replace(draft, needs=tuple(resolved))
        for soname, (code, text) in sorted(problems.items()):
            draft = draft.refused("broken", code, text, "features", soname)
        return draft

    def _provider(
        self, draft: Draft, soname: str, kind: Literal["needed", "dlopen"]
    ) -> tuple[InSet | None, str]:
        """Find the available provider of a library, preferring the package itself.

        Also return the names of all providers.
        """
        key = key_of(soname)
        names = [key]
        if kind == "dlopen":
            names = [name for name in self.providers if stem_of(name) == key]
        providers = [
            provider
            for name in names
            for provider in self.providers.get(name, ())
            if draft.can_use(self.drafts[provider.attr])
        ]
        own = (provider for provider in providers if provider.attr == draft.attr)
        available = (p for p in providers if self.drafts[p.attr].is_available)
        provider = next(own, None) or next(available, None)
        return provider, " and ".join(sorted({provider.attr for provider in providers}))

    def with_opens(self, draft: Draft) -> Draft:
        """Add the libraries that files may open at run time, and their packages.

        Each package of the set with such a library is a dependency, required or optional.
        """
        opens = tuple(self._opened(draft))
        rules = [self._optional_rule(draft, load.soname) for load in opens]
        draft = draft.noted(*self.spec.policies.notes("libraries", *rules))
        depends = {(d.attr, d.output, d.kind): d for d in draft.depends}
        # Required ones are first: one required library makes the dependency required.
        for load in sorted(opens, key=attrgetter("is_optional")):
            by = load.satisfied_by
            if isinstance(by, InSet) and by.attr != draft.attr:
                entry = _opened_depends(by, load)
                key = (entry.attr, entry.output, entry.kind)
                if key not in depends or not load.is_optional:
                    depends[key] = entry
        return replace(draft, opens=opens, depends=_in_order(depends.values()))

    def _opened(self, draft: Draft) -> Iterator[Opened]:
        """Yield the libraries that files may open at run time.

        Libraries already confirmed by policy are not repeated.
        """
        confirmed = {
            (need.by_path, stem_of(need.soname)) for need in draft.needs if need.kind == "dlopen"
        }
        for soname, path, _ in _names_in(draft, "opens"):
            if (path, stem_of(soname)) not in confirmed:
                outside, is_of_system = self._outside(soname)
                provider = None if is_of_system else self._provider(draft, soname, "needed")[0]
                is_own = provider is not None and provider.attr == draft.attr
                yield Opened(
                    soname=soname,
                    by_path=path,
                    satisfied_by=provider or outside,
                    is_optional=not is_own and self._optional_rule(draft, soname) is not None,
                )

    def _optional_rule(self, draft: Draft, soname: str) -> OptionalLibrary | None:
        """Return policy's entry for a library that a package can do without, or None."""
        entries = self.spec.policies.libraries.optional_libraries
        name = key_of(soname)
        of_package = (entry for entry in entries if name_pattern(entry.packages)(draft.pname))
        return next((entry for entry in of_package if name_pattern(entry.names)(name)), None)

    def _gone(self, sonames: Iterable[str]) -> set[str]:
        """Return the libraries that no distribution has.

        A package may have files for several versions of Python. One of them is enough.
        """
        policy = self.spec.policies.libraries
        gone, has_python = set(), False
        for soname in sonames:
            entry = find_external(soname, policy)
            distributions = find_distributions(soname, entry, policy)
            if distributions is not None and not distributions:
                gone.add(soname)
            has_python |= entry is not None and entry.owner == "python" and bool(distributions)
        return {name for name in gone if not (has_python and name.startswith("libpython"))}

    def _outside(self, soname: str) -> tuple[OutsideSet | None, bool]:
        """Return a library's provider outside the set, and whether it is the running system."""
        entry = find_external(soname, self.spec.policies.libraries)
        if entry is None:
            return None, False
        return OutsideSet(external=entry.owner), entry.owner in DRIVER_OWNERS

    def with_depends(
        self, draft: Draft, by_headers: Iterable[Depends], lacking: Iterable[Included]
    ) -> tuple[Draft, list[Diagnostic]]:
        """Add all dependencies to a package.

        Also return a diagnostic for each missing dependency that does not break the package.
        """
        # Required ones are last: one required library makes the dependency required.
        by_libraries = sorted(_library_depends(draft), key=attrgetter("is_optional"), reverse=True)
        depends = {(d.attr, d.output, d.kind): d for d in (*by_libraries, *by_headers)}
        diagnostics = []
        for header in lacking:
            text = f"{header.by_path} includes {header.name}, which is only in "
            text += " and ".join(header.providers)
            diagnostics.append(warning("dependency-unavailable", draft.attr, text))
        policies = self.spec.policies
        rules = [
            rule
            for rule in policies.libraries.dependencies
            if rule.package == draft.pname and is_within(self.spec.cuda, rule.cuda)
        ]
        draft = draft.noted(*policies.notes("libraries", *rules))
        required = [(r.needs, r.kind, policies.source("libraries", r), r.reason) for r in rules]
        for fixup in fixups_for(draft.pname, self.spec):
            source = policies.source("fixups", fixup)
            required += [(name, "runtime", source, fixup.reason) for name in fixup.depends or ()]
        for name, kind, source, reason in required:
            other = next((other for other in self.find(name, draft) if other.is_available), None)
            if other is not None:
                first: tuple[OutputName, ...] = ("include", "dev") if kind == "header" else ("lib",)
                output = resolve(first, other.outputs)
                if other.attr != draft.attr:
                    entry = Depends(attr=other.attr, output=output, kind=kind)
                    depends.setdefault((other.attr, output, kind), entry)
            elif kind == "runtime":
                text = f"{name} is not available: {reason}"
                draft = draft.refused("broken", "dependency-unavailable", text, source, name)
            else:
                text = f"its headers need those of {name}, which is not in the set: {reason}"
                diagnostics.append(warning("dependency-unavailable", draft.attr, text))
        return replace(draft, depends=_in_order(depends.values())), diagnostics


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


def external_sonames(entries: Iterable[Draft], policy: LibraryPolicy) -> dict[str, ExternalSoname]:
    """Return libraries from outside the set, with their owners."""
    needed_by = defaultdict(set)
    for draft in entries:
        for need in draft.needs if draft.has_files else ():
            is_missing = need.satisfied_by is None and need.kind == "needed"
            if isinstance(need.satisfied_by, OutsideSet) or is_missing:
                needed_by[need.soname].add(draft.attr)
    sonames = {}
    for soname in sorted(needed_by):
        entry = find_external(soname, policy)
        distributions = find_distributions(soname, entry, policy)
        is_old = distributions is not None and is_old_library(distributions, policy)
        provider = (distributions or {}).get(NIXPKGS) or (entry.provider if entry else None)
        is_gone = entry is not None and distributions == {} and entry.owner != "python"
        sonames[soname] = ExternalSoname(
            owner="unknown" if entry is None or is_gone else entry.owner,
            provider=None if is_gone else provider,
            distributions=dict(distributions) if distributions and is_old else None,
            needed_by=tuple(sorted(needed_by[soname])),
        )
    return sonames


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


def _loading_rules(draft: Draft, spec: SetSpec) -> list[LoadedLibrary]:
    """Return policy's rules for libraries loaded at run time."""
    archive = draft.archive
    if archive is None or spec.platform.os != "linux":
        return []
    return [
        rule
        for rule in spec.policies.libraries.loaded
        if rule.package == draft.pname and is_within(archive.version, rule.versions)
    ]


def _loaded(libraries: Sequence[Provided], rules: Iterable[LoadedLibrary]) -> Iterator[Needed]:
    for rule in rules:
        for library in libraries:
            if not library.stub and stem_of(library.soname) == rule.by:
                need = _need(rule.loads, library.path, library.output, "dlopen")
                yield need.model_copy(update={"is_optional": rule.is_optional})


def _need(soname: str, path: str, output: OutputName, kind: Literal["needed", "dlopen"]) -> Needed:
    return Needed(soname=soname, by_path=path, output=output, satisfied_by=None, kind=kind)


def _library_depends(draft: Draft) -> Iterator[Depends]:
    """Yield a package's dependencies by libraries that it needs or is known to open."""
    for need in draft.needs:
        by = need.satisfied_by
        if isinstance(by, InSet) and by.attr != draft.attr:
            kind: Literal["runtime", "dlopen"] = "runtime" if need.kind == "needed" else "dlopen"
            yield Depends(attr=by.attr, output=by.output, kind=kind, is_optional=need.is_optional)


def _opened_depends(by: InSet, load: Opened) -> Depends:
    return Depends(attr=by.attr, output=by.output, kind="dlopen", is_optional=load.is_optional)


def _in_order(depends: Iterable[Depends]) -> tuple[Depends, ...]:
    return tuple(sorted(depends, key=lambda d: (d.attr, ORDER.index(d.output), d.kind)))


def warning(code: str, subject: str, text: str) -> Diagnostic:
    """Return a diagnostic for the maintainer of the set."""
    return Diagnostic(level="warning", code=code, subject=subject, text=text)


def note(code: str, subject: str, text: str) -> Diagnostic:
    """Return a diagnostic without consequences."""
    return Diagnostic(level="note", code=code, subject=subject, text=text)
