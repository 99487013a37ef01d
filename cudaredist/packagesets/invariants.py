"""Invariants of every package set, checked in the documents themselves.

`SET_INVARIANTS` are about one document, `RUN_INVARIANTS` about several that were made together.
I4, I7 and I9 need every file of the archives, and are in `pipeline.sets.file_invariants`. I16 to
I18 are not about documents, and tests show them. A set does not differ from itself (diff), another
redistributable's manifest changes only choices that require it, and none that is pinned, and `auto`
takes the newest release (build).

What is unknown breaks no invariant: a package that was not examined has no libraries to check.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from cudaredist.packagesets.coverage_invariant import check_coverage
from cudaredist.packagesets.libraries import key_of
from cudaredist.packagesets.metadata import sri_of
from cudaredist.packagesets.outputs import ORDER
from cudaredist.primitives import Platform, Version
from cudaredist.redists import CUDA
from cudaredist.schema.packageset import Flags, InSet, OutsideSet, PackageSet, Provided, SetPackage
from cudaredist.tables.gpus.capability import Capability

Broken: TypeAlias = tuple[str, str]
"""What breaks an invariant, and in what way."""
_About = TypeVar("_About")
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that breaks an invariant."""

    invariant: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant} {self.subject}: {self.text}"


@dataclass(frozen=True, slots=True)
class Invariant(Generic[_About, _Found]):
    """What always holds, in one sentence, and the function that finds where it does not."""

    rule: str
    check: Callable[[_About], Iterable[_Found]]


def check_set(package_set: PackageSet) -> list[Violation]:
    """Return what one document breaks."""
    return [
        Violation(name, subject, text)
        for name, invariant in SET_INVARIANTS.items()
        for subject, text in invariant.check(package_set)
    ]


def check_run(package_sets: Sequence[PackageSet]) -> list[list[Violation]]:
    """Return, for each of several documents, what it breaks beside the others."""
    found: list[list[Violation]] = [[] for _ in package_sets]
    for name, invariant in RUN_INVARIANTS.items():
        for position, (subject, text) in invariant.check(package_sets):
            found[position].append(Violation(name, subject, text))
    return found


def own_entries(package_set: PackageSet) -> Iterator[SetPackage]:
    """Yield the entries that are not other names of entries."""
    return (entry for entry in package_set.packages.values() if entry.alias_of is None)


def available_entries(package_set: PackageSet) -> Iterator[SetPackage]:
    """Yield the packages that are available, each once."""
    return (entry for entry in own_entries(package_set) if entry.status == "available")


def is_further_version(entry: SetPackage) -> bool:
    """Say whether a package stands beside the chosen version of itself, as cudnn_8_9 does."""
    return entry.attr != entry.pname


# -- entries and archives


def _entries(package_set: PackageSet) -> Iterator[Broken]:
    """I1; an alias is its target but for the name."""
    for name, entry in package_set.packages.items():
        if entry.attr != name:
            yield name, f"calls itself {entry.attr}"
        if entry.alias_of is not None:
            yield from _alias(name, entry, package_set.packages)
            continue
        if entry.status == "available" and entry.reasons:
            yield name, f"is available, with a reason against it: {entry.reasons[0].text}"
        if entry.status == "available" and entry.archive is None:
            yield name, "is available, without an archive"
        if entry.status != "available" and not entry.reasons:
            yield name, f"is {entry.status}, without a reason"
        if entry.status in {"unsupported", "foreign"} and entry.archive is not None:
            yield name, f"is {entry.status}, with an archive"


def _alias(name: str, entry: SetPackage, packages: Mapping[str, SetPackage]) -> Iterator[Broken]:
    target = packages.get(entry.alias_of or "")
    if target is None or target.alias_of is not None:
        yield name, f"is another name of {entry.alias_of}, which is no package of the set"
    elif entry.model_copy(update={"attr": target.attr, "alias_of": None}) != target:
        yield name, f"is another name of {entry.alias_of}, and differs from it"


def _archives(package_set: PackageSet) -> Iterator[Broken]:
    """I2; that the hash is one and the size positive or not known is the schema's."""
    serving = Platform(package_set.platform.redist_system).served_by
    for entry in own_entries(package_set):
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
    for entry in own_entries(package_set):
        declared = set(entry.outputs)
        if entry.outputs != tuple(name for name in ORDER if name in declared | {"out"}):
            yield entry.attr, f"declares {', '.join(entry.outputs)}, not in order from `out`"
        if entry.status not in {"available", "broken"} and entry.outputs != ("out",):
            yield entry.attr, f"is {entry.status}, and has other outputs than `out`"
        if entry.contents and entry.contents.keys() != declared:
            held = ", ".join(sorted(entry.contents))
            yield entry.attr, f"declares {', '.join(entry.outputs)}, and has contents of {held}"
        for name in sorted(declared - {"out", "dev"} if entry.status == "available" else ()):
            if name in entry.contents and entry.contents[name].files == 0:
                yield entry.attr, f"declares {name}, which is empty"
        named = {library.output for library in entry.provides} | {n.output for n in entry.needs}
        for name in sorted(named - declared):
            yield entry.attr, f"has libraries in {name}, which it does not declare"


