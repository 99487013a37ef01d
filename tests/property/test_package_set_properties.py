"""Properties of every package set, for any manifests, requests and trees."""

import itertools
import re
from typing import Any

from conftest import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from support.set_inputs import (
    JETSON,
    LINUX,
    SBSA,
    STATIC,
    WINDOWS,
    Release,
    build,
    elf,
    features_of,
    set_data_of,
)

from cudaredist.binaries.file_facts import Binary
from cudaredist.errors import CudaRedistError
from cudaredist.features.derive import derive
from cudaredist.features.facts import FACTS_SCHEMA, Entry, Facts
from cudaredist.formats.features import ArchiveFeatures, ExaminedArchive
from cudaredist.formats.packageset import PackageSet
from cudaredist.primitives import Platform, Version
from cudaredist.sets.inputs import SetData
from cudaredist.sets.invariants.documents import check_run, check_set
from cudaredist.sets.outputs import split_outputs
from cudaredist.sets.requirements import SetTarget
from cudaredist.sets.version_choice import choose_releases

CUDA = ("11.8.0", "12.6.3", "12.9.1", "13.0.2")
PLATFORMS = (LINUX, SBSA, JETSON, WINDOWS)
REDISTS = {
    "cudnn": ("cudnn", "cudnn_samples", "cudnn_jit"),
    "cutensor": ("libcutensor",),
    "cusparselt": ("libcusparse_lt",),
    "tensorrt": ("tensorrt",),
    "nvpl": ("nvpl_blas", "nvpl_fft"),
    "mine": ("mylib",),
}

# -- random releases

places = st.lists(
    st.sampled_from(
        [
            *PLATFORMS,
            *(f"{p}/{v}" for p in PLATFORMS for v in ("cuda11", "cuda12", "cuda12.9", "cuda13")),
            *("source", "linux-all", "source/cuda12"),
        ]
    ),
    min_size=1,
    max_size=4,
    unique=True,
)
labels = st.tuples(st.integers(0, 11), st.integers(0, 11), st.integers(0, 3)).map(
    lambda numbers: ".".join(map(str, numbers))
)
sonames = st.sampled_from([f"lib{letter}.so.1" for letter in "abcd"])
needed = st.lists(
    st.sampled_from(["liba.so.1", "libb.so.1", "libc.so.6", "libcuda.so.1"]), max_size=3
)
binaries = st.builds(lambda soname, needs: elf(soname, *needs), sonames, needed)


@st.composite
def archives(draw: st.DrawFn) -> ArchiveFeatures:
    """Return the features of a small archive."""
    files: dict[str, Binary | str | None] = {"LICENSE": None}
    for number in range(draw(st.integers(0, 4))):
        folder = draw(st.sampled_from(["lib", "lib/11", "lib/12", "lib/stubs", "bin", "include"]))
        binary = draw(binaries) if folder.startswith("lib") else None
        files[f"{folder}/f{number}"] = binary
    return features_of(files)


@st.composite
def releases(draw: st.DrawFn, redist: str | None = None) -> Release:
    """Return a release of any redistributable except CUDA."""
    name = redist or draw(st.sampled_from(sorted(REDISTS)))
    packages: dict[str, Any] = {}
    for package in REDISTS[name]:
        if not packages or draw(st.booleans()):
            packages[package] = draw(places)
    features = draw(
        st.none() | st.dictionaries(st.sampled_from(sorted(packages)), archives(), max_size=2)
    )
    return Release(name, draw(labels), packages, features)


@st.composite
def toolkits(draw: st.DrawFn) -> Release:
    """Return a release of CUDA with every required package."""
    essential = ("cuda_nvcc", "cuda_cudart", "libnvvm", "cuda_crt", "cuda_cccl")
    packages: dict[str, Any] = dict.fromkeys(essential, PLATFORMS)
    for name in ("libcublas", "libcudla", "nsight_vse", "mft", "cuda_compat"):
        if draw(st.booleans()):
            packages[name] = draw(places)
    features = draw(st.dictionaries(st.sampled_from(sorted(packages)), archives(), max_size=3))
    return Release("cuda", draw(st.sampled_from(CUDA)), packages, features)


few, some = examples(1 / 4), examples(1 / 2)
"""Fewer examples than usual, because package sets are expensive."""

