"""Tests of the releases that nixpkgs' table gets."""

from collections.abc import Mapping

import pytest

from cudaredist.formats.packageset import ChosenRelease, RejectedRelease
from cudaredist.nixpkgs.machines import MACHINES, ORIN, SERVER_ARM, THOR, X86
from cudaredist.nixpkgs.rejection_comments import rejection_comments
from cudaredist.nixpkgs.releases import Cell, SetReleases
from cudaredist.nixpkgs.target import Skipped, Target, target_versions
from cudaredist.sets.version_choice import RefusedPin

SET = "cudaPackages_13_3"


def chosen(label: str | None, **rejected: bool) -> ChosenRelease:
    """Return a choice. Keywords are newer releases, with whether they are unpublished."""
    newer = tuple(
        RejectedRelease(release=name.strip("_").replace("_", "."), reason="old", is_unpublished=own)
        for name, own in rejected.items()
    )
    return ChosenRelease(release=label, mode="auto", newer_rejected=newer)


def releases(*machines: str, name: str = SET, **choices: str | ChosenRelease) -> SetReleases:
    redists = {
        redist: chosen(choice) if isinstance(choice, str) else choice
        for redist, choice in choices.items()
    }
    return SetReleases(name, "13.3.1", machines, redists)


def table(name: str = SET, **labels: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return nixpkgs' table with the same labels for all machines."""
    return {machine: {name: dict(labels)} for machine in MACHINES}


def cudnn_of(target: Target, name: str = SET) -> Mapping[str, str]:
    return target.versions[name]["cudnn"]


def test_machines_without_set_follow_machine_with_same_label() -> None:
    theirs = table(cudnn="9.1.0")
    theirs[ORIN][SET]["cudnn"] = "9.0.0"
    target = target_versions([releases(X86, cudnn="9.2.0")], [], theirs)
    assert cudnn_of(target) == {X86: "9.2.0", SERVER_ARM: "9.2.0", ORIN: "9.0.0", THOR: "9.2.0"}
    assert target.changed == {Cell(SET, "cudnn", machine) for machine in (X86, SERVER_ARM, THOR)}


@pytest.mark.parametrize(("name", "thor"), [(SET, "9.3.0"), ("cudaPackages_12_9", "9.4.0")])
def test_thor_follows_orin_before_cuda_13(name: str, thor: str) -> None:
    labels = {SERVER_ARM: "9.3.0", ORIN: "9.4.0"}
    sets = [releases(machine, name=name, cudnn=label) for machine, label in labels.items()]
    assert cudnn_of(target_versions(sets, [], table(name, cudnn="9.1.0")), name)[THOR] == thor


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (chosen("9.1.5", _9_2_0=False), "9.1.5"),
        (chosen("9.0.0", _9_2_0=False), "9.1.0"),
        (chosen("9.1.5", _9_3_0=False), "9.2.0"),
        (chosen(None, _9_2_0=False), "9.2.0"),
    ],
)
def test_rejected_label_is_not_followed(other: ChosenRelease, expected: str) -> None:
    sets, others = [releases(X86, cudnn="9.2.0")], [releases(THOR, cudnn=other)]
    labels = cudnn_of(target_versions(sets, others, table(cudnn="9.1.0")))
    assert (labels[SERVER_ARM], labels[THOR]) == ("9.2.0", expected)


@pytest.mark.parametrize(
    ("choice", "allow_downgrade", "label"),
    [
        (chosen("9.0.0"), False, "9.1.0"),
        (chosen("9.0.0"), True, "9.0.0"),
        (chosen("9.0.0", _9_1_0=False), False, "9.1.0"),
        (chosen("9.0.0", _9_1_0=True), False, "9.0.0"),
        (chosen("9.2.0"), False, "9.2.0"),
    ],
)
def test_older_release_is_skipped_unless_newer_is_unpublished(
    choice: ChosenRelease,
    allow_downgrade: bool,  # noqa: FBT001 - a column of the table
    label: str,
) -> None:
    sets = [releases(X86, cudnn=choice)]
    theirs = table(cudnn="9.1.0")
    target = target_versions(sets, [], theirs, allow_downgrade=allow_downgrade)
    assert set(cudnn_of(target).values()) == {label}
    skipped = Skipped(Cell(SET, "cudnn", X86), "9.1.0", "9.0.0")
    assert target.skipped == ((skipped,) if label == "9.1.0" else ())


