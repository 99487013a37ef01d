"""The releases of CUDA package sets in nixpkgs, by machine.

nixpkgs selects releases with conditions on the machine. A release is changed in the form of the
file, so that its conditions and comments stay.
"""

import contextlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from cudaredist.exporters.nix_code import (
    NixExpression,
    NixValue,
    nix_binding,
    nix_comment,
    nix_string,
)
from cudaredist.formats.packageset import ChosenRelease, PackageSet, RejectedRelease
from cudaredist.nixpkgs.nix_file import NixFile
from cudaredist.primitives import Version, natural_order
from cudaredist.redists import REDISTS
from cudaredist.tables.gpus.capability import Capability

IN_NIXPKGS = REDISTS.keys() - {"nccl", "nvshmem"}
"""Redistributables with manifests in nixpkgs, which builds NCCL and NVSHMEM from source."""

X86, SERVER_ARM = "linux-x86_64", "linux-sbsa"
ORIN, THOR = "jetson-orin", "jetson-thor"
MACHINES = (X86, SERVER_ARM, ORIN, THOR)
JETSON_PLATFORM = "linux-aarch64"
JETSONS = {"7.2": ORIN, "8.7": ORIN, "10.1": THOR, "11.0": THOR}
"""Machines of the capabilities of Jetsons. nixpkgs has the same releases for Xavier and Orin."""
_SIMILAR = {
    X86: (SERVER_ARM, THOR, ORIN),
    SERVER_ARM: (X86, THOR, ORIN),
    ORIN: (THOR, SERVER_ARM, X86),
    THOR: (SERVER_ARM, ORIN, X86),
}
"""Other machines, the most similar one first. Before CUDA 13, Thor is most similar to Orin."""

_FIRST_WITH_THOR = "cudaPackages_13"

_JETSON_TEST, _ARM_TEST = "hasJetsonCudaCapability", "hostPlatform.isAarch64"
_ORIN_TEST = "hasPreThorJetsonCudaCapability"
_ORIN_CALL = f"{_ORIN_TEST} requestedJetsonCudaCapabilities"
_NAMES = r"(?:(?!\binherit\b)[^;])*"
"""The names before another one in an `inherit`."""
_OWN_NAMES = r"(?:(?!\binherit\b)[^;()])*"
"""The same names without those of another set."""
_DEFINITIONS = {
    "hasPreThorJetsonCudaCapability": (
        "hasPreThorJetsonCudaCapability = lib.any (",
        "  name:",
        '  lib.versionOlder name "10.1" && _cuda.db.cudaCapabilityToInfo.${name}.isJetson or false',
        ") (config.cudaCapabilities or [ ]);",
    ),
    "hasJetsonCudaCapability": (
        "hasJetsonCudaCapability = lib.any (",
        "  name: _cuda.db.cudaCapabilityToInfo.${name}.isJetson or false",
        ") (config.cudaCapabilities or [ ]);",
    ),
    "hostPlatform": ("hostPlatform = callPackage ({ stdenv }: stdenv.hostPlatform) { };",),
}
"""The variables of the conditions."""

Labels: TypeAlias = Mapping[str, str]
"""Labels by machine."""
Versions: TypeAlias = Mapping[str, Mapping[str, Labels]]
"""Labels by package set, redistributable and machine."""


class SetReleases(NamedTuple):
    """The releases of a package set for some machines."""

    attribute: str
    cuda: str
    machines: tuple[str, ...]
    redists: Mapping[str, ChosenRelease]

    @property
    def line(self) -> str:
        """The CUDA minor release."""
        return ".".join(self.cuda.split(".")[:2])


class Skipped(NamedTuple):
    """A release that is older than nixpkgs', and therefore not exported."""

    attribute: str
    redist: str
    machine: str
    old: str
    new: str


class Target(NamedTuple):
    """The releases that nixpkgs' table gets."""

    versions: Versions
    skipped: tuple[Skipped, ...] = ()
    changed: frozenset[tuple[str, str, str]] = frozenset()
    """Package sets, redistributables and machines with a new label.

    The labels of a new package set are compared with those of the set before it.
    """


def releases_of(package_set: PackageSet) -> SetReleases | None:
    """Return a set's releases, or None for wheels and platforms that nixpkgs does not have."""
    machines = machines_of(package_set.platform.redist_system, package_set.capabilities.requested)
    if package_set.channel != "redist" or not machines:
        return None
    cuda = package_set.cuda
    return SetReleases(cuda.attribute, cuda.release, machines, package_set.redists)