many = st.lists(releases(), max_size=5, unique_by=lambda release: (release.redist, release.label))


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """Return a valid or invalid request."""
    capabilities = draw(
        st.lists(st.sampled_from(["7.5", "8.0", "8.7", "9.0", "9.0a", "10.1"]), max_size=3)
    )
    return {
        "platform": draw(st.sampled_from(PLATFORMS)),
        "capabilities": tuple(capabilities),
        "allow_hollow": draw(st.booleans()),
    }


def built(data: SetData, label: str, request: dict[str, Any]) -> PackageSet | None:
    """Return the set, or None after a CudaRedistError."""
    try:
        return build(data, label, **request)
    except CudaRedistError as error:
        assert error.message
        return None


# -- sets


@few
@given(toolkits(), many, requests())
def test_set_satisfies_invariants_or_is_refused(
    toolkit: Release, others: list[Release], request: dict[str, Any]
) -> None:
    package_set = built(set_data_of(toolkit, *others), toolkit.label, request)
    if package_set is not None:
        unexpected = [v for v in check_set(package_set) if v.invariant not in {"I6", "I8"}]
        assert unexpected == []
        unowned = {s for s, e in package_set.external.items() if e.owner == "unknown"}
        breaks = {r.subject for p in package_set.packages.values() for r in p.reasons}
        assert unowned <= breaks, "a library without a provider breaks its dependents"


@few
@given(toolkits(), many)
def test_sets_of_a_run_have_the_same_names(toolkit: Release, others: list[Release]) -> None:
    data = set_data_of(toolkit, *others)
    results = [built(data, toolkit.label, {"platform": platform}) for platform in PLATFORMS]
    sets = [package_set for package_set in results if package_set is not None]
    assert list(itertools.chain(*check_run(sets))) == []


@few
@given(toolkits(), many, requests(), st.randoms(use_true_random=False))
def test_order_of_inputs_does_not_change_set(
    toolkit: Release, others: list[Release], request: dict[str, Any], random: Any
) -> None:
    shuffled = [toolkit, *others]
    random.shuffle(shuffled)
    turned = [
        release._replace(
            packages=dict(reversed(list(release.packages.items()))),
            features=release.features and dict(reversed(list(release.features.items()))),
        )
        for release in shuffled
    ]
    first = built(set_data_of(toolkit, *others), toolkit.label, request)
    # Another order of packages gives another manifest, and only its hash may differ.
    again = built(set_data_of(*shuffled), toolkit.label, request)
    third = built(set_data_of(*turned), toolkit.label, request)
    assert (first is None) == (again is None) == (third is None)
    if first is not None and again is not None and third is not None:
        assert first.canonical() == again.canonical()
        first, third = (each.model_copy(update={"inputs": ()}) for each in (first, third))
        assert first.canonical() == third.canonical()


# -- choices: I17, I18


@few
@given(toolkits(), many, releases(), st.sampled_from(PLATFORMS))
def test_unrelated_manifest_does_not_change_releases(
    toolkit: Release, others: list[Release], new: Release, platform: Platform
) -> None:
    assume(new.redist not in {release.redist for release in others})
    policy = set_data_of(toolkit).policies.requirements
    required = {name for entry in policy.requirements for name in entry.needs_packages or ()}
    assume(not required & new.packages.keys())
    target = SetTarget(Version.parse(toolkit.label), platform, ("9.0",))
    pins = {release.redist: release.held for release in others[:2]}
    for chosen in (pins, {}):
        before = choose_releases(target, chosen, set_data_of(toolkit, *others))
        after = choose_releases(target, chosen, set_data_of(toolkit, *others, new))
        assert {name: c.chosen for name, c in after.items() if name != new.redist} == {
            name: c.chosen for name, c in before.items()
        }


