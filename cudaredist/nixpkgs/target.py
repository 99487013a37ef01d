"""The releases that nixpkgs' table gets."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cudaredist.formats.packageset import ChosenRelease
from cudaredist.nixpkgs.machines import (
    FIRST_WITH_THOR,
    MACHINES,
    ORIN,
    SERVER_ARM,
    SIMILAR,
    THOR,
    X86,
)
from cudaredist.nixpkgs.releases import (
    Labels,
    SetReleases,
    Versions,
    is_downgrade,
    is_older,
    labels_of,
    model_of,
    rejection,
    set_versions,
)
from cudaredist.primitives import natural_order


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
    current: dict[str, Mapping[str, Labels]] = {name: labels_of(theirs, name) for name in known}
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
            new = _moved(old, own, choices, has_thor=attribute >= FIRST_WITH_THOR)
            rows[redist] = new
            changed |= {(attribute, redist, m) for m in new if new[m] != old.get(m)}
        versions[attribute] = current[attribute] = rows
    return Target(versions, tuple(skipped), frozenset(changed))


def _moved(
    old: Labels, own: Labels, choices: Mapping[str, ChosenRelease], *, has_thor: bool
) -> dict[str, str]:
    """Return the new labels of all machines."""
    new = {**old, **own}
    for machine in MACHINES:
        order = SIMILAR[machine]
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
