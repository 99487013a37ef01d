"""Tests of overlays: added packages, changes and contradictory policies."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.set_inputs import (
    LINUX,
    SBSA,
    STATIC,
    Release,
    archive_of,
    build,
    cuda,
    elf,
    features_of,
    library,
    outline,
    put_data,
    put_policy,
    rule,
    set_data_of,
    texts,
    valid,
)

from cudaredist.errors import IncompleteError, InvalidFileError, UnknownNameError, UsageError
from cudaredist.formats.lock import LockEntry
from cudaredist.formats.packageset import PackageSet
from cudaredist.primitives import Version, sha256_of
from cudaredist.sets.inputs import SetData
from cudaredist.sets.load import merge_policy, read_set_data
from cudaredist.store.data_folder import Store

WHOLE = features_of(
    {
        "bin/tool": elf(),
        "include/x.h": None,
        "lib/libx.so.1": elf("libx.so.1"),
        "lib/libx.a": STATIC,
        "share/doc/x": None,
    }
)
FEATURES = {
    "cuda_nvcc": features_of({"bin/nvcc": None}),
    "cuda_cudart": library("libcudart.so.12"),
    "cuda_cccl": features_of({"include/x": None}),
    "libx": WHOLE,
    "liby": library("liby.so.1"),
}


MATH = Release(
    "cublasmp",
    "0.5.0",
    {name: [f"{LINUX}/cuda12"] for name in ("libcublasmp", "libnvsdm")},
    dict.fromkeys(("libcublasmp", "libnvsdm"), features_of({"LICENSE": None})),
)
"""A release with a package that is withheld."""


RELEASES = (
    *(
        cuda(label, features=FEATURES, packages={name: [LINUX, SBSA] for name in FEATURES})
        for label in ("12.9.1", "12.6.3")
    ),
    MATH,
)


@pytest.fixture
def base(tmp_path: Path) -> Store:
    return put_data(tmp_path / "data", *RELEASES)


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    return tmp_path / "mine"


def fixup(name: str, **more: Any) -> dict[str, Any]:
    return rule(package=name, reason="ours", **more)


def read(base: Store, *overlays: Path) -> SetData:
    return read_set_data(base, [Store(path) for path in overlays])


def built(base: Store, *overlays: Path, **request: Any) -> PackageSet:
    return valid(build(read(base, *overlays), **request))


def test_policy_is_read_once_for_each_content(base: Store, overlay: Path) -> None:
    put_policy(overlay, "fixups", fixups=[fixup("libx", broken="crashes")])
    before, again = (read(base, overlay).policies for _ in range(2))
    assert again.libraries is before.libraries
    assert again.fixups is before.fixups
    assert again.fixups.entries is before.fixups.entries
    paths = [path for path, _ in before.fixups.entries]
    assert paths == ["", ".fixups[0]", ".fixups[0].cuda"]
    put_policy(overlay, "fixups", fixups=[fixup("libx", broken="hangs")])
    changed = read(base, overlay).policies
    assert changed.libraries is before.libraries
    assert [entry.broken for entry in changed.fixups.fixups] == ["hangs"]
    assert [entry.broken for entry in before.fixups.fixups] == ["crashes"]


# -- fixups


def test_fixup_declares_outputs_and_rest_is_in_out(base: Store, overlay: Path) -> None:
    before = built(base).packages["libx"]
    assert before.outputs == ("out", "doc", "bin", "include", "lib", "static")
    put_policy(overlay, "fixups", fixups=[fixup("libx", outputs=["out", "static", "lib"])])
    built_entry = built(base, overlay).packages["libx"]
    assert built_entry.outputs == ("out", "lib", "static"), "sorted, independent of the fixup"
    files = {name: part.files for name, part in built_entry.contents.items()}
    assert files == {"out": 3, "lib": 1, "static": 1}
    assert built_entry.propagates == {"out": ("lib",)}
    assert built_entry.overlay == ("fixup: ours",)
    assert before.overlay == ()


def test_declared_output_without_files_is_broken(base: Store, overlay: Path) -> None:
    put_policy(overlay, "fixups", fixups=[fixup("libx", outputs=["out", "dev", "python"])])
    built_entry = build(read(base, overlay)).packages["libx"]
    assert outline(built_entry) == ("broken", ["outputs-empty"])
    assert built_entry.reasons[0].text == "python would be empty, but is declared"
    assert built_entry.outputs == ("out", "python", "dev")


def test_fixup_splits_collapsed_package(base: Store, overlay: Path) -> None:
    assert built(base).packages["cuda_cudart"].outputs == ("out",)
    put_policy(overlay, "fixups", fixups=[fixup("cuda_cudart", outputs=["out", "include", "lib"])])
    built_entry = built(base, overlay).packages["cuda_cudart"]
    assert (built_entry.outputs, built_entry.collapsed) == (("out", "include", "lib"), None)
    assert {provided.output for provided in built_entry.provides} == {"lib"}


def test_fixups_mark_broken_withhold_and_add_dependency(base: Store, overlay: Path) -> None:
    fixups = [
        fixup("libx", broken="crashes here"),
        fixup("liby", depends=["cuda_nvcc"]),
        fixup("cuda_cccl", withheld="we have our own"),
    ]
    put_policy(overlay, "fixups", fixups=fixups)
    packages = build(read(base, overlay)).packages
    (reason,) = packages["libx"].reasons
    assert (reason.code, reason.text, reason.subject) == ("marked-broken", "crashes here", "libx")
    assert reason.source == "overlay policy/fixups.json"
    assert outline(packages["cuda_cccl"]) == ("withheld", ["withheld-by-policy"])
    assert ("cuda_nvcc", "runtime") in {(d.attr, d.kind) for d in packages["liby"].depends}
    assert [packages[name].overlay for name in ("libx", "liby", "cuda_nvcc")] == [
        *[("fixup: ours",)] * 2,
        (),
    ]


def test_missing_fixup_dependency_breaks_package(base: Store, overlay: Path) -> None:
    put_policy(overlay, "fixups", fixups=[fixup("liby", depends=["cuda_gdb"])])
    built_entry = build(read(base, overlay)).packages["liby"]
    assert outline(built_entry) == ("broken", ["dependency-unavailable"])
    assert built_entry.reasons[0].text == "cuda_gdb is not available: ours"


@pytest.mark.parametrize(
    ("scope", "label", "platform", "applies"),
    [
        ({}, "12.6.3", SBSA, True),
        ({"cuda": {"min": "12.9"}}, "12.9.1", LINUX, True),
        ({"cuda": {"min": "12.9"}}, "12.6.3", LINUX, False),
        ({"cuda": {"min": "12.6", "max": "12.6"}}, "12.6.3", LINUX, True),
        ({"platform": SBSA}, "12.9.1", LINUX, False),
        ({"platform": SBSA}, "12.9.1", SBSA, True),
    ],
)
def test_fixup_applies_to_selected_sets(
    base: Store, overlay: Path, scope: dict[str, Any], label: str, platform: str, *, applies: bool
) -> None:
    put_policy(overlay, "fixups", fixups=[fixup("libx", broken="b", **scope)])
    data = read(base, overlay)
    built_entry = build(data, label, platform).packages["libx"]
    assert (built_entry.status == "broken") is applies
    assert bool(built_entry.overlay) is applies


def test_fixup_applies_to_package_by_any_name() -> None:
    fixups = [fixup(name, broken="b") for name in ("cuda_cccl", "cusparselt")]
    cusparselt = Release("cusparselt", "0.10.0", {"libcusparse_lt": [LINUX]})
    policies = {"fixups": {"fixups": fixups}}
    packages = build(
        set_data_of(cuda("13.4.2", cccl=[LINUX]), cusparselt, policies=policies), "13.4.2"
    ).packages
    assert {packages[name].status for name in ("cccl", "libcusparse_lt")} == {"broken"}


def test_fixup_of_unknown_package_is_a_warning(base: Store, overlay: Path) -> None:
    put_policy(overlay, "fixups", fixups=[fixup("unheard_of", broken="b")])
    (diagnostic,) = built(base, overlay).diagnostics
    assert (diagnostic.code, diagnostic.subject) == ("unknown-package", "unheard_of")


def test_misspelled_names_in_fixups_are_errors_with_suggestion(base: Store, overlay: Path) -> None:
    """A fixup with a misspelled platform would apply to no package."""
    fixups = [
        fixup("libx", platform="linux-x86-64", broken="b"),
        fixup("cuda_cudrt", broken="b"),
        fixup("libcutensor", broken="b"),
    ]
    put_policy(overlay, "fixups", fixups=fixups, urls={"cublasm": "https://x.test/"})
    put_policy(overlay, "withheld", withheld={"libz": rule(), "cuda_nvc": rule()})
    with pytest.raises(InvalidFileError) as raised:
        build(read(base, overlay))
    suggestions = {
        problem.path: problem.message.partition("did you mean ")[2].split()[0].rstrip("?")
        for problem in raised.value.problems
    }
    assert suggestions == {
        "fixups.fixups[0].platform": "linux-x86_64",
        "withheld.cuda_nvc": "cuda_nvcc",
        "fixups.fixups[1].package": "cuda_cudart",
        "fixups.urls.cublasm": "cublasmp",
    }


def test_last_overlay_overrides_others(base: Store, tmp_path: Path) -> None:
    for name, outputs in (("one", ["out", "lib"]), ("two", ["out", "bin"])):
        put_policy(tmp_path / name, "fixups", fixups=[fixup("libx", outputs=outputs)])
        put_policy(tmp_path / name, "withheld", withheld={"liby": rule(reason=name)})
    for first, last, output in (("one", "two", "bin"), ("two", "one", "lib")):
        packages = built(base, tmp_path / first, tmp_path / last).packages
        assert packages["libx"].outputs == ("out", output)
        assert packages["liby"].reasons[0].text == last


# -- policy


def test_null_removes_withheld_entry(base: Store, overlay: Path) -> None:
    assert built(base).packages["libnvsdm"].status == "withheld"
    put_policy(overlay, "withheld", withheld={"libnvsdm": None})
    built_entry = built(base, overlay).packages["libnvsdm"]
    assert built_entry.status == "available"
    assert built_entry.overlay == ("policy/withheld.json",)


def test_null_of_unknown_entry_suggests_nearest(base: Store, overlay: Path) -> None:
    put_policy(overlay, "withheld", withheld={"libnvsd": None})
    path = overlay / "policy/withheld.json"
    message = re.escape(f"no entry of withheld in {path} is called 'libnvsd'")
    with pytest.raises(UnknownNameError, match=message) as raised:
        read(base, overlay)
    assert "did you mean libnvsdm" in (raised.value.hint or "")


@pytest.mark.parametrize("text", ["{", "[]"])
def test_unreadable_policy_of_overlay_names_its_file(base: Store, overlay: Path, text: str) -> None:
    path = overlay / "policy/withheld.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    with pytest.raises(InvalidFileError, match=re.escape(str(path))):
        read(base, overlay)


def test_overlay_entries_name_overlay_as_source(base: Store, overlay: Path) -> None:
    entry = rule(reason="ours")
    put_policy(overlay, "withheld", withheld={"libx": entry})
    requirement = {"package": "liby", "kind": "broken", "needs_cuda": {"min": "13"}, **entry}
    put_policy(overlay, "requirements", requirements=[requirement])
    put_policy(overlay, "outputs", collapse={"cuda_cccl": None, "cuda_nvcc": entry})
    terms = {**entry, "spdx": None, "url": None, "free": False, "redistributable": None}
    other = {"cuda_nvcc": {**terms, "short_name": "Ours"}}
    default = {**terms, "short_name": "Unknown"}
    put_policy(overlay, "licenses", default=default, packages=other)
    limit = {"redist": "cublasmp", "releases": {}, "cuda": {"max": "11.8"}, **entry}
    put_policy(overlay, "constraints", constraints=[limit])
    put_policy(overlay, "meta", packages={"cuda_cudart": {**entry, "homepage": "https://x"}})
    packages = build(read(base, overlay), pins={"cublasmp": "0.5.0"}).packages
    assert packages["libx"].reasons[0].source == "overlay policy/withheld.json"
    assert packages["liby"].reasons[0].source == "overlay policy/requirements.json"
    assert packages["liby"].reasons[0].text == "ours: requires CUDA 13 or newer"
    assert packages["cuda_nvcc"].license.source == "overlay policy/licenses.json"
    assert packages["cuda_gdb"].license.short_name == "Unknown"
    assert packages["cuda_cudart"].meta.homepage == "https://x"
    changes = {
        "libx": ("policy/withheld.json",),
        "liby": ("policy/requirements.json",),
        "cuda_nvcc": ("policy/outputs.json", "policy/licenses.json"),
        "cuda_cudart": ("policy/meta.json",),
    }
    assert {name: packages[name].overlay for name in changes} == changes
    assert packages["cuda_cccl"].collapsed is None
    constrained = {"constraints": {"constraints": [limit]}}
    release = Release("cublasmp", "0.5.0", {"libcublasmp": [LINUX]})
    data = set_data_of(cuda(), release, policies=constrained)
    assert build(data).redists["cublasmp"].newer_rejected[0].reason == "ours"


def test_overlay_files_are_listed_as_inputs(base: Store, overlay: Path) -> None:
    put_policy(overlay, "withheld", withheld={})
    put_data(overlay, Release("cublasmp", "0.5.1", {"libcublasmp": [f"{LINUX}/cuda12"]}))
    inputs = built(base, overlay).inputs
    assert [(i.kind, i.name, i.label) for i in inputs if i.overlay] == [
        ("manifest", "cublasmp", "0.5.1"),
        ("policy", "withheld", None),
    ]
    assert len([i for i in inputs if i.kind == "policy"]) == 12
    assert {i.kind for i in inputs} == {"manifest", "features", "nvcc", "capabilities", "policy"}


@pytest.mark.parametrize(
    ("base_policy", "changes", "expected"),
    [
        ({"a": {"x": {"v": 1}}}, {"a": {"y": {"v": 2}}}, {"a": {"x": {"v": 1}, "y": {"v": 2}}}),
        ({"a": {"x": {"v": 1}}}, {"a": {"x": {"w": 2}}}, {"a": {"x": {"w": 2}}}),
        ({"a": {"x": {"v": 1}}}, {"a": {"x": None}}, {"a": {}}),
        ({"a": [1]}, {"a": [2]}, {"a": [2, 1]}),
        ({"a": {"reason": "r", "v": "1"}}, {"a": {"reason": "s"}}, {"a": {"reason": "s"}}),
        ({"a": 1, "b": 2}, {"b": None}, {"a": 1}),
        ({}, {"a": {"x": "y"}}, {"a": {"x": "y"}}),
    ],
)
def test_policies_are_merged_by_entry(
    base_policy: dict[str, Any], changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert merge_policy(base_policy, changes) == expected


# -- packages and releases


def test_own_package_is_available(base: Store, overlay: Path) -> None:
    features = {"mylib": library("libmine.so.1", "libx.so.1")}
    put_data(overlay, Release("mine", "1.2.0", {"mylib": [f"{LINUX}/cuda12"]}, features))
    put_policy(overlay, "fixups", fixups=[], urls={"mine": "s3://bucket/mine"})
    built_entry = built(base, overlay)
    mine = built_entry.packages["mylib"]
    assert (mine.status, mine.redist, mine.release) == ("available", "mine", "1.2.0")
    assert mine.archive is not None
    assert mine.archive.url == f"s3://bucket/mine/{mine.archive.relative_path}"
    assert mine.overlay == ("manifest", "features")
    assert [(d.attr, d.output) for d in mine.depends] == [("libx", "lib")]
    assert built_entry.redists["mine"].mode == "auto"
    elsewhere = built(base, overlay, platform=SBSA).packages["mylib"]
    assert elsewhere.reasons[0].source == "overlay mine/redistrib_1.2.0.json"


def test_own_package_without_address_has_no_url(base: Store, overlay: Path) -> None:
    put_data(overlay, Release("mine", "1.2.0", {"mylib": [LINUX]}))
    assert archive_of(read(base, overlay), "mylib").url is None


def test_overlay_release_replaces_same_label(base: Store, overlay: Path) -> None:
    put_data(overlay, Release("cublasmp", "0.5.0", {"libcublasmp": [f"{SBSA}/cuda12"]}))
    assert built(base, overlay).packages["libcublasmp"].status == "unsupported"
    assert built(base, overlay, platform=SBSA).packages["libcublasmp"].status == "available"


# -- errors


BACKWARDS, BEGINS = {"min": "12.9.1", "max": "12.8"}, "begins at 12.9.1, after its end 12.8"
DECLARES = "declares outputs without `out` first, or an output twice"


def renames(**names: str) -> dict[str, Any]:
    return {old: rule(to=new, since="1") for old, new in names.items()}


@pytest.mark.parametrize(
    ("subject", "content", "message"),
    [
        ("names", {"renames": renames(a="b", b="a")}, ".a: is renamed in a circle: a -> b -> a"),
        ("names", {"renames": renames(a="a")}, ".a: is renamed in a circle: a -> a"),
        (
            "names",
            {"renames": renames(a="b"), "aliases": {"b": rule(to="a")}},
            ".b: is renamed in a",
        ),
        (
            "names",
            {"aliases": {"a": rule(to="b")}, "renames": renames(a="c")},
            ".a: is both an alias",
        ),
        ("constraints", [rule(redist="x", releases={}, cuda=BACKWARDS)], f"[0].cuda: {BEGINS}"),
        (
            *("requirements", [rule(package="x", kind="broken", needs_packages={"y": BACKWARDS})]),
            f"[0].needs_packages.y: {BEGINS}",
        ),
        ("fixups", [fixup("x", cuda=BACKWARDS)], f"[0].cuda: {BEGINS}"),
        ("fixups", [fixup("x", outputs=["lib", "out"])], f"[0]: {DECLARES}"),
        ("fixups", [fixup("x", outputs=["out", "lib", "lib"])], f"[0]: {DECLARES}"),
        ("fixups", [fixup("x", outputs=[])], f"[0]: {DECLARES}"),
    ],
)
def test_contradictory_policies_are_refused(subject: str, content: Any, message: str) -> None:
    policy = content if isinstance(content, dict) else {subject: content}
    data = set_data_of(cuda(), policies={subject: policy})
    message = (subject if isinstance(content, dict) else f"{subject}.{subject}") + message
    with pytest.raises(InvalidFileError) as raised:
        build(data)
    assert message in raised.value.message
    assert raised.value.exit_code == 5


def test_narrow_bounds_are_accepted() -> None:
    bounds = rule(redist="x", releases={"min": "0.7.0", "max": "0.7"}, cuda={"max": "12"})
    policies = {"constraints": {"constraints": [bounds]}}
    assert set_data_of(cuda(), policies=policies).problems == ()


@pytest.mark.parametrize(
    ("subject", "content", "message"),
    [
        ("fixups", {"fixups": [{"package": "x"}]}, "fixups.json): fixups[0]: 'reference' is"),
        ("withheld", {"withheld": {"x": {"reason": ""}}}, "withheld.json): withheld.x"),
        ("withheld", {"witheld": {}}, "('witheld' was unexpected)"),
        ("fixups", {"fixups": [], "urls": {"x": "nowhere"}}, "fixups.json): urls.x"),
        ("names", {"schema_version": 2}, "names.json): schema_version"),
    ],
)
def test_broken_policy_is_named(
    base: Store, overlay: Path, subject: str, content: dict[str, Any], message: str
) -> None:
    version = content.pop("schema_version", 1)
    put_policy(overlay, subject, **content)
    path = overlay / "policy" / f"{subject}.json"
    path.write_text(path.read_text().replace('"schema_version": 1', f'"schema_version": {version}'))
    with pytest.raises(InvalidFileError) as raised:
        read(base, overlay)
    assert f"policy/{subject}.json (with {path}" in raised.value.message
    assert message in raised.value.message


def test_invalid_overlay_folder_and_unknown_file_are_refused(base: Store, overlay: Path) -> None:
    overlay.mkdir()
    with pytest.raises(UsageError, match=r"has no manifests/, features/ or policy/ folder"):
        read(base, overlay)
    put_policy(overlay, "fixup", fixups=[])
    with pytest.raises(UnknownNameError, match=r"no policy file is called 'fixup\.json'") as raised:
        read(base, overlay)
    assert "did you mean fixups.json" in (raised.value.hint or "")


def test_broken_overlay_manifest_is_named_with_folder(base: Store, overlay: Path) -> None:
    put_data(overlay, cuda())
    path = overlay / "manifests/cuda/redistrib_12.9.1.json"
    path.write_bytes(b"{}")
    with pytest.raises(InvalidFileError) as raised:
        read(base, overlay)
    assert str(path) in raised.value.message


def test_policy_of_data_folder_is_applied(base: Store) -> None:
    put_policy(base.root, "fixups", fixups=[fixup("libx", broken="b")])
    built_entry = build(read_set_data(base)).packages["libx"]
    assert built_entry.status == "broken"
    assert built_entry.reasons[0].source == "policy/fixups.json"


def test_filtered_and_legacy_feature_files_are_read(base: Store) -> None:
    """One feature file is filtered, and the other one has the legacy form."""
    path = base.root / "features/cuda/feature_12.9.1.json"
    document = json.loads(path.read_bytes())
    for archive in document["packages"]["libx"]["archives"]:
        filtered = {key: archive[key] for key in ("platform", "variant", "sha256")}
        archive.clear()
        archive |= {**filtered, "status": "not-examined", "reason": "excluded by --package"}
    path.write_text(json.dumps(document))
    with pytest.raises(IncompleteError, match=r"libx \(excluded by --package\)"):
        build(read_set_data(base), allow_missing_features=False)
    names = {"cuda_nvcc": ["bin"], "cuda_cudart": ["lib"], "libx": ["bin", "lib", "sample"]}
    legacy = {
        name: {platform: {"outputs": dict.fromkeys(outputs, True)} for platform in (LINUX, SBSA)}
        for name, outputs in names.items()
    }
    path.write_text(json.dumps(legacy))
    built_entry = build(read_set_data(base))
    assert built_entry.packages["libx"].outputs == ("out", "samples", "bin", "lib")
    assert built_entry.packages["cuda_nvcc"].outputs == ("out",)
    (text,) = texts(built_entry, "features-missing")
    assert text.startswith("2 packages were not examined")


def test_manifest_that_differs_from_lock_is_a_warning(base: Store) -> None:
    """A hand-edited manifest differs from its lock entry."""
    path = base.manifests("cuda").path_of(Version.parse("12.9.1"))
    entry = LockEntry(sha256=sha256_of(path.read_bytes()), size=path.stat().st_size)
    base.update_lock({"cuda": {"12.9.1": entry}})
    assert build(read_set_data(base)).diagnostics == ()
    path.write_bytes(path.read_bytes() + b" ")
    (diagnostic,) = build(read_set_data(base)).diagnostics
    assert (diagnostic.level, diagnostic.code) == ("warning", "edited-manifest")
    assert diagnostic.subject == "cuda"
    assert "redistrib_12.9.1.json differs from the downloaded file" in diagnostic.text
    assert "download-manifests --redist cuda --version 12.9.1" in diagnostic.text


def test_set_data_is_the_same_in_memory_and_on_disk(base: Store) -> None:
    assert build(set_data_of(*RELEASES)).packages == built(base).packages
