"""The releases that nixpkgs' table gets."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from cudaredist.nixpkgs.machines import MACHINES, similar_machines
from cudaredist.nixpkgs.records import Records
from cudaredist.nixpkgs.releases import (
    Cell,
    EvaluatedReleases,
    Labels,
    SetLabels,
    SetReleases,
    Versions,
    cells_of,
    find_choice,
    find_set,
    is_downgrade,
    is_older,
    labels_by_set,
    model_of,
    newest_labels,
    rejection,
    set_versions,
)
from cudaredist.primitives import natural_order
from cudaredist.redists import CUDA
from cudaredist.sets.version_choice import RefusedPin


class Skipped(NamedTuple):
    """A release that is older than nixpkgs', and therefore not exported."""

    cell: Cell
    old: str
    new: str


class Recorded(NamedTuple):
    """A label of ours that nixpkgs does not get, because of a record."""

    cell: Cell
    old: str | None
    new: str


class PinWarning(NamedTuple):
    """A cell that does not get the pinned release, or gets it although policy calls it broken."""

    cell: Cell
    label: str | None
    """The label of the cell after the update."""
    pin: str
    reason: str

    @property
    def text(self) -> str:
        """The warning."""
        attribute, redist, machine = self.cell
        subject = f"{attribute}.{redist} for {machine}"
        if self.label is None:
            return f"{subject} is not added: {self.reason}"
        if self.label == self.pin:
            return f"{subject} is {self.pin}, although policy calls it broken: {self.reason}"
        return f"{subject} is {self.label}, not {self.pin}: {self.reason}"


class Target(NamedTuple):
    """The releases that nixpkgs' table gets."""

    versions: Versions
    skipped: tuple[Skipped, ...] = ()
    changed: frozenset[Cell] = frozenset()
    """The cells with a new label.

    The labels of a new package set are compared with those of the set before it.
    """
    pin_warnings: tuple[PinWarning, ...] = ()
    recorded: tuple[Recorded, ...] = ()

    def label(self, cell: Cell) -> str | None:
        """Return the label of a cell, or None."""
        return self.versions.get(cell.attribute, {}).get(cell.redist, {}).get(cell.machine)


def target_versions(
    sets: Sequence[SetReleases],
    others: Sequence[SetReleases],
    theirs: EvaluatedReleases,
    *,
    only_sets: Collection[str] = (),
    only_redists: Collection[str] = (),
    allow_downgrade: bool = False,
    records: Records | None = None,
) -> Target:
    """Return the labels of nixpkgs' table after the update.

    `others` are the sets that are built for machines without one. A new set starts with the labels
    of the set before it. `only_sets` selects sets, and `only_redists` the rows of redistributables
    in nixpkgs' sets. `records` are the decisions in nixpkgs' table to keep a value.
    """
    records = records or Records()
    known = labels_by_set(theirs)
    selected = {
        # A set with the CUDA release only has no other products.
        attribute: rows if known.get(attribute, {}).keys() != {CUDA} else {CUDA: rows[CUDA]}
        for attribute, rows in set_versions(sets).items()
    }
    if only_redists:
        known = _rows_of(only_redists, known)
        ours = _rows_of(only_redists, selected)
        selected = {name: rows for name, rows in ours.items() if name in known or not known}
    current: dict[str, SetLabels] = {**known}
    updates: list[SetUpdate] = []
    for attribute in _attributes_to_update(selected, known, only_sets):
        is_new = attribute not in known
        before = model_of(attribute, current) if is_new else attribute
        update = SetUpdate(
            attribute,
            before=current.get(before, {}),
            selected=selected[attribute],
            sets=sets,
            others=others,
            newest=newest_labels(known),
            is_new=is_new,
            allow_downgrade=allow_downgrade,
            records=records,
        )
        updates.append(update)
        if update.labels:
            current[attribute] = update.labels
    return Target(
        versions={update.attribute: update.labels for update in updates if update.labels},
        skipped=tuple(release for update in updates for release in update.skipped),
        changed=frozenset(cell for update in updates for cell in update.changed),
        pin_warnings=tuple(warning for update in updates for warning in update.pin_warnings),
        recorded=tuple(cell for update in updates for cell in update.recorded),
    )