def _propagation(package_set: PackageSet) -> Iterator[Broken]:
    """I5; whether static libraries and stubs go along is policy's, which no document holds."""
    for entry in own_entries(package_set):
        for output, brought in entry.propagates.items():
            for name in sorted({output, *brought} - set(entry.outputs)):
                yield entry.attr, f"{output} brings along {name}, which is not declared"
            if len(set(brought)) < len(brought):
                yield entry.attr, f"{output} brings an output along twice"
            for name in dict.fromkeys(brought):
                if output in entry.propagates.get(name, ()):
                    yield entry.attr, f"{output} and {name} bring each other along"


# -- libraries


def _libraries(package_set: PackageSet) -> Iterator[Broken]:
    """I6; what is loaded at run time may be missing, and a broken package says what it lacks."""
    yield from _unknown(package_set)
    for entry in available_entries(package_set):
        for need in entry.needs:
            about = f"{need.by_path} needs {need.soname}"
            match need.satisfied_by:
                case None:
                    if need.kind == "needed":
                        yield entry.attr, f"{about}, which nothing provides"
                case InSet() as holder:
                    lacking = _lacking(need.soname, holder, package_set)
                    if lacking is not None:
                        yield entry.attr, f"{about}, which {holder.attr} {lacking}"
                case OutsideSet(external=owner):
                    listed = package_set.external.get(need.soname)
                    if (
                        listed is None
                        or listed.owner != owner
                        or entry.attr not in listed.needed_by
                    ):
                        yield entry.attr, f"{about} of {owner}, which `external` does not say"


def _unknown(package_set: PackageSet) -> Iterator[Broken]:
    for soname, outside in package_set.external.items():
        unexplained = [
            name for name in outside.needed_by if not _is_explained(name, soname, package_set)
        ]
        if outside.owner == "unknown" and unexplained:
            yield soname, f"nothing known provides it; needed by {', '.join(unexplained)}"


def _lacking(soname: str, holder: InSet, package_set: PackageSet) -> str | None:
    """Say how a package falls short of having a library; None where it has it."""
    entry = package_set.packages.get(holder.attr)
    if entry is None or entry.status != "available":
        return "cannot provide, not being available"
    held = [p for p in entry.provides if p.output == holder.output and _is_found_by(p, soname)]
    if not held:
        return f"does not have in its {holder.output}"
    return "has as a stub only" if all(provided.stub for provided in held) else None


def _is_found_by(provided: Provided, soname: str) -> bool:
    """Say whether a library has a name: its soname, its file's, or a link's.

    Documents do not name links: they are taken to be what the file's name begins with.
    """
    key = key_of(soname)
    name = key_of(provided.path.rpartition("/")[2])
    return key in {key_of(provided.soname), name} or name.startswith(f"{key}.")


def _is_explained(name: str, soname: str, package_set: PackageSet) -> bool:
    """Say whether a package is broken because who has a library is not available."""
    entry = package_set.packages.get(name)
    return entry is not None and any(
        reason.subject == soname and reason.code == "dependency-unavailable"
        for reason in entry.reasons
    )


def _providers(package_set: PackageSet) -> Iterator[Broken]:
    """I8; several files of one package count once, and further versions serve only each other."""
    indexed = {
        (soname, p.attr, p.output, p.path, p.stub)
        for soname, providers in package_set.sonames.items()
        for p in providers
    }
    provided = {
        (p.soname, entry.attr, p.output, p.path, p.stub)
        for entry in available_entries(package_set)
        for p in entry.provides
    }
    for soname, attr, _, path, _ in sorted(indexed ^ provided):
        yield soname, f"the index of sonames and {attr} do not agree on {path}"
    holders: dict[str, set[str]] = defaultdict(set)
    for entry in available_entries(package_set):
        for library in entry.provides:
            if not library.stub and not is_further_version(entry):
                holders[key_of(library.soname)].add(entry.attr)
    for soname, attrs in sorted(holders.items()):
        if len(attrs) > 1:
            yield soname, f"is in {' and '.join(sorted(attrs))}"


