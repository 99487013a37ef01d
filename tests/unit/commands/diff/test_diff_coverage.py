"""Tests of diff: capabilities that packages gained and lost."""

import pytest
from support.factory import feature_document
from support.set_inputs import LINUX, SBSA, Release, build, cuda, set_data_of, with_code

from cudaredist.commands.diff.comparable import Comparable
from cudaredist.commands.diff.compare import compare, may_break
from cudaredist.commands.diff.read_sides import of_features, of_package_set
from cudaredist.commands.diff.report import Delta
from cudaredist.commands.diff.text import diff_text
from cudaredist.formats.features import ArchiveFeatures, Features, PackageFeatures

DATA = set_data_of(cuda())


def side(features: dict[str, ArchiveFeatures]) -> Comparable:
    """Return the side of a release with given archives by platform."""
    platforms = list(features)
    release = Release(
        "cutensor",
        "2.2.0",
        {"libcutensor": platforms},
        {f"libcutensor/{platform}": archive for platform, archive in features.items()},
    )
    archives = tuple(release.examined.values())
    packages = {"libcutensor": PackageFeatures(version="2.2.0", archives=archives)}
    document = Features.model_validate(
        feature_document("2.2.0", "cutensor", packages=packages), strict=False
    )
    return of_features("x", document, DATA.coverage_rules)


def deltas(old: dict[str, ArchiveFeatures], new: dict[str, ArchiveFeatures]) -> list[Delta]:
    return [
        delta
        for package in compare(side(old), side(new)).packages
        for delta in package.deltas
        if delta.field == "coverage"
    ]


def lines(old: dict[str, int], new: dict[str, int]) -> list[str]:
    report = compare(side({LINUX: with_code(old)}), side({LINUX: with_code(new)}))
    return [line.strip() for line in diff_text(report) if "coverage" in line]


PLACE = "coverage [linux-x86_64]"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            {"sm_70 sm_80": 160},
            {"sm_80": 300, "sm_70": 4},
            [
                f"{PLACE}: -7.0 -7.5 (native 160 of 160 modules -> partial: 0 of 1 files, "
                "native 4 of 300 modules)"
            ],
        ),
        (
            {"sm_80 compute_90": 5},
            {"sm_80 sm_120": 5},
            [
                f"{PLACE}: -9.0 -10.0 -10.3 -10.7 (ptx 5 of 5 modules -> none: 0 of 1 files, 0 of "
                "5 modules)",
                f"{PLACE}: +12.0 +12.1 (ptx 5 of 5 modules -> native 5 of 5 modules)",
            ],
        ),
        # Another share of the same kind of code is not a change.
        (
            {"sm_80": 160},
            {"sm_80": 170, "sm_90a": 9},
            [f"{PLACE}: +9.0 (none: 0 of 1 files, 0 of 160 modules -> native 9 of 170 modules)"],
        ),
        ({"sm_80": 160}, {"sm_80": 170}, []),
    ],
)
def test_changed_coverage_is_listed_by_capability(
    old: dict[str, int], new: dict[str, int], expected: list[str]
) -> None:
    assert lines(old, new) == expected


def test_equal_coverage_changes_of_platforms_are_merged() -> None:
    old, new = with_code({"sm_87 sm_90": 5}), with_code({"sm_90": 5})
    (lost,) = deltas({LINUX: old, SBSA: old}, {LINUX: new, SBSA: new})
    # Only ARM builds run on Jetsons, and 8.9 cannot run Jetson binaries.
    assert (lost.gone, lost.places, may_break(lost)) == (("8.7",), ("linux-sbsa",), True)
    (gained,) = deltas({SBSA: new}, {SBSA: old})
    assert (gained.added, may_break(gained)) == (("8.7",), False)


def test_unknown_coverage_is_not_a_change() -> None:
    known = with_code({"sm_80": 5})
    unknown = known.model_copy(update={"code_by_file": None})
    assert deltas({LINUX: known}, {LINUX: unknown}) == []
    assert deltas({LINUX: known}, {LINUX: with_code(None)}) == []


def test_coverage_of_package_sets_is_compared() -> None:
    sides = []
    for label, modules in (("2.2.0", {"sm_70": 5, "sm_90": 5}), ("2.8.1", {"sm_90": 5})):
        features = {"libcutensor": with_code(modules)}
        release = Release("cutensor", label, {"libcutensor": [LINUX]}, features)
        made = build(set_data_of(cuda(), release), capabilities=("7.0", "9.0"))
        sides.append(of_package_set(label, made))
    (package,) = (p for p in compare(sides[0], sides[1]).packages if p.package == "libcutensor")
    (delta,) = (delta for delta in package.deltas if delta.field == "coverage")
    assert (delta.gone, delta.old) == (("7.0",), "native 5 of 5 modules")


def test_coverage_deltas_with_a_common_first_capability_are_sorted() -> None:
    old: dict[str, ArchiveFeatures] = {place: with_code({"sm_80": 100}) for place in (LINUX, SBSA)}
    new: dict[str, ArchiveFeatures] = {
        LINUX: with_code({"compute_80": 100}),
        SBSA: with_code({"sm_86": 100}),
    }
    found = [(delta.places, len(delta.gone)) for delta in deltas(old, new) if delta.gone[:1]]
    assert found == [((SBSA,), 1), ((LINUX,), 3)]