@few
@given(
    st.sampled_from(CUDA),
    st.lists(st.sampled_from(["8.5.3", "8.6.1", "10.3.0"]), min_size=1, unique=True),
    many,
    st.sampled_from(["8.6.0", "8.9.7", "9.1.0"]),
    st.booleans(),
)
def test_required_manifest_changes_only_dependent_releases(
    label: str,
    tensorrts: list[str],
    others: list[Release],
    cudnn: str,
    pinned: bool,  # noqa: FBT001 - hypothesis passes it by position
) -> None:
    toolkit = Release("cuda", label, dict.fromkeys(("cuda_nvcc", "cuda_cudart"), PLATFORMS))
    everywhere = (LINUX, SBSA)
    releases_before = [release for release in others if release.redist not in {"cudnn", "tensorrt"}]
    releases_before += [Release("tensorrt", name, {"tensorrt": everywhere}) for name in tensorrts]
    new = Release("cudnn", cudnn, {"cudnn": everywhere})
    target = SetTarget(Version.parse(label), LINUX, ("9.0",))
    pins = {release.redist: release.held for release in releases_before} if pinned else {}
    before = choose_releases(target, pins, set_data_of(toolkit, *releases_before))
    after = choose_releases(target, pins, set_data_of(toolkit, *releases_before, new))
    changed = {name for name, choice in before.items() if after[name].chosen != choice.chosen}
    assert changed <= (set() if pinned else {"tensorrt"})
    for name in changed:
        was, now = before[name].chosen.release, after[name].chosen.release
        refused = {item.release for item in after[name].chosen.newer_rejected}
        assert now is not None
        assert was == now or was in refused or Version.parse(now) > Version.parse(was or "0")


def is_for_older_cuda(release: Release, toolkit: Release) -> bool:
    """Check if all variants of a package of a release are for CUDA before that of a toolkit."""
    cuda = Version.parse(toolkit.label).components[0]
    variants = [
        [int(major) for major in re.findall(r"/cuda(\d+)", " ".join(places))]
        for places in release.packages.values()
    ]
    return any(majors and max(majors) < cuda for majors in variants)


@few
@given(
    toolkits(),
    st.lists(releases("cudnn"), min_size=1, max_size=5, unique_by=lambda r: r.label),
    st.sampled_from(PLATFORMS),
)
def test_newest_release_that_is_valid_alone_is_selected(
    toolkit: Release, cudnns: list[Release], platform: Platform
) -> None:
    # A package with builds for older CUDA only is evidence against earlier releases without
    # variants, which would be valid alone. The tests of CUDA majors have this case.
    assume(not any(is_for_older_cuda(release, toolkit) for release in cudnns))
    target = SetTarget(Version.parse(toolkit.label), platform, ("9.0",))
    chosen = choose_releases(target, {}, set_data_of(toolkit, *cudnns))["cudnn"].chosen
    alone = {
        release.label: choose_releases(target, {}, set_data_of(toolkit, release))
        for release in cudnns
    }
    eligible = [label for label, choices in alone.items() if choices["cudnn"].manifest is not None]
    assert chosen.release == max(eligible, key=Version.parse, default=None)
    newer = [
        release.label
        for release in cudnns
        if chosen.release is None or Version.parse(release.label) > Version.parse(chosen.release)
    ]
    rejected = [item.release for item in chosen.newer_rejected]
    assert rejected == sorted(newer, key=Version.parse, reverse=True)
    assert all(item.reason for item in chosen.newer_rejected)


@few
@given(st.permutations(["7.5", "8.6", "8.9", "9.0", "9.0a"]), st.booleans())
def test_order_of_capabilities_changes_only_nixpkgs_strings(
    names: list[str],
    forward_compat: bool,  # noqa: FBT001 - hypothesis passes it by position
) -> None:
    toolkit = Release("cuda", "12.6.3", dict.fromkeys(("cuda_nvcc", "cuda_cudart"), (LINUX,)))
    data = set_data_of(toolkit)
    by_order = [
        build(data, "12.6.3", capabilities=tuple(order), forward_compat=forward_compat)
        for order in (names, sorted(names))
    ]
    theirs = {
        *("requested", "effective", "real_arches", "virtual_arches", "arches", "gencode"),
        *("gencode_string", "lto_arches", "gencode_lto", "cmake_cuda_architectures"),
    }
    ours = [package_set.capabilities.model_dump(exclude=theirs) for package_set in by_order]
    assert ours[0] == ours[1]
    rest = [
        package_set.model_copy(update={"capabilities": by_order[0].capabilities})
        for package_set in by_order
    ]
    assert rest[0].canonical() == rest[1].canonical()
    assert set(by_order[0].capabilities.real_arches) == set(by_order[1].capabilities.real_arches)


# -- trees: effects of changed files (section 12)