def machines_of(platform: str, requested: Iterable[str]) -> tuple[str, ...]:
    """Return the machines of a platform with the requested capabilities."""
    if platform == X86:
        return (X86,)
    if platform == JETSON_PLATFORM:
        return (ORIN,)
    if platform != SERVER_ARM:
        return ()
    bases = [str(Capability.parse(name).base) for name in requested]
    machines = {JETSONS.get(base, SERVER_ARM) for base in bases} or {SERVER_ARM}
    return tuple(machine for machine in MACHINES if machine in machines)


def set_versions(sets: Iterable[SetReleases]) -> Versions:
    """Return the labels of package sets, the last set of a machine first.

    Skips redistributables without a manifest in nixpkgs.
    """
    versions: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for package_set in sets:
        for redist, release in package_set.redists.items():
            if release.release is not None and redist in IN_NIXPKGS:
                labels = dict.fromkeys(package_set.machines, release.release)
                versions[package_set.attribute][redist] |= labels
    return {
        attribute: dict(sorted(versions[attribute].items()))
        for attribute in sorted(versions, key=natural_order)
    }


def released(versions: Versions) -> list[tuple[str, str]]:
    """Return each redistributable and label, sorted."""
    redists = [item for of_set in versions.values() for item in of_set.items()]
    return sorted({(redist, label) for redist, labels in redists for label in labels.values()})


def is_older(new: object, old: object) -> bool:
    """Check if a release is older than nixpkgs'. Only NVIDIA's labels have an order."""
    with contextlib.suppress(ValueError):
        return Version.parse(str(new)) < Version.parse(str(old))
    return False


def is_downgrade(new: object, old: object, choice: ChosenRelease | None) -> bool:
    """Check if nixpkgs has a newer release that is published for the set."""
    reason = rejection(choice, str(old)) if choice else None
    return is_older(new, old) and not (reason and reason.is_unpublished)


def rejection(choice: ChosenRelease, label: str) -> RejectedRelease | None:
    """Return a newer release that was rejected, or None."""
    return next((entry for entry in choice.newer_rejected if entry.release == label), None)


# -- the labels that nixpkgs gets


def target_versions(
    sets: Sequence[SetReleases],
    others: Sequence[SetReleases],
    theirs: Mapping[str, Mapping[str, Mapping[str, str]]],
    *,
    only: str | None = None,
    allow_downgrade: bool = False,
) -> Target:
    """Return the labels of nixpkgs' table after the export.

    A machine without a set moves with the machine that had the same label, unless `others`, the
    sets that are built for the comparison, reject the new label. A new set starts with the labels
    of the set before it. Sets older than nixpkgs' oldest set are skipped unless `only` names one.
    """
    known = {name for rows in theirs.values() for name in rows}
    oldest = min(map(natural_order, known), default=natural_order(""))
    current: dict[str, Mapping[str, Labels]] = {name: _labels_of(theirs, name) for name in known}
    versions: dict[str, Mapping[str, Labels]] = {}
    skipped: list[Skipped] = []
    changed: set[tuple[str, str, str]] = set()
    selected = {(s.attribute, machine): s.redists for s in sets for machine in s.machines}
    rejections = {(s.attribute, machine): s.redists for s in others for machine in s.machines}
    for attribute, redists in set_versions(sets).items():
        if only is None and natural_order(attribute) < oldest:
            continue
        if only is not None and attribute != only:
            continue
        is_new = attribute not in known
        model = model_of(attribute, current) if is_new else attribute
        before = current.get(model, {})
        rows: dict[str, Labels] = {}
        for redist in sorted({*redists, *before}):
            old = before.get(redist, {})
            own: dict[str, str] = {}
            for machine, label in redists.get(redist, {}).items():
                own_choice = selected[attribute, machine][redist]
                may_replace = is_new or allow_downgrade
                if may_replace or not is_downgrade(label, old.get(machine), own_choice):
                    own[machine] = label
                else:
                    skipped.append(Skipped(attribute, redist, machine, old[machine], label))
            choices = {}
            for machine in MACHINES:
                choice = rejections.get((attribute, machine), {}).get(redist)
                if choice is not None:
                    choices[machine] = choice
            new = _moved(old, own, choices, has_thor=attribute >= _FIRST_WITH_THOR)
            rows[redist] = new
            changed |= {(attribute, redist, m) for m in new if new[m] != old.get(m)}
        versions[attribute] = current[attribute] = rows
    return Target(versions, tuple(skipped), frozenset(changed))


