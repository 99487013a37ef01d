"""Comments on newer releases that do not fit a package set."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cudaredist.exporters.nix_code import nix_comment
from cudaredist.formats.packageset import RejectedRelease
from cudaredist.nixpkgs.releases import Cell, Release, SetReleases, is_older, released
from cudaredist.nixpkgs.target import Target
from cudaredist.primitives import natural_order


class _Rejection(NamedTuple):
    """A newer release that does not fit a package set, and the label that stays."""

    cell: Cell
    label: str
    newer: RejectedRelease

    @property
    def release(self) -> Release:
        """The newer release."""
        return Release(self.cell.redist, self.newer.release)

    @property
    def words(self) -> str:
        """The reason, without the list of published variants."""
        reason = re.split("; published: |, not for CUDA ", self.newer.reason)[0]
        return f"{self.newer.release}: {reason}, so we keep {self.label}"


def rejection_comments(sets: Iterable[SetReleases], target: Target) -> dict[str, list[str]]:
    """Return comments with the reasons of rejected releases by package set.

    They are about releases of nixpkgs' table, if this update adds the release or changes the label
    of the rejecting set. The first set with a reason has the comment. A pinned release that a set
    cannot use is a warning instead.
    """
    in_table = set(released(target.versions))
    added = {Release(cell.redist, target.label(cell) or "") for cell in target.changed}
    written: set[tuple[str, str]] = set()
    explained: set[tuple[str, str, str]] = set()
    comments: dict[str, dict[str, list[str]]] = {}
    for rejection in _rejections(sets, target):
        attribute, redist, _ = rejection.cell
        is_new = rejection.cell in target.changed or rejection.release in added
        is_newer = is_older(rejection.label, rejection.newer.release)
        # The newest release that does not fit explains the label. Older ones need no sentence.
        is_written = (redist, rejection.words) in written
        is_explained = (attribute, redist, rejection.label) in explained
        if is_new and is_newer and rejection.release in in_table and not is_explained:
            explained.add((attribute, redist, rejection.label))
            if is_written:
                continue
            written.add((redist, rejection.words))
            comments.setdefault(attribute, {}).setdefault(redist, []).append(rejection.words)
    return {attribute: list(_comment_lines(redists)) for attribute, redists in comments.items()}


def _rejections(sets: Iterable[SetReleases], target: Target) -> Iterator[_Rejection]:
    """Yield the rejected releases of each set's machines, by set and redistributable."""
    warned = {warning.cell for warning in target.pin_warnings}
    for package_set in sorted(sets, key=lambda package_set: natural_order(package_set.attribute)):
        for redist, choice in sorted(package_set.redists.items()):
            for machine in package_set.machines:
                cell = Cell(package_set.attribute, redist, machine)
                label = None if cell in warned else target.label(cell)
                if label is not None:
                    yield from (_Rejection(cell, label, newer) for newer in choice.newer_rejected)


def _comment_lines(redists: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the lines of the comment above a set."""
    for redist, texts in redists.items():
        yield f"# - {redist}:"
        for text in texts:
            first, *rest = nix_comment(f"- {text}")
            yield f"#   {first.removeprefix('# ')}"
            yield from (f"#     {line.removeprefix('# ')}" for line in rest)