def _rows_of(names: Container[str], versions: Versions) -> dict[str, SetLabels]:
    """Return the rows of redistributables by package set."""
    return {
        attribute: {redist: labels for redist, labels in redists.items() if redist in names}
        for attribute, redists in versions.items()
    }


def _attributes_to_update(
    selected: Iterable[str], known: Mapping[str, object], only_sets: Collection[str]
) -> Iterator[str]:
    """Yield the given sets, or all that are not older than nixpkgs' oldest set.

    Sets without a CUDA release in their names, such as `cudaPackagesOld`, do not count.
    """
    versioned = (name for name in known if "_" in name)
    oldest = min(map(natural_order, versioned), default=natural_order(""))
    for attribute in selected:
        if attribute in only_sets or (not only_sets and natural_order(attribute) >= oldest):
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
    newest: Labels
    """The newest label of each redistributable in nixpkgs' table."""
    is_new: bool
    """Whether nixpkgs does not have the set."""
    allow_downgrade: bool
    records: Records

    @cached_property
    def labels(self) -> SetLabels:
        """The labels after the update. A new set does not get rows with a record."""
        rows = dict(self._proposed)
        for redist in self._kept_rows:
            del rows[redist]
            if not self.is_new and redist in self.before:
                rows[redist] = self.before[redist]
        return rows

    @property
    def recorded(self) -> Iterator[Recorded]:
        """Our labels that differ from those with a record."""
        for redist in sorted(self._kept_rows):
            old = {} if self.is_new else self.before.get(redist, {})
            for machine, label in self._proposed[redist].items():
                if label != old.get(machine):
                    cell = Cell(self.attribute, redist, machine)
                    yield Recorded(cell, old.get(machine), label)

    @cached_property
    def _proposed(self) -> SetLabels:
        """The labels without records."""
        return {redist: self._row(redist) for redist in self._redists}

    @property
    def _redists(self) -> list[str]:
        """The redistributables of the set, before and after the update."""
        return sorted({*self.selected, *self.before})

    @cached_property
    def _kept_rows(self) -> frozenset[str]:
        """The redistributables whose rows have a record."""
        return frozenset(
            redist
            for redist in self._redists
            if self.records.keeps("releases", self.attribute, redist)
        )

    @cached_property
    def skipped(self) -> tuple[Skipped, ...]:
        """Our releases that are older than nixpkgs'."""
        if self.allow_downgrade or self.is_new:
            return ()
        downgrades = []
        for cell, label in cells_of({self.attribute: self.selected}):
            old = self._old_label(cell)
            if old is None or self._refuses_pin(cell) or cell.redist in self._kept_rows:
                continue
            if is_downgrade(label, old, find_choice(self.sets, cell)):
                downgrades.append(Skipped(cell, old, label))
        return tuple(downgrades)

    @property
    def changed(self) -> Iterator[Cell]:
        """The cells with a new label."""
        for cell, label in cells_of({self.attribute: self.labels}):
            if label != self._old_label(cell):
                yield cell

    @property
    def pin_warnings(self) -> Iterator[PinWarning]:
        """The cells without the pinned release, and those with a broken one."""
        skipped = {release.cell for release in self.skipped}
        for redist, pin in self._pins.items():
            for machine in MACHINES:
                cell = Cell(self.attribute, redist, machine)
                label = self.labels.get(redist, {}).get(machine)
                reason = self._reason_against_pin(cell)
                if cell not in skipped and reason is not None:
                    yield PinWarning(cell, label, pin, reason)

    @cached_property
    def _pins(self) -> dict[str, str]:
        """The pinned releases of the set, by redistributable."""
        pins = {}
        for package_set in self.sets:
            if package_set.attribute == self.attribute:
                for redist, choice in package_set.redists.items():
                    if choice.mode == "pinned" and choice.release is not None and redist != CUDA:
                        pins[redist] = choice.release
                pins |= {redist: pin.label for redist, pin in package_set.refused_pins.items()}
        return {redist: pin for redist, pin in sorted(pins.items()) if redist in self.selected}

    def _reason_against_pin(self, cell: Cell) -> str | None:
        """Return the reason why a cell does not get the pinned release, or should not get it."""
        label = self.labels.get(cell.redist, {}).get(cell.machine)
        is_pin = label == self._pins[cell.redist]
        if cell.redist in self._kept_rows:
            return None if is_pin else "a comment keeps it"
        if find_set(self.sets, cell.attribute, cell.machine) is not None:
            refused = self._refused_pin(cell)
            if refused is None or (is_pin and not refused.is_published):
                return None
            return refused.reason
        if label is None or is_pin:
            return None
        with_set = [machine for machine in MACHINES if find_set(self.sets, cell.attribute, machine)]
        followed = self._followed_machine(cell.machine, self.before.get(cell.redist, {}), with_set)
        words = f"there is no package set for {cell.machine}"
        if followed is None:
            return words
        reason = self._reason_against_pin(cell._replace(machine=followed))
        return words if reason is None else f"it follows {followed}: {reason}"

    def _old_label(self, cell: Cell) -> str | None:
        return self.before.get(cell.redist, {}).get(cell.machine)

    def _row(self, redist: str) -> Labels:
        """Return the new labels of a redistributable.

        Machines with a set of ours get its label, unless it is skipped, or a pinned release is
        refused. Others follow a machine.
        """
        skipped = {release.cell for release in self.skipped}
        before = self.before.get(redist, {})
        kept = {m for m in MACHINES if self._refuses_pin(Cell(self.attribute, redist, m))}
        own = {
            machine: label
            for machine, label in self.selected.get(redist, {}).items()
            if machine not in kept and Cell(self.attribute, redist, machine) not in skipped
        }
        row = {**before, **own}
        for machine in MACHINES:
            if machine in own or machine in kept:
                continue
            followed = self._followed_machine(machine, before, {*own, *kept})
            if followed in own:
                cell = Cell(self.attribute, redist, machine)
                row[machine] = self._fitting_label(cell, own[followed])
        return row

    def _refuses_pin(self, cell: Cell) -> bool:
        """Check if a cell keeps its label, because its set cannot use the pinned release.

        A release that policy calls broken is only refused if nixpkgs has an older release for the
        set than elsewhere, so that its maintainers have the same opinion. If no release is
        published for the machine, its label does not matter.
        """
        refused, old = self._refused_pin(cell), self._old_label(cell)
        has_release = cell.machine in self.selected.get(cell.redist, {})
        if refused is None or old is None or self.is_new or not has_release:
            return False
        return not refused.is_published or is_older(old, self.newest[cell.redist])

    def _refused_pin(self, cell: Cell) -> RefusedPin | None:
        package_set = find_set(self.sets, cell.attribute, cell.machine)
        return None if package_set is None else package_set.refused_pins.get(cell.redist)

    def _followed_machine(
        self, machine: str, before: Labels, machines: Container[str]
    ) -> str | None:
        """Return the machine that a machine without a set follows, or None.

        It is the most similar one of the given machines that had the same label before.
        """
        for similar in similar_machines(machine, self.attribute):
            if similar in machines and before.get(similar) == before.get(machine):
                return similar
        return None

    def _fitting_label(self, cell: Cell, label: str) -> str:
        """Return the label of the followed machine, unless policy rejects it for this one.

        Then it is the newest label that fits, or that in nixpkgs if this is newer.
        """
        old = self._old_label(cell)
        own = find_choice(self.sets, cell)
        if own is not None and old is not None:
            reasons = [rejection(own, label), rejection(own, old)]
            # If no release is published for the machine, its label does not matter.
            is_missing = any(reason is not None and reason.is_unpublished for reason in reasons)
            if reasons[0] is not None and (own.release is not None or not is_missing):
                return old
        choice = find_choice(self.others, cell)
        if choice is None or choice.release is None or rejection(choice, label) is None:
            return label
        return old if old is not None and is_older(choice.release, old) else choice.release