def model_of(attribute: str, known: Iterable[str]) -> str:
    """Return the set before an attribute, else the first set, else an empty text."""
    names = sorted((name for name in known if name.count("_") > 1), key=natural_order)
    older = [name for name in names if natural_order(name) < natural_order(attribute)]
    return older[-1] if older else next(iter(names), "")


def _labels_of(
    theirs: Mapping[str, Mapping[str, Mapping[str, str]]], attribute: str
) -> dict[str, dict[str, str]]:
    """Return the labels of a set in nixpkgs by redistributable and machine."""
    labels: dict[str, dict[str, str]] = defaultdict(dict)
    for machine, rows in theirs.items():
        for redist, label in rows.get(attribute, {}).items():
            labels[redist][machine] = label
    return labels


def _moved(
    old: Labels, own: Labels, choices: Mapping[str, ChosenRelease], *, has_thor: bool
) -> dict[str, str]:
    """Return the new labels of all machines."""
    new = {**old, **own}
    for machine in MACHINES:
        order = _SIMILAR[machine]
        if machine == THOR and not has_thor:
            order = (ORIN, SERVER_ARM, X86)
        similar = (m for m in order if m in own and old.get(m) == old.get(machine))
        model = next(similar, None)
        if machine in own or model is None:
            continue
        new[machine] = own[model]
        choice = choices.get(machine)
        if choice and choice.release and rejection(choice, own[model]):
            label = old.get(machine, choice.release)
            new[machine] = label if is_older(choice.release, label) else choice.release
    return new


# -- code


def release_code(labels: Labels, orin_test: str = _ORIN_TEST) -> NixValue:
    """Return a redistributable's release, with conditions if machines differ."""
    fallback = next(labels[machine] for machine in MACHINES if machine in labels)
    server = labels.get(SERVER_ARM, fallback)
    thor = labels.get(THOR, labels.get(ORIN, server))
    orin = labels.get(ORIN, thor)
    tests = []
    if orin != thor:
        tests.append((orin_test, orin))
    if thor != server:
        tests.append((_JETSON_TEST, thor))
    if server != fallback:
        tests.append((_ARM_TEST, server))
    if not tests:
        return fallback
    branches = [f"if {test} then\n  {nix_string(label)}\nelse" for test, label in tests]
    code = f"{' '.join(branches)}\n  {nix_string(fallback)}"
    return NixExpression(code if len(branches) > 1 else " ".join(code.split()))


def merge_versions(
    file: NixFile,
    target: Versions,
    theirs: Mapping[str, Mapping[str, Mapping[str, str]]],
    comments: Mapping[str, Sequence[str]],
) -> None:
    """Add the missing package sets, and change the releases that differ.

    Adds comments above the sets with changed releases.
    """
    before = file.text
    current: dict[str, Mapping[str, Labels]] = {
        name: _labels_of(theirs, name) for rows in theirs.values() for name in rows
    }
    for attribute, redists in target.items():
        is_new = attribute not in current
        model = _add_set(file, attribute, current) if is_new else attribute
        old = current.get(model, {})
        current[attribute] = redists
        changes = {r: labels for r, labels in redists.items() if labels != old.get(r, {})}
        for redist, labels in changes.items():
            _put_release(file, (attribute, redist), old.get(redist, {}), labels, redists)
        if changes or is_new:
            _inherit_tests(file, attribute)
            _add_comment(file, attribute, comments.get(attribute, ()))
    for name, lines in _DEFINITIONS.items():
        if file.text.count(name) > before.count(name) and not _defines(file, name):
            start, let, end = file.text.partition("let\n")
            file.text = "".join([start, let, *(f"  {line}\n" for line in lines), "\n", end])


def _defines(file: NixFile, name: str) -> bool:
    inherited = re.search(rf"\binherit\b{_NAMES}\s{re.escape(name)}\b", file.text)
    return inherited is not None or file.find(name) is not None


def _put_release(
    file: NixFile,
    names: tuple[str, str],
    old: Labels,
    new: Labels,
    siblings: Iterable[str],
) -> None:
    """Set a release. Keeps the conditions of the file if they fit."""
    binding = file.find(*names)
    if binding is None:
        attribute, redist = names
        lines = nix_binding(redist, _code(file, new))
        file.add([attribute], redist, lines, siblings=siblings)
        return
    pairs = {(label, new[machine]) for machine, label in old.items()}
    renamed = dict(pairs)
    # The conditions fit if each old label becomes one new label, which differs from all others.
    is_one_to_one = len(pairs) == len(renamed) == len(set(new.values()))
    if old and is_one_to_one:
        file.rename_strings(binding, renamed)
    else:
        file.put(names, _code(file, new))


