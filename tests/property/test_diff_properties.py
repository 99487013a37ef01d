"""Properties of every comparison of manifests, features and package sets."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.factory import blank, feature_document, manifest, name_policy
from support.package_sets import example_set, package

from cudaredist.commands.diff.comparable import Comparable
from cudaredist.commands.diff.compare import compare
from cudaredist.commands.diff.read_sides import (
    contents_of,
    of_features,
    of_manifest,
    of_package_set,
)
from cudaredist.commands.diff.report import Delta, DiffReport, Move
from cudaredist.commands.diff.text import diff_markdown, diff_text
from cudaredist.formats.features import ExaminedArchive, Features, Library
from cudaredist.manifests.manifest_values import Manifest
from cudaredist.manifests.read_manifest import read_manifest

NAMES = st.sampled_from(["cuda_cccl", "cccl", "cuda_nvcc", "cuda_crt", "libnvvm", "x"])
VERSIONS = st.sampled_from(["1.0", "1.2", "1.10"])
PLATFORMS = st.sampled_from(["linux-x86_64", "linux-sbsa", "windows-x86_64"])
WORDS = st.frozensets(st.sampled_from(["a.so.1", "a.so.2", "b.so", "sm_90", "sm_100"]))
POLICY = name_policy()


@st.composite
def manifest_files(draw: st.DrawFn) -> Manifest:
    document: dict[str, Any] = {"release_label": "13.0.2"}
    for pkg in draw(st.sets(NAMES, min_size=1)):
        versions, platforms = {pkg: draw(VERSIONS)}, draw(st.sets(PLATFORMS, min_size=1))
        document |= json.loads(
            manifest(
                packages=[pkg],
                platforms=platforms,
                versions=versions,
                salt=draw(st.sampled_from(["", "other"])),
                license=draw(st.sampled_from(["MIT", "CUDA Toolkit"])),
            )
        )
    return read_manifest(json.dumps(document).encode())


@st.composite
def feature_files(draw: st.DrawFn) -> Features:
    packages = {
        pkg: {
            "version": draw(VERSIONS),
            "archives": [_archive(draw, platform) for platform in sorted(draw(st.sets(PLATFORMS)))],
        }
        for pkg in draw(st.sets(NAMES))
    }
    document = feature_document("13.0.2", packages=packages)
    return Features.model_validate_json(json.dumps(document))


def _archive(draw: st.DrawFn, platform: str) -> dict[str, Any]:
    variant = draw(st.sampled_from([None, "cuda12"]))
    head = {"platform": platform, "variant": variant, "sha256": draw(st.sampled_from("ab")) * 64}
    if draw(st.booleans()):
        return {**head, "status": "not-examined", "reason": "excluded by --platform"}
    soname = draw(st.sampled_from(["a.so.1", "a.so.2", None]))
    library = blank(
        Library,
        path="lib/a.so",
        output="lib",
        soname=soname,
        needed=sorted(draw(WORDS)),
        stub=draw(st.booleans()),
        glibc=draw(st.sampled_from(["2.17", "2.9", None])),
    )
    outputs = {"lib": {"files": 1, "bytes": draw(st.integers(0, 3))}}
    values = {**head, "status": "examined", "outputs": outputs, "libraries": [library]}
    return blank(ExaminedArchive, **values)


@st.composite
def package_sets(draw: st.DrawFn, name: str = "") -> Comparable:
    statuses = st.sampled_from(["available", "broken"])
    names = draw(st.sets(NAMES))
    packages = {name: package(name, draw(VERSIONS), status=draw(statuses)) for name in names}
    return of_package_set(name, example_set(packages=packages))


@st.composite
def releases(draw: st.DrawFn, name: str = "") -> Comparable:
    contents = contents_of(draw(feature_files()), None)
    merged = of_manifest(name, draw(manifest_files()), contents)
    entries = st.dictionaries(st.sampled_from(["gcc", "clang"]), WORDS)
    merged.tables = {
        table: {(f"{table} {field}", ""): value for field, value in draw(entries).items()}
        for table in draw(st.sets(st.sampled_from(["compilers", "gpus"])))
    }
    return merged


def sides(name: str) -> st.SearchStrategy[Comparable]:
    manifests = st.builds(of_manifest, st.just(name), manifest_files())
    features = st.builds(of_features, st.just(name), feature_files())
    return st.one_of(manifests, features, package_sets(name), releases(name))


PATHS = st.frozensets(st.sampled_from(["lib/a", "lib/b", "lib64/a", "include/c", "x/c", "bin/d"]))


@st.composite
def with_files(draw: st.DrawFn, name: str) -> Comparable:
    """Return a side with known files for some packages."""
    side = draw(sides(name))
    known = sorted(pkg for pkg in side.packages if draw(st.booleans()))
    side.files = {pkg: draw(PATHS) for pkg in known}
    return side


def swapped(report: DiffReport) -> DiffReport:
    """Return the report with both sides swapped."""
    other = {"added": "gone", "gone": "added", "changed": "changed"}

    def turned(delta: Delta) -> Delta:
        words = {"old": delta.new, "new": delta.old, "added": delta.gone, "gone": delta.added}
        return delta.changed(**words)

    def moved_back(move: Move) -> Move:
        words = {"old": move.new, "new": move.old, "added": move.gone, "gone": move.added}
        return move.changed(**words)

    packages = tuple(
        package.changed(status=other[package.status], deltas=tuple(map(turned, package.deltas)))
        for package in report.packages
    )
    return report.changed(
        old=report.new,
        new=report.old,
        packages=packages,
        platforms=report.platforms and turned(report.platforms),
        moves=tuple(sorted(map(moved_back, report.moves), key=lambda m: (m.old, m.new))),
        tables=tuple(map(turned, report.tables)),
    )


@given(with_files("a"))
def test_comparison_with_itself_is_empty(side: Comparable) -> None:
    report = compare(side, side, POLICY)
    assert (report.packages, report.platforms, report.tables) == ((), None, ())
    assert report.moves == ()
    assert report.equal == len(side.packages)
    assert len(list(diff_text(report))) == 2


@given(with_files("a"), with_files("b"))
def test_comparison_is_symmetric(old: Comparable, new: Comparable) -> None:
    assert swapped(compare(old, new, POLICY)) == compare(new, old, POLICY)


@given(sides("a"), sides("b"))
def test_every_package_is_reported_once(old: Comparable, new: Comparable) -> None:
    report = compare(old, new, POLICY)
    names = [package.package for package in report.packages]
    assert names == sorted(set(names))
    assert len(names) + report.equal == len(old.packages.keys() | new.packages.keys())
    added = {package.package for package in report.packages if package.status == "added"}
    assert added == new.packages.keys() - old.packages.keys()
    text, markdown = "\n".join(diff_text(report)), "\n".join(diff_markdown(report))
    changed = {p.package for p in report.packages if p.status == "changed"}
    assert all(f"  {name}" in text or name in changed for name in names if name not in added)
    assert all(f"`{name}`" in markdown for name in added)