def _run_paths(package_set: PackageSet) -> Iterator[Broken]:
    """I10; the compatibility package itself is the one that its libraries do not come before."""
    is_linux = Platform(package_set.platform.redist_system).os == "linux"
    for entry in own_entries(package_set):
        parts = [(part.attr, part.output) for part in entry.depends]
        insides = (need.satisfied_by for need in entry.needs)
        parts += [(part.attr, part.output) for part in insides if isinstance(part, InSet)]
        for attr in sorted({attr for attr, output in parts if output == "stubs"}):
            yield entry.attr, f"depends on the stubs of {attr}"
        needs_driver = any(n.satisfied_by == OutsideSet(external="driver") for n in entry.needs)
        if is_linux and needs_driver and not entry.driver_runpath:
            yield entry.attr, "needs the driver's libraries, and has no run path to them"
        if (entry.driver_runpath or entry.compat_runpath) and not is_linux:
            yield entry.attr, "has a run path, and its platform has none"
        if entry.compat_runpath and entry.status != "available":
            yield entry.attr, f"has the compatibility driver's run path, and is {entry.status}"
    without = [entry.attr for entry in available_entries(package_set) if not entry.compat_runpath]
    if any(entry.compat_runpath for entry in own_entries(package_set)) and len(without) > 1:
        names = ", ".join(without)
        yield "compat_runpath", f"some packages have it, and these do not: {names}"


def _closure(package_set: PackageSet) -> Iterator[Broken]:
    cuda = package_set.cuda
    for entry in available_entries(package_set):
        for part in entry.depends:
            other = package_set.packages.get(part.attr)
            if other is None or other.status != "available":
                yield entry.attr, f"depends on {part.attr}, which is not available"
            elif part.output not in other.outputs:
                yield entry.attr, f"depends on {part.output} of {part.attr}, which has no such"
        release = None if entry.release is None else Version.parse(entry.release)
        if release is not None and entry.redist == CUDA and release.line != cuda.major_minor:
            yield entry.attr, f"is of CUDA {entry.release}"
        if release is not None and release.suffix and str(release.suffix[0]) != cuda.major:
            yield entry.attr, f"{entry.release} is built for CUDA {release.suffix[0]}"
        variant = entry.archive.cuda_variant if entry.archive else None
        if variant is not None and variant.removeprefix("cuda").partition(".")[0] != cuda.major:
            yield entry.attr, f"its archive is the variant {variant}"


# -- capabilities, host compiler, what is never available


def _capabilities(package_set: PackageSet) -> Iterator[Broken]:
    """I12; the families that `arch_names` stand for are the table's, which no document holds."""
    flags = package_set.capabilities
    for name, listed in (("default", flags.default), ("effective", flags.effective)):
        beyond = [item for item in listed if item not in flags.supported]
        if beyond:
            yield f"capabilities.{name}", f"{', '.join(beyond)} are not supported"
    if flags.effective != (flags.requested or flags.default):
        yield "capabilities.effective", "are neither the requested nor the default ones"
    for name, expected in _flags_of(flags).items():
        if getattr(flags, name) != expected:
            yield f"capabilities.{name}", f"does not follow from {', '.join(flags.effective)}"


def _flags_of(flags: Flags) -> dict[str, object]:
    """Return the flags that follow from the effective capabilities.

    Worked out again rather than by what made them, which would agree with itself.
    """
    capabilities = [Capability.parse(name) for name in flags.effective]
    plain = [capability for capability in capabilities if capability.variant is None]
    portable = max(plain) if plain and flags.forward_compat else None
    numbers = [name.replace(".", "") for name in flags.effective]
    codes = [f"sm_{number}" for number in numbers]
    digits_of_plain = [str(capability).replace(".", "") for capability in plain]
    last = [f"compute_{number}" for number in digits_of_plain[-1:] if flags.forward_compat]
    gencode = [
        f"-gencode=arch=compute_{code.partition('_')[2]},code={code}" for code in (*codes, *last)
    ]
    ordered = [(c, str(c), str(c).replace(".", "")) for c in sorted(set(capabilities))]
    return {
        "forward_compat": flags.forward_compat and bool(plain),
        "real_arches": tuple(codes),
        "virtual_arches": tuple(f"compute_{number}" for number in numbers),
        "arches": (*codes, *last),
        "gencode": tuple(gencode),
        "gencode_string": " ".join(gencode),
        "cmake_cuda_architectures": ";".join(numbers),
        "cmake_architectures_real_virtual": ";".join(
            digits if c == portable else f"{digits}-real" for c, _, digits in ordered
        ),
        "torch_cuda_arch_list": ";".join(
            f"{text}+PTX" if c == portable else text for c, text, _ in ordered
        ),
    }


