"""Invariants of every package set, checked in the documents themselves.

`SET_INVARIANTS` check one document, and `RUN_INVARIANTS` check the documents of one run together.
I4, I7 and I9 need every file of the archives, so `files` checks them. I16 to I18 are
properties of the commands, checked by tests: a set has no difference from itself (diff); another
redistributable's manifest changes only choices that depend on it; `auto` selects the newest.

Unknown facts break no invariant: a package that was not examined has no libraries to check.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from cudaredist.formats.packageset import (
    Depends,
    InSet,
    OutsideSet,
    PackageSet,
    Provided,
    SetPackage,
)
from cudaredist.formats.tables import span
from cudaredist.primitives import Platform, Version, sri_of
from cudaredist.redists import CUDA
from cudaredist.sets.file_outputs import ORDER
from cudaredist.sets.invariants.coverage import check_coverage
from cudaredist.sets.invariants.flags import check_flags
from cudaredist.sets.library_names import key_of

Broken: TypeAlias = tuple[str, str]
"""The subject that breaks an invariant, and the problem."""
_Documents = TypeVar("_Documents")
_Violation = TypeVar("_Violation")


class Violation(NamedTuple):
    """One subject that breaks an invariant."""

    invariant: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant} {self.subject}: {self.text}"


class Invariant(NamedTuple, Generic[_Documents, _Violation]):
    """A rule, and the function that finds its violations."""

    rule: str
    check: Callable[[_Documents], Iterable[_Violation]]


def check_set(package_set: PackageSet) -> list[Violation]:
    """Return the violations in one document."""
    return find_violations(SET_INVARIANTS, package_set)


def find_violations(
    invariants: Mapping[str, Invariant[_Documents, Broken]], documents: _Documents
) -> list[Violation]:
    """Return the violations of some invariants."""
    return [
        Violation(name, subject, text)
        for name, invariant in invariants.items()
        for subject, text in invariant.check(documents)
    ]


def check_run(package_sets: Sequence[PackageSet]) -> list[list[Violation]]:
    """Return the violations in each document compared to the others."""
    violations: list[list[Violation]] = [[] for _ in package_sets]
    for name, invariant in RUN_INVARIANTS.items():
        for position, (subject, text) in invariant.check(package_sets):
            violations[position].append(Violation(name, subject, text))
    return violations


def is_additional_version(entry: SetPackage) -> bool:
    """Check if a package is an additional version, such as cudnn_8_9."""
    return entry.attr != entry.pname


# -- entries and archives


def _entries(package_set: PackageSet) -> Iterator[Broken]:
    """Check I1. An alias must equal its target except in name."""
    for name, entry in package_set.packages.items():
        if entry.attr != name:
            yield name, f"has the attribute {entry.attr}"
        if entry.alias_of is not None:
            yield from _alias(name, entry, package_set.packages)
            continue
        if entry.status == "available" and entry.reasons:
            yield name, f"is available, but has a reason against it: {entry.reasons[0].text}"
        if entry.status == "available" and entry.archive is None:
            yield name, "is available, but has no archive"
        if entry.status != "available" and not entry.reasons:
            yield name, f"is {entry.status}, but has no reason"
        if entry.status in {"unsupported", "foreign"} and entry.archive is not None:
            yield name, f"is {entry.status}, but has an archive"


def _alias(name: str, entry: SetPackage, packages: Mapping[str, SetPackage]) -> Iterator[Broken]:
    target = packages.get(entry.alias_of or "")
    if target is None or target.alias_of is not None:
        yield name, f"is an alias of {entry.alias_of}, which is not a package of the set"
    elif entry.model_copy(update={"attr": target.attr, "alias_of": None}) != target:
        yield name, f"is an alias of {entry.alias_of}, but differs from it"


def _archives(package_set: PackageSet) -> Iterator[Broken]:
    """Check I2. The schema already validates hashes and sizes."""
    serving = Platform(package_set.platform.redist_system).served_by
    for entry in package_set.own.values():
        archive = entry.archive
        if archive is None:
            continue
        if archive.sri != sri_of(archive.sha256):
            yield entry.attr, f"{archive.sri} is not the hash {archive.sha256}"
        path = archive.relative_path.rpartition("../")[2]
        if archive.url is not None and not archive.url.endswith(f"/{path}"):
            yield entry.attr, f"{archive.url} does not end with {path}"
        if archive.platform not in serving:
            yield entry.attr, f"its archive is for {archive.platform}"


# -- outputs


def _outputs(package_set: PackageSet) -> Iterator[Broken]:
    for entry in package_set.own.values():
        declared, listed = set(entry.outputs), ", ".join(entry.outputs)
        if entry.outputs != tuple(name for name in ORDER if name in declared | {"out"}):
            yield entry.attr, f"declares {listed}, which is not in order from `out`"
        if entry.status not in {"available", "broken"} and entry.outputs != ("out",):
            yield entry.attr, f"is {entry.status}, but has outputs other than `out`"
        if entry.contents and entry.contents.keys() != declared:
            outputs = ", ".join(sorted(entry.contents))
            yield entry.attr, f"declares {listed}, but has contents of {outputs}"
        for name in sorted(declared - {"out", "dev"} if entry.status == "available" else ()):
            if name in entry.contents and entry.contents[name].files == 0:
                yield entry.attr, f"declares {name}, which is empty"
        named = {library.output for library in entry.provides} | {
            need.output for need in entry.needs
        }
        for name in sorted(named - declared):
            yield entry.attr, f"has libraries in {name}, which it does not declare"


def _propagation(package_set: PackageSet) -> Iterator[Broken]:
    """Check I5. Policy decides about static libraries and stubs."""
    for entry in package_set.own.values():
        for output, brought in entry.propagates.items():
            for name in sorted({output, *brought} - set(entry.outputs)):
                yield entry.attr, f"{output} propagates {name}, which is not declared"
            if len(set(brought)) < len(brought):
                yield entry.attr, f"{output} propagates an output twice"
            for name in dict.fromkeys(brought):
                if output in entry.propagates.get(name, ()):
                    yield entry.attr, f"{output} and {name} propagate each other"


# -- libraries


def _libraries(package_set: PackageSet) -> Iterator[Broken]:
    """Check I6. Libraries loaded at run time may be missing."""
    yield from _unknown(package_set)
    for entry in package_set.available.values():
        for need in entry.needs:
            about = f"{need.by_path} needs {need.soname}"
            match need.satisfied_by:
                case None:
                    if need.kind == "needed":
                        yield entry.attr, f"{about}, which has no provider"
                case InSet() as provider:
                    problem = _provider_problem(need.soname, provider, package_set)
                    if problem is not None:
                        yield entry.attr, f"{about}, but {provider.attr} {problem}"
                case OutsideSet(external=owner):
                    listed = package_set.external.get(need.soname)
                    if not (listed and listed.owner == owner and entry.attr in listed.needed_by):
                        yield entry.attr, f"{about} of {owner}, which is not in `external`"


def _unknown(package_set: PackageSet) -> Iterator[Broken]:
    for soname, outside in package_set.external.items():
        names = outside.needed_by if outside.owner == "unknown" else ()
        unexplained = [name for name in names if not _is_explained(name, soname, package_set)]
        if unexplained:
            yield soname, f"has no known provider, but is needed by {', '.join(unexplained)}"


def _provider_problem(soname: str, provider: InSet, package_set: PackageSet) -> str | None:
    """Return the reason against a provider, or None."""
    entry = package_set.packages.get(provider.attr)
    if entry is None or entry.status != "available":
        return "is not available"
    libraries = [p for p in entry.provides if p.output == provider.output and _has_name(p, soname)]
    if not libraries:
        return f"does not have it in {provider.output}"
    return "has only a stub of it" if all(library.stub for library in libraries) else None


def _has_name(provided: Provided, soname: str) -> bool:
    """Check if a library has this soname, file name or link.

    Documents do not list links. Any prefix of the file name that ends before a dot counts as one.
    """
    key = key_of(soname)
    name = key_of(provided.path.rpartition("/")[2])
    return key in {key_of(provided.soname), name} or name.startswith(f"{key}.")


def _is_explained(name: str, soname: str, package_set: PackageSet) -> bool:
    """Check if a package is broken for an unavailable provider."""
    entry = package_set.packages.get(name)
    return entry is not None and any(
        reason.subject == soname and reason.code == "dependency-unavailable"
        for reason in entry.reasons
    )


def _providers(package_set: PackageSet) -> Iterator[Broken]:
    """Check I8. Additional versions and repetitions in one package are allowed."""
    indexed = {
        (soname, p.attr, p.output, p.path, p.stub)
        for soname, providers in package_set.sonames.items()
        for p in providers
    }
    provided = {
        (p.soname, entry.attr, p.output, p.path, p.stub)
        for entry in package_set.available.values()
        for p in entry.provides
    }
    for soname, attr, _, path, _ in sorted(indexed ^ provided):
        yield soname, f"the soname index and {attr} do not agree on {path}"
    providers_of: dict[str, set[str]] = defaultdict(set)
    for entry in package_set.available.values():
        for library in entry.provides:
            if not library.stub and not is_additional_version(entry):
                providers_of[key_of(library.soname)].add(entry.attr)
    for soname, attrs in sorted(providers_of.items()):
        if len(attrs) > 1:
            yield soname, f"has several providers: {' and '.join(sorted(attrs))}"


def _run_paths(package_set: PackageSet) -> Iterator[Broken]:
    """Check I10. The compatibility package needs no run path to itself."""
    is_linux = Platform(package_set.platform.redist_system).os == "linux"
    for entry in package_set.own.values():
        providers = (need.satisfied_by for need in entry.needs)
        parts: list[Depends | InSet] = [*entry.depends]
        parts += (part for part in providers if isinstance(part, InSet))
        for attr in sorted({part.attr for part in parts if part.output == "stubs"}):
            yield entry.attr, f"depends on the stubs of {attr}"
        needs_driver = any(
            need.satisfied_by == OutsideSet(external="driver") for need in entry.needs
        )
        if is_linux and needs_driver and not entry.driver_runpath:
            yield entry.attr, "needs the driver's libraries, but has no run path to them"
        if (entry.driver_runpath or entry.compat_runpath) and not is_linux:
            yield entry.attr, "has a run path, but its platform has no run paths"
        if entry.compat_runpath and entry.status != "available":
            yield entry.attr, f"has the compatibility driver's run path, but is {entry.status}"
    without = [entry.attr for entry in package_set.available.values() if not entry.compat_runpath]
    if any(entry.compat_runpath for entry in package_set.own.values()) and len(without) > 1:
        names = ", ".join(without)
        yield "compat_runpath", f"some packages have it, but these do not: {names}"


def _opened(package_set: PackageSet) -> Iterator[Broken]:
    """Check I29. The owner of a library outside the set is enough."""
    for entry in package_set.available.values():
        opened = {(part.attr, part.output): part for part in entry.depends if part.kind == "dlopen"}
        for load in entry.opens:
            about = f"{load.by_path} opens {load.soname}"
            match load.satisfied_by:
                case None:
                    if not load.is_optional:
                        yield entry.attr, f"{about}, which has no provider and is not optional"
                case InSet(attr=attr, output=output) if attr != entry.attr:
                    part = opened.get((attr, output))
                    if part is None:
                        yield entry.attr, f"{about}, but does not depend on {output} of {attr}"
                    elif part.is_optional and not load.is_optional:
                        yield entry.attr, f"{about}, but {attr} is optional"
                case _:
                    pass


def _closure(package_set: PackageSet) -> Iterator[Broken]:
    cuda = package_set.cuda
    for entry in package_set.available.values():
        for part in entry.depends:
            other = package_set.packages.get(part.attr)
            if other is None or other.status != "available":
                yield entry.attr, f"depends on {part.attr}, which is not available"
            elif part.output not in other.outputs:
                yield entry.attr, f"depends on {part.output} of {part.attr}, which does not exist"
        release = None if entry.release is None else Version.parse(entry.release)
        if release is not None and entry.redist == CUDA and release.line != cuda.major_minor:
            yield entry.attr, f"is of CUDA {entry.release}"
        if release is not None and release.suffix and str(release.suffix[0]) != cuda.major:
            yield entry.attr, f"{entry.release} is built for CUDA {release.suffix[0]}"
        variant = entry.archive.cuda_variant if entry.archive else None
        if variant is not None and variant.removeprefix("cuda").partition(".")[0] != cuda.major:
            yield entry.attr, f"has an archive of the variant {variant}"


# -- host compiler, withheld packages


def _host_compiler(package_set: PackageSet) -> Iterator[Broken]:
    gcc = package_set.host_compiler.gcc
    if gcc is None:
        return
    range_text = span(gcc.min, gcc.max)
    if gcc.selected is not None and not gcc.accepts(gcc.selected):
        yield "host_compiler.gcc", f"{gcc.selected} is selected, but nvcc accepts {range_text}"
    is_default_fine = gcc.default is not None and gcc.accepts(gcc.default)
    if is_default_fine and gcc.selected != gcc.default:
        yield "host_compiler.gcc", f"{gcc.selected} is selected, but {gcc.default} is accepted"
    if gcc.uses_default != is_default_fine:
        yield "host_compiler.gcc", f"uses_default is wrong: nvcc accepts {range_text}"
    is_newer = gcc.default is None or (gcc.selected or 0) > gcc.default
    if package_set.host_compiler.cxx_runtime != ("selected" if is_newer else "default"):
        yield "host_compiler.cxx_runtime", "is not from the newer compiler"


def _never_available(package_set: PackageSet) -> Iterator[Broken]:
    """Check I14. If one version is withheld, all must be. No reason names a package in the set."""
    system = Platform(package_set.platform.redist_system).os
    entries = list(package_set.own.values())
    withheld = {entry.pname for entry in entries if entry.status == "withheld"}
    present = {entry.attr for entry in package_set.available.values()} | package_set.sonames.keys()
    for entry in entries:
        systems = {Platform(name).os for name in entry.platforms}
        is_elsewhere = bool(systems) and not systems & {"any", system}
        if entry.status == "available" and is_elsewhere:
            yield entry.attr, f"is available, but published only for {', '.join(sorted(systems))}"
        if entry.status == "available" and entry.pname in withheld:
            yield entry.attr, f"is available, but {entry.pname} is withheld"
        codes = {reason.code for reason in entry.reasons}
        if (entry.status == "foreign") != ("other-operating-system" in codes):
            yield entry.attr, f"is {entry.status}, but its reasons disagree"
        for reason in entry.reasons if entry.status == "withheld" else ():
            if reason.subject in present:
                yield entry.attr, f"is withheld for lack of {reason.subject}, but the set has it"


# -- several documents


_NO_ENTRY = "has no entry, but has one in another set; build both sets from the same data"


def _same_names(package_sets: Sequence[PackageSet]) -> Iterator[tuple[int, Broken]]:
    """Check I15 by channel, because their packages differ."""
    names: dict[str, set[str]] = defaultdict(set)
    for package_set in package_sets:
        names[package_set.channel] |= package_set.packages.keys()
    for position, package_set in enumerate(package_sets):
        for name in sorted(names[package_set.channel] - package_set.packages.keys()):
            yield position, (name, _NO_ENTRY)


def _explained_absence(package_sets: Sequence[PackageSet]) -> Iterator[tuple[int, Broken]]:
    available = {entry.attr: s for s in package_sets for entry in s.available.values()}
    for position, package_set in enumerate(package_sets):
        for entry in package_set.own.values():
            other = available.get(entry.attr)
            if other is not None and entry.status != "available" and not entry.reasons:
                place = f"CUDA {other.cuda.release} on {other.platform.redist_system}"
                yield position, (entry.attr, f"is available in {place}, but has no reason here")


def _set_names(package_sets: Sequence[PackageSet]) -> Iterator[tuple[int, Broken]]:
    """Check I25. Other platforms or capabilities may use the same names."""
    newest: dict[tuple[object, ...], Version] = {}
    claims = []
    for position, package_set in enumerate(package_sets):
        flags, release = package_set.capabilities, Version.parse(package_set.cuda.release)
        system = package_set.platform.redist_system
        made_for = (package_set.channel, system, flags.requested, flags.forward_compat)
        for name in (package_set.cuda.attribute, *package_set.cuda.aliases):
            newest[made_for, name] = max(release, newest.get((made_for, name), release))
            claims.append((position, name, (made_for, name), release))
    for position, name, key, release in claims:
        if release != newest[key]:
            yield position, (name, f"is also the name of the set for CUDA {newest[key]}")


SET_INVARIANTS: Mapping[str, Invariant[PackageSet, Broken]] = {
    "I1": Invariant("A name has one entry, with an archive or with reasons.", _entries),
    "I2": Invariant("Archives fit the platform and have correct URLs and hashes.", _archives),
    "I3": Invariant("Outputs are in order; only `out` and `dev` may be empty.", _outputs),
    "I5": Invariant("Outputs propagate other declared outputs, once and one way.", _propagation),
    "I6": Invariant("A needed library is in the set (not a stub) or has an owner.", _libraries),
    "I8": Invariant("Only one package provides the library of a soname.", _providers),
    "I10": Invariant("Nothing depends on stubs, and all required run paths exist.", _run_paths),
    "I11": Invariant("Dependencies are available, and for the same CUDA release.", _closure),
    "I12": Invariant("Capabilities are supported, and flags agree with them.", check_flags),
    "I13": Invariant("nvcc accepts the compiler, the default one if possible.", _host_compiler),
    "I14": Invariant("The reasons of withheld and foreign packages are true.", _never_available),
    "I29": Invariant("Opened libraries are dependencies, optional or have an owner.", _opened),
    "I26": Invariant("Coverage is complete and agrees with its counts.", check_coverage),
}
"""By name. `FILE_INVARIANTS` has the other invariants of one document."""

RUN_INVARIANTS: Mapping[str, Invariant[Sequence[PackageSet], tuple[int, Broken]]] = {
    "I15": Invariant("All sets of a channel have the same names.", _same_names),
    "I19": Invariant("If only another set has a package, there is a reason.", _explained_absence),
    "I25": Invariant("Sets of different CUDA releases have different names.", _set_names),
}
"""By name. Each violation includes the position of its document."""

NEED_FEATURES = ("I3", "I4", "I6", "I8", "I10", "I11", "I29")
"""Invariants that check less, or nothing, if a package was not examined."""