def _code(file: NixFile, labels: Labels) -> NixValue:
    """Return a release in the form of a file that has a function for Jetsons before Thor."""
    return release_code(labels, _ORIN_CALL if _ORIN_CALL in file.text else _ORIN_TEST)


def _inherit_tests(file: NixFile, attribute: str) -> None:
    """Add the variables of new conditions to a set's own `inherit`, if it has one."""
    binding = file.find(attribute)
    if binding is None:
        return
    code = file.text[binding.value : binding.end]
    match = re.search(
        rf"\binherit\s*\(\s*{re.escape(attribute)}\.backendStdenv\s*\)({_NAMES});", code
    )
    if match is None:
        return
    names = match[1].split()
    body = code[match.end() :]
    variables = ("hasJetsonCudaCapability", "hostPlatform", "requestedJetsonCudaCapabilities")
    missing = [v for v in variables if re.search(rf"\b{v}\b", body) and v not in names]
    unused = [v for v in names if not re.search(rf"\b{re.escape(v)}\b", body)]
    if missing:
        inherited = " ".join(sorted({*names, *missing} - set(unused)))
        start = binding.value + match.start(1)
        file.replace(start, binding.value + match.end(1), f" {inherited}")


def _add_comment(file: NixFile, attribute: str, lines: Sequence[str]) -> None:
    """Add lines of a comment above a set."""
    binding = file.find(attribute)
    if binding is not None and lines:
        start = file.text.rfind("\n", 0, binding.start) + 1
        file.replace(start, start, file.indented(lines, binding.start) + "\n")


def _add_set(file: NixFile, attribute: str, known: Iterable[str]) -> str:
    """Add a package set with the code of the one before it, without its comments.

    Returns that set, or an empty text if the file has no set.
    """
    models = {
        name: binding
        for name in known
        if (binding := file.find(name)) and "{" in file.text[binding.value : binding.end]
    }
    model = model_of(attribute, models)
    if not model:
        file.add([], attribute, [f"{attribute} = packageSet {{", "};"])
        return model
    binding = models[model]
    code = file.without_comments(binding.start, binding.end)
    code = re.sub(rf"(?<![\w'-]){re.escape(model)}(?![\w'-])", attribute, code)
    file.add_after(binding, [code], gap="\n\n")
    inherited = re.search(
        rf"\binherit\b{_OWN_NAMES}?(?<!\s)(\s++){re.escape(model)}(?=[\s;])", file.text
    )
    if inherited:
        file.replace(inherited.end(), inherited.end(), inherited[1] + attribute)
    return model


def rejection_comments(sets: Iterable[SetReleases], target: Target) -> dict[str, list[str]]:
    """Return comments with the reasons of rejected releases by package set.

    They are about releases of nixpkgs' table, if this export adds the release or changes the label
    of the rejecting set. The first set with a reason has the comment.
    """
    versions = target.versions
    released_labels = set(released(versions))
    added = {(redist, versions[name][redist][m]) for name, redist, m in target.changed}
    comments: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    written: set[tuple[str, str]] = set()
    for package_set in sorted(sets, key=lambda s: natural_order(s.attribute)):
        attribute = package_set.attribute
        for redist, choice in sorted(package_set.redists.items()):
            for machine in package_set.machines:
                label = versions.get(attribute, {}).get(redist, {}).get(machine)
                if label is None:
                    continue
                for entry in choice.newer_rejected:
                    release = (redist, entry.release)
                    is_new = (attribute, redist, machine) in target.changed or release in added
                    reason = re.split("; published: |, not for CUDA ", entry.reason)[0]
                    text = f"{entry.release}: {reason}, so we keep {label}"
                    is_used = release in released_labels and is_older(label, entry.release)
                    if is_new and is_used and (redist, text) not in written:
                        written.add((redist, text))
                        comments[attribute][redist].append(text)
    return {attribute: list(_comment_lines(redists)) for attribute, redists in comments.items()}


def _comment_lines(redists: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for redist, texts in redists.items():
        yield f"# - {redist}:"
        for text in texts:
            first, *rest = nix_comment(f"- {text}")
            yield f"#   {first.removeprefix('# ')}"
            yield from (f"#     {line.removeprefix('# ')}" for line in rest)