def _host_compiler(package_set: PackageSet) -> Iterator[Broken]:
    gcc = package_set.host_compiler.gcc
    if gcc is None:
        return
    low = 0 if gcc.min is None else gcc.min
    range_text = f"{gcc.min or 'any'} to {gcc.max or 'any'}"

    def fits(major: int) -> bool:
        return low <= major and (gcc.max is None or major <= gcc.max)

    if gcc.selected is not None and not fits(gcc.selected):
        yield "host_compiler.gcc", f"{gcc.selected} is selected, and nvcc accepts {range_text}"
    is_default_fine = gcc.default is not None and fits(gcc.default)
    if is_default_fine and gcc.selected != gcc.default:
        yield "host_compiler.gcc", f"{gcc.selected} is selected, and {gcc.default} would be fine"
    if gcc.uses_default != is_default_fine:
        yield "host_compiler.gcc", f"uses_default is wrong: nvcc accepts {range_text}"
    is_newer = gcc.default is None or (gcc.selected or 0) > gcc.default
    if package_set.host_compiler.cxx_runtime != ("selected" if is_newer else "default"):
        yield "host_compiler.cxx_runtime", "is not that of the newer compiler"


def _never_available(package_set: PackageSet) -> Iterator[Broken]:
    """I14; a name that is withheld is so in every version."""
    system = Platform(package_set.platform.redist_system).os
    entries = list(own_entries(package_set))
    withheld = {entry.pname for entry in entries if entry.status == "withheld"}
    for entry in entries:
        systems = {Platform(name).os for name in entry.platforms}
        is_elsewhere = bool(systems) and not systems & {"any", system}
        if entry.status == "available" and is_elsewhere:
            yield entry.attr, f"is available, and published for {', '.join(sorted(systems))} only"
        if entry.status == "available" and entry.pname in withheld:
            yield entry.attr, f"is available, and {entry.pname} is withheld"
        codes = {reason.code for reason in entry.reasons}
        if (entry.status == "foreign") != ("other-operating-system" in codes):
            yield entry.attr, f"is {entry.status}, and its reasons say otherwise"


# -- documents beside each other


def _same_names(package_sets: Sequence[PackageSet]) -> Iterator[tuple[int, Broken]]:
    """I15; channels do not publish the same packages."""
    names: dict[str, set[str]] = defaultdict(set)
    for package_set in package_sets:
        names[package_set.channel] |= package_set.packages.keys()
    for position, package_set in enumerate(package_sets):
        for name in sorted(names[package_set.channel] - package_set.packages.keys()):
            yield position, (name, "has no entry, and has one in another set")


def _explained_absence(package_sets: Sequence[PackageSet]) -> Iterator[tuple[int, Broken]]:
    available = {entry.attr: s for s in package_sets for entry in available_entries(s)}
    for position, package_set in enumerate(package_sets):
        for entry in own_entries(package_set):
            other = available.get(entry.attr)
            if other is not None and entry.status != "available" and not entry.reasons:
                where = f"CUDA {other.cuda.release} on {other.platform.redist_system}"
                yield position, (entry.attr, f"is available in {where}, and not here for no reason")


def _set_names(package_sets: Sequence[PackageSet]) -> Iterator[tuple[int, Broken]]:
    """I25; sets for other platforms or capabilities may have the same names."""
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
            yield position, (name, f"is the name of the set for CUDA {newest[key]} as well")


SET_INVARIANTS: Mapping[str, Invariant[PackageSet, Broken]] = {
    "I1": Invariant("A name has one entry, with an archive if available, else reasons.", _entries),
    "I2": Invariant("Archives are for the platform, with right addresses and hashes.", _archives),
    "I3": Invariant("Outputs stand in order; none but `out` and `dev` is empty.", _outputs),
    "I5": Invariant("Outputs bring declared others along, once, one way only.", _propagation),
    "I6": Invariant("A library needed is in the set, and no stub, or has an owner.", _libraries),
    "I8": Invariant("One package has the library of a soname.", _providers),
    "I10": Invariant("Nothing depends on stubs; run paths are where they must be.", _run_paths),
    "I11": Invariant("What is depended on is available, and all is for one CUDA.", _closure),
    "I12": Invariant("Capabilities are supported, and the flags follow from them.", _capabilities),
    "I13": Invariant("nvcc accepts the compiler, the default one if it can.", _host_compiler),
    "I14": Invariant("What is withheld or foreign is never available.", _never_available),
    "I26": Invariant("Coverage is complete and agrees with its counts.", check_coverage),
}
"""By name; with `FILE_INVARIANTS` of the pipeline all that one document is held to."""

RUN_INVARIANTS: Mapping[str, Invariant[Sequence[PackageSet], tuple[int, Broken]]] = {
    "I15": Invariant("All sets of a channel have the same names.", _same_names),
    "I19": Invariant("What a set lacks and another has lacks for a reason.", _explained_absence),
    "I25": Invariant("Sets of different CUDA releases have different names.", _set_names),
}
"""By name; each finding comes with the position of the document that it is in."""

NEED_FEATURES = ("I3", "I4", "I6", "I8", "I10", "I11")
"""Those that say less, or nothing, of a package that was not examined."""
