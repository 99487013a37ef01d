"""The releases that nixpkgs' table gets."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from cudaredist.nixpkgs.machines import MACHINES, similar_machines
from cudaredist.nixpkgs.releases import (
    Cell,
    EvaluatedReleases,
    Labels,
    SetLabels,
    SetReleases,
    Versions,
    cells_of,
    find_choice,
    is_downgrade,
    is_older,
    labels_by_set,
    model_of,
    rejection,
    set_versions,
)
from cudaredist.primitives import natural_order


class Skipped(NamedTuple):
    """A release that is older than nixpkgs', and therefore not exported."""

    cell: Cell
    old: str
    new: str


class Target(NamedTuple):
    """The releases that nixpkgs' table gets."""

    versions: Versions
    skipped: tuple[Skipped, ...] = ()
    changed: frozenset[Cell] = frozenset()
    """The cells with a new label.

    The labels of a new package set are compared with those of the set before it.
    """

    def label(self, cell: Cell) -> str | None:
        """Return the label of a cell, or None."""
        return self.versions.get(cell.attribute, {}).get(cell.redist, {}).get(cell.machine)


def target_versions(
    sets: Sequence[SetReleases],
    others: Sequence[SetReleases],
    theirs: EvaluatedReleases,
    *,
    only: str | None = None,
    allow_downgrade: bool = False,
) -> Target:
    """Return the labels of nixpkgs' table after the update.

    `others` are the sets that are built for machines without one. A new set starts with the labels
    of the set before it. `only` selects a set.
    """
    known = labels_by_set(theirs)
    current: dict[str, SetLabels] = {**known}
    updates: list[SetUpdate] = []
    selected = set_versions(sets)
    for attribute in _attributes_to_update(selected, known, only):
        is_new = attribute not in known
        before = model_of(attribute, current) if is_new else attribute
        update = SetUpdate(
            attribute,
            before=current.get(before, {}),
            selected=selected[attribute],
            sets=sets,
            others=others,
            allow_downgrade=allow_downgrade or is_new,
        )
        updates.append(update)
        current[attribute] = update.labels
    return Target(
        versions={update.attribute: update.labels for update in updates},
        skipped=tuple(release for update in updates for release in update.skipped),
        changed=frozenset(cell for update in updates for cell in update.changed),
    )


def _attributes_to_update(
    selected: Iterable[str], known: Mapping[str, object], only: str | None
) -> Iterator[str]:
    """Yield the selected set, or all that are not older than nixpkgs' oldest set."""
    oldest = min(map(natural_order, known), default=natural_order(""))
    for attribute in selected:
        if attribute == only or (only is None and natural_order(attribute) >= oldest):
            yield attribute


@dataclass(frozen=True)
class SetUpdate:
    """The update of a package set in nixpkgs' table."""

    attribute: str
    before: SetLabels
    """The labels in nixpkgs. For a new set, those of the set before it."""
    selected: SetLabels
    """The labels of our sets."""
    sets: Sequence[SetReleases]
    """Our sets, with the reasons for their labels."""
    others: Sequence[SetReleases]
    """Sets that are built for machines without one."""
    allow_downgrade: bool

    @cached_property
    def labels(self) -> SetLabels:
        """The labels after the update."""
        return {redist: self._row(redist) for redist in sorted({*self.selected, *self.before})}

    @cached_property
    def skipped(self) -> tuple[Skipped, ...]:
        """Our releases that are older than nixpkgs'."""
        if self.allow_downgrade:
            return ()
        downgrades = []
        for cell, label in cells_of({self.attribute: self.selected}):
            old = self._old_label(cell)
            if old is not None and is_downgrade(label, old, find_choice(self.sets, cell)):
                downgrades.append(Skipped(cell, old, label))
        return tuple(downgrades)

    @property
    def changed(self) -> Iterator[Cell]:
        """The cells with a new label."""
        for cell, label in cells_of({self.attribute: self.labels}):
            if label != self._old_label(cell):
                yield cell

    def _old_label(self, cell: Cell) -> str | None:
        return self.before.get(cell.redist, {}).get(cell.machine)

    def _row(self, redist: str) -> Labels:
        """Return the new labels of a redistributable.

        Machines with a set of ours get its label, unless it is skipped. Others follow a machine.
        """
        skipped = {release.cell for release in self.skipped}
        before = self.before.get(redist, {})
        own = {
            machine: label
            for machine, label in self.selected.get(redist, {}).items()
            if Cell(self.attribute, redist, machine) not in skipped
        }
        row = {**before, **own}
        for machine in MACHINES:
            followed = None if machine in own else self._followed_machine(machine, before, own)
            if followed is not None:
                cell = Cell(self.attribute, redist, machine)
                row[machine] = self._fitting_label(cell, own[followed])
        return row

    def _followed_machine(self, machine: str, before: Labels, own: Labels) -> str | None:
        """Return the machine that a machine without a set follows, or None.

        It is the most similar one with a label of ours that had the same label before.
        """
        for similar in similar_machines(machine, self.attribute):
            if similar in own and before.get(similar) == before.get(machine):
                return similar
        return None

    def _fitting_label(self, cell: Cell, label: str) -> str:
        """Return the label of the followed machine, unless policy rejects it for this one.

        Then it is the newest label that fits, or that in nixpkgs if this is newer.
        """
        choice = find_choice(self.others, cell)
        if choice is None or choice.release is None or rejection(choice, label) is None:
            return label
        old = self._old_label(cell)
        return old if old is not None and is_older(choice.release, old) else choice.release