TREE = st.dictionaries(
    st.sampled_from(
        [
            *("LICENSE", "bin/tool", "include/x.h", "include/sub/y.h", "lib/libx.so.1"),
            *("lib/libx_static.a", "lib/libculibos.a", "lib/pkgconfig/x.pc", "lib/cmake/x.cmake"),
            *("lib/stubs/libx.so", "stubs/liby.so", "pkg-config/x.pc", "samples/a/a.cu"),
            *("share/doc/a.txt", "share/man/man1/a.1", "python/x.whl", "src/a.c", "nvvm/libdevice"),
            *("lib64/libz.so.1", "lib/x.txt"),
        ]
    ),
    st.integers(0, 1000),
    min_size=1,
)


def tree(files: dict[str, int], top: str = "top") -> ArchiveFeatures:
    def entry(path: str, size: int) -> Entry:
        name = path.rpartition("/")[2]
        binary = None
        if ".so" in name:
            binary = elf(f"{name.partition('.so')[0]}.so.1")
        elif name.endswith(".a"):
            binary = STATIC
        mode = 0o755 if path.startswith("bin/") else 0o644
        return Entry(name=f"{top}/{path}", kind="file", size=size, mode=mode, binary=binary)

    members = tuple(entry(path, size) for path, size in files.items())
    return derive(Facts(schema=FACTS_SCHEMA, members=members))


def contents(features: ArchiveFeatures) -> dict[str, tuple[int, int]]:
    """Return the number of files and bytes of each output in a set."""
    examined = ExaminedArchive(
        **{name: getattr(features, name) for name in ArchiveFeatures.model_fields},
        platform=LINUX,
        variant=None,
        sha256="0" * 64,
        status="examined",
    )
    version = Version.parse("1.0")
    policy = set_data_of().policies.outputs
    split = split_outputs("libx", version, examined, Version.parse("12.9.1"), policy)
    assert tuple(split.contents) == split.outputs
    return {name: (part.files, part.bytes) for name, part in split.contents.items()}


@some
@given(TREE)
def test_every_file_is_in_one_output(files: dict[str, int]) -> None:
    outputs = contents(tree(files))
    assert sum(count for count, _ in outputs.values()) == len(files)
    assert sum(size for _, size in outputs.values()) == sum(files.values())
    assert all(count for name, (count, _) in outputs.items() if name != "out")


@some
@given(TREE)
def test_removed_static_libraries_remove_only_static_output(files: dict[str, int]) -> None:
    rest = {path: size for path, size in files.items() if not path.endswith(".a")}
    assume(rest)
    before, after = contents(tree(files)), contents(tree(rest))
    assert "static" not in after
    assert {name: part for name, part in before.items() if name != "static"} == after


@some
@given(TREE, st.integers(1, 1000))
def test_added_stubs_add_only_stubs_output(files: dict[str, int], size: int) -> None:
    files = {path: count for path, count in files.items() if "stubs/" not in path}
    assume(files)
    before = contents(tree(files))
    after = contents(tree({**files, "lib/stubs/libnew.so": size}))
    assert after == before | {"stubs": (1, size)}


@some
@given(TREE, st.from_regex(r"[a-z][a-z0-9_-]{3,20}-archive", fullmatch=True))
def test_top_directory_name_does_not_change_features(files: dict[str, int], top: str) -> None:
    assert tree(files) == tree(files, top)


@some
@given(TREE, st.randoms(use_true_random=False))
def test_order_of_members_does_not_change_features(files: dict[str, int], random: Any) -> None:
    paths = list(files)
    random.shuffle(paths)
    assert tree({path: files[path] for path in paths}) == tree(files)


@some
@given(TREE, st.sampled_from(["11", "12", "13"]))
def test_nested_lib_has_same_outputs_as_plain_lib(files: dict[str, int], other: str) -> None:
    """Moving `lib` to `lib/12` does not change the outputs of a CUDA 12 set."""
    inside = {path: size for path, size in files.items() if path.startswith("lib/")}
    assume(inside and other != "12")
    nested = {path: size for path, size in files.items() if path not in inside}
    nested |= {f"lib/12/{path.removeprefix('lib/')}": size for path, size in inside.items()}
    nested |= {f"lib/{other}/libother.so.1": 7, f"lib/{other}/libother.a": 7}
    assert contents(tree(nested)) == contents(tree(files))