def test_new_set_starts_with_labels_of_set_before_it() -> None:
    theirs = table("cudaPackages_13_2", cudnn="9.3.0", tensorrt="10.7.0")
    sets = [
        releases(X86, cudnn="9.2.0"),
        releases(X86, name="cudaPackages_13_4", cutensor="2.1.0"),
    ]
    target = target_versions(sets, [], theirs)
    assert set(cudnn_of(target).values()) == {"9.2.0"}
    newest = target.versions["cudaPackages_13_4"]
    assert newest["tensorrt"] == dict.fromkeys(MACHINES, "10.7.0")
    assert newest["cudnn"] == cudnn_of(target)
    assert target.skipped == ()
    assert {cell.redist for cell in target.changed} == {"cudnn", "cutensor"}


def test_set_without_a_release_in_its_name_is_not_the_oldest() -> None:
    sets = [releases(X86, name="cudaPackages_12_0", cudnn="9.2.0"), releases(X86, cudnn="9.2.0")]
    theirs = table(cudnn="9.1.0")
    for machine_sets in theirs.values():
        machine_sets["cudaPackagesOld"] = {"cudnn": "9.0.0"}
    assert target_versions(sets, [], theirs).versions.keys() == {SET}


def test_old_set_is_added_only_by_name() -> None:
    sets = [releases(X86, name="cudaPackages_12_0", cudnn="9.2.0"), releases(X86, cudnn="9.2.0")]
    theirs = table(cudnn="9.1.0")
    assert target_versions(sets, [], theirs).versions.keys() == {SET}
    for name in (SET, "cudaPackages_12_0"):
        assert target_versions(sets, [], theirs, only_sets=[name]).versions.keys() == {name}


@pytest.mark.parametrize(
    ("is_published", "label", "elsewhere", "expected"),
    [
        (False, "9.1.0", "9.1.0", "9.1.0"),
        (True, "9.1.0", "9.1.0", "9.4.0"),
        (True, "9.1.0", "9.2.0", "9.1.0"),
    ],
    ids=["unpublished", "broken", "broken and older in nixpkgs"],
)
def test_refused_pin_keeps_label(
    is_published: bool,  # noqa: FBT001 - a column of the table
    label: str,
    elsewhere: str,
    expected: str,
) -> None:
    pinned = ChosenRelease(release="9.4.0", mode="pinned", newer_rejected=())
    choice = pinned if is_published else chosen("9.3.0", _9_4_0=True)
    refused = {"cudnn": RefusedPin("9.4.0", "too new", is_published=is_published)}
    package_set = releases(X86, cudnn=choice)._replace(refused_pins=refused)
    theirs = table(cudnn=label)
    for sets in theirs.values():
        sets["cudaPackages_13_4"] = {"cudnn": elsewhere}
    target = target_versions([package_set], [], theirs)
    assert cudnn_of(target)[X86] == expected
    assert target.skipped == ()
    texts = [warning.text for warning in target.pin_warnings if warning.cell.machine == X86]
    subject = f"{SET}.cudnn for {X86} is {expected}"
    words = ", although policy calls it broken" if expected == "9.4.0" else ", not 9.4.0"
    assert texts == [f"{subject}{words}: too new"]


def test_last_set_of_machine_counts() -> None:
    sets = [releases(X86, SERVER_ARM, cudnn="9.2.0"), releases(X86, cudnn="9.3.0")]
    labels = cudnn_of(target_versions(sets, [], table(cudnn="9.1.0")))
    assert (labels[X86], labels[SERVER_ARM]) == ("9.3.0", "9.2.0")


def test_rejection_is_a_comment_of_first_set_that_keeps_its_label() -> None:
    rejecting = chosen("9.2.0", _9_3_0=False)
    sets = [
        releases(X86, cudnn=rejecting),
        releases(X86, name="cudaPackages_13_4", cudnn=rejecting),
        releases(X86, name="cudaPackages_13_5", cudnn="9.3.0"),
    ]
    comments = rejection_comments(sets, target_versions(sets, [], table(cudnn="9.1.0")))
    assert comments == {SET: ["# - cudnn:", "#   - 9.3.0: old, so we keep 9.2.0"]}
    # A release that no set has needs no comment.
    assert rejection_comments(sets, target_versions(sets[:2], [], table(cudnn="9.1.0"))) == {}
