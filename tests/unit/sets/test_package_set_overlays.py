"""Tests of overlays: added packages, changes and contradictory policies."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.set_inputs import (
    LINUX,
    SBSA,
    STATIC,
    Release,
    build,
    cuda,
    elf,
    features_of,
    library,
    package,
    put_data,
    put_policy,
    set_data_of,
)

from cudaredist.errors import IncompleteError, InvalidFileError, UnknownNameError, UsageError
from cudaredist.formats.features import LockEntry
from cudaredist.formats.packageset import PackageSet
from cudaredist.primitives import Version, sha256_of
from cudaredist.sets.inputs import SetData
from cudaredist.sets.invariants.set_invariants import check_set
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


@pytest.fixture
def base(tmp_path: Path) -> Store:
    names = {name: [LINUX, SBSA] for name in FEATURES}
    return put_data(
        tmp_path / "data",
        cuda("12.9.1", features=FEATURES, packages=names),
        cuda("12.6.3", features=FEATURES, packages=names),
        MATH,
    )


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    return tmp_path / "mine"


def fixup(name: str, **more: Any) -> dict[str, Any]:
    return {"package": name, "reason": "ours", "reference": "our wiki", **more}


def built(base: Store, *overlays: Path, **request: Any) -> PackageSet:
    result = build(read_set_data(base, [Store(path) for path in overlays]), **request)
    assert check_set(result) == []
    return result


# -- fixups


def test_fixup_declares_outputs_and_rest_is_in_out(base: Store, overlay: Path) -> None:
    before = built(base).packages["libx"]
    assert before.outputs == ("out", "doc", "bin", "include", "lib", "static")
    put_policy(overlay, "fixups", fixups=[fixup("libx", outputs=["out", "static", "lib"])])
    built_entry = built(base, overlay).packages["libx"]
    assert built_entry.outputs == ("out", "lib", "static"), "sorted, independent of the fixup"
    assert {name: part.files for name, part in built_entry.contents.items()} == {
        "out": 3,
        "lib": 1,
        "static": 1,
    }
    assert built_entry.propagates == {"out": ("lib",)}
    assert built_entry.overlay == ("fixup: ours",)
    assert before.overlay == ()


def test_declared_output_without_files_is_broken(base: Store, overlay: Path) -> None:
    put_policy(overlay, "fixups", fixups=[fixup("libx", outputs=["out", "dev", "python"])])
    built_entry = build(read_set_data(base, [Store(overlay)])).packages["libx"]
    assert (built_entry.status, built_entry.reasons[0].code) == ("broken", "outputs-empty")
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
    built_entry = build(read_set_data(base, [Store(overlay)])).packages
    reasons = {name: built_entry[name].reasons for name in ("libx", "cuda_cccl")}
    assert reasons["libx"][0].model_dump() == {
        "code": "marked-broken",
        "text": "crashes here",
        "subject": "libx",
        "source": "overlay policy/fixups.json",
    }
    assert built_entry["cuda_cccl"].status == "withheld"
    assert reasons["cuda_cccl"][0].code == "withheld-by-policy"
    assert ("cuda_nvcc", "runtime") in {(d.attr, d.kind) for d in built_entry["liby"].depends}
    assert {name: built_entry[name].overlay for name in ("libx", "liby", "cuda_nvcc")} == {
        "libx": ("fixup: ours",),
        "liby": ("fixup: ours",),
        "cuda_nvcc": (),
    }


def test_missing_fixup_dependency_breaks_package(base: Store, overlay: Path) -> None:
    put_policy(overlay, "fixups", fixups=[fixup("liby", depends=["cuda_gdb"])])
    built_entry = build(read_set_data(base, [Store(overlay)])).packages["liby"]
    assert (built_entry.status, built_entry.reasons[0].code) == ("broken", "dependency-unavailable")
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
    data = read_set_data(base, [Store(overlay)])
    built_entry = build(data, label, platform).packages["libx"]
    assert (built_entry.status == "broken") is applies
    assert bool(built_entry.overlay) is applies


def test_fixup_applies_to_package_by_any_name() -> None:
    policies = {"fixups": {"fixups": [fixup("cuda_cccl", broken="b")]}}
    data = set_data_of(cuda("13.4.2", cccl=[LINUX]), policies=policies)
    assert package(data, "cccl", cuda="13.4.2").status == "broken"
    policies = {"fixups": {"fixups": [fixup("cusparselt", broken="b")]}}
    cusparselt = Release("cusparselt", "0.6.3", {"libcusparse_lt": [LINUX]})
    data = set_data_of(cuda(), cusparselt, policies=policies)
    assert package(data, "libcusparse_lt").status == "broken"


def test_fixup_of_unknown_package_is_a_warning(base: Store, overlay: Path) -> None:
    put_policy(overlay, "fixups", fixups=[fixup("unheard_of", broken="b")])
    built_entry = built(base, overlay)
    assert [(d.code, d.subject) for d in built_entry.diagnostics] == [
        ("unknown-package", "unheard_of")
    ]


def test_misspelled_names_in_fixups_are_errors_with_suggestion(base: Store, overlay: Path) -> None:
    """A fixup with a misspelled platform would apply to no package."""
    fixups = [
        fixup("libx", platform="linux-x86-64", broken="b"),
        fixup("cuda_cudrt", broken="b"),
        fixup("libcutensor", broken="b"),
    ]
    put_policy(overlay, "fixups", fixups=fixups, urls={"cublasm": "https://x.test/"})
    entry = {"reason": "r", "reference": "r"}
    put_policy(overlay, "withheld", withheld={"libz": entry, "cuda_nvc": entry})
    with pytest.raises(InvalidFileError) as raised:
        build(read_set_data(base, [Store(overlay)]))
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
        put_policy(
            tmp_path / name, "withheld", withheld={"liby": {"reason": name, "reference": "r"}}
        )
    built_entry = built(base, tmp_path / "one", tmp_path / "two").packages
    assert built_entry["libx"].outputs == ("out", "bin")
    assert built_entry["liby"].reasons[0].text == "two"
    built_entry = built(base, tmp_path / "two", tmp_path / "one").packages
    assert built_entry["libx"].outputs == ("out", "lib")
    assert built_entry["liby"].reasons[0].text == "one"


# -- policy


def test_null_removes_withheld_entry(base: Store, overlay: Path) -> None:
    assert built(base).packages["libnvsdm"].status == "withheld"
    put_policy(overlay, "withheld", withheld={"libnvsdm": None})
    built_entry = built(base, overlay).packages["libnvsdm"]
    assert built_entry.status == "available"
    assert built_entry.overlay == ("policy/withheld.json",)


def test_null_of_unknown_entry_suggests_nearest(base: Store, overlay: Path) -> None:
    put_policy(overlay, "withheld", withheld={"libnvsd": None})
    with pytest.raises(UnknownNameError, match="no entry of withheld") as raised:
        read_set_data(base, [Store(overlay)])
    assert "did you mean libnvsdm" in (raised.value.hint or "")


def test_overlay_entries_name_overlay_as_source(base: Store, overlay: Path) -> None:
    entry = {"reason": "ours", "reference": "r"}
    put_policy(overlay, "withheld", withheld={"libx": entry})
    put_policy(
        overlay,
        "requirements",
        requirements=[{"package": "liby", "kind": "broken", "needs_cuda": {"min": "13"}, **entry}],
    )
    put_policy(overlay, "outputs", collapse={"cuda_cccl": None, "cuda_nvcc": entry})
    terms = {**entry, "spdx": None, "url": None, "free": False, "redistributable": None}
    other = {"cuda_nvcc": {**terms, "short_name": "Ours"}}
    default = {**terms, "short_name": "Unknown"}
    put_policy(overlay, "licenses", default=default, packages=other)
    limit = {"redist": "cublasmp", "releases": {}, "cuda": {"max": "11.8"}, **entry}
    put_policy(overlay, "constraints", constraints=[limit])
    put_policy(overlay, "meta", packages={"cuda_cudart": {**entry, "homepage": "https://x"}})
    data = read_set_data(base, [Store(overlay)])
    built_entry = build(data, pins={"cublasmp": "0.5.0"}).packages
    assert built_entry["libx"].reasons[0].source == "overlay policy/withheld.json"
    assert built_entry["liby"].reasons[0].source == "overlay policy/requirements.json"
    assert built_entry["liby"].reasons[0].text == "ours: requires CUDA 13 or newer"
    assert built_entry["cuda_nvcc"].license.source == "overlay policy/licenses.json"
    assert built_entry["cuda_gdb"].license.short_name == "Unknown"
    assert built_entry["cuda_cudart"].meta.homepage == "https://x"
    assert {
        name: built_entry[name].overlay for name in ("libx", "liby", "cuda_nvcc", "cuda_cudart")
    } == {
        "libx": ("policy/withheld.json",),
        "liby": ("policy/requirements.json",),
        "cuda_nvcc": ("policy/outputs.json", "policy/licenses.json"),
        "cuda_cudart": ("policy/meta.json",),
    }
    assert built_entry["cuda_cccl"].collapsed is None
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
    put_data(
        overlay,
        Release(
            "mine",
            "1.2.0",
            {"mylib": [f"{LINUX}/cuda12"]},
            {"mylib": library("libmine.so.1", "libx.so.1")},
        ),
    )
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
    archive = built(base, overlay).packages["mylib"].archive
    assert archive is not None
    assert archive.url is None


def test_overlay_release_replaces_same_label(base: Store, overlay: Path) -> None:
    put_data(overlay, Release("cublasmp", "0.5.0", {"libcublasmp": [f"{SBSA}/cuda12"]}))
    assert built(base, overlay).packages["libcublasmp"].status == "unsupported"
    assert built(base, overlay, platform=SBSA).packages["libcublasmp"].status == "available"


# -- errors


def renames(**names: str) -> dict[str, Any]:
    return {old: {"to": new, "since": "1"} for old, new in names.items()}


@pytest.mark.parametrize(
    ("subject", "content", "message"),
    [
        ("names", {"renames": renames(a="b", b="a")}, ".a: is renamed in a circle: a -> b -> a"),
        ("names", {"renames": renames(a="a")}, ".a: is renamed in a circle: a -> a"),
        (
            "names",
            {"renames": renames(a="b"), "aliases": {"b": {"to": "a"}}},
            "is renamed in a circle",
        ),
        (
            "names",
            {"aliases": {"a": {"to": "b"}}, "renames": renames(a="c")},
            ".a: is both an alias and an old name",
        ),
        (
            "constraints",
            [{"redist": "x", "releases": {}, "cuda": {"min": "13", "max": "12.9"}}],
            "[0].cuda: begins at 13, after its end 12.9",
        ),
        (
            "requirements",
            [{"package": "x", "kind": "broken", "needs_packages": {"y": {"min": "2", "max": "1"}}}],
            "[0].needs_packages.y: begins at 2, after its end 1",
        ),
        (
            "fixups",
            [{"package": "x", "cuda": {"min": "12.9.1", "max": "12.8"}}],
            "[0].cuda: begins at 12.9.1",
        ),
        (
            "fixups",
            [{"package": "x", "outputs": ["lib", "out"]}],
            "[0]: declares outputs without `out` first, or an output twice",
        ),
        (
            "fixups",
            [{"package": "x", "outputs": ["out", "lib", "lib"]}],
            "[0]: declares outputs without `out` first",
        ),
    ],
)
def test_contradictory_policies_are_refused(subject: str, content: Any, message: str) -> None:
    policy = content if isinstance(content, dict) else {subject: content}
    data = set_data_of(cuda(), policies=_with_reasons({subject: policy}))
    path = subject if isinstance(content, dict) else f"{subject}.{subject}"
    message = message if message.startswith("is ") else path + message
    with pytest.raises(InvalidFileError) as raised:
        build(data)
    assert message in raised.value.message
    assert raised.value.exit_code == 5


def _with_reasons(value: Any, depth: int = 0) -> Any:
    """Add the required reason to every entry of a policy."""
    if isinstance(value, list):
        return [{**item, "reason": "r", "reference": "r"} for item in value]
    if isinstance(value, dict) and depth == 2:
        return {name: {**item, "reason": "r", "reference": "r"} for name, item in value.items()}
    return {name: _with_reasons(item, depth + 1) for name, item in value.items()}


def test_narrow_bounds_are_accepted() -> None:
    rule = {"redist": "x", "releases": {"min": "0.7.0", "max": "0.7"}, "cuda": {"max": "12"}}
    data = set_data_of(cuda(), policies=_with_reasons({"constraints": {"constraints": [rule]}}))
    assert data.problems == ()


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
        read_set_data(base, [Store(overlay)])
    assert f"policy/{subject}.json (with {path}" in raised.value.message
    assert message in raised.value.message


def test_invalid_overlay_folder_and_unknown_file_are_refused(base: Store, overlay: Path) -> None:
    overlay.mkdir()
    with pytest.raises(UsageError, match=r"has no manifests/, features/ or policy/ folder"):
        read_set_data(base, [Store(overlay)])
    put_policy(overlay, "fixup", fixups=[])
    with pytest.raises(UnknownNameError, match=r"no policy file is called 'fixup\.json'") as raised:
        read_set_data(base, [Store(overlay)])
    assert "did you mean fixups.json" in (raised.value.hint or "")


def test_broken_overlay_manifest_is_named_with_folder(base: Store, overlay: Path) -> None:
    put_data(overlay, cuda())
    path = overlay / "manifests/cuda/redistrib_12.9.1.json"
    path.write_bytes(b"{}")
    with pytest.raises(InvalidFileError) as raised:
        read_set_data(base, [Store(overlay)])
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
    texts = [d.text for d in built_entry.diagnostics if d.code == "features-missing"]
    assert texts[0].startswith("2 packages were not examined")


def test_manifest_that_differs_from_lock_is_a_warning(base: Store) -> None:
    """A hand-edited manifest differs from its lock entry."""
    path = base.manifests("cuda").path_of(Version.parse("12.9.1"))
    entry = LockEntry(sha256=sha256_of(path.read_bytes()), size=path.stat().st_size)
    base.update_lock({"cuda": {"12.9.1": entry}})
    assert build(read_set_data(base)).diagnostics == ()
    path.write_bytes(path.read_bytes() + b"\n")
    (diagnostic,) = build(read_set_data(base)).diagnostics
    assert (diagnostic.level, diagnostic.code, diagnostic.subject) == (
        "warning",
        "edited-manifest",
        "cuda",
    )
    assert "redistrib_12.9.1.json differs from the downloaded file" in diagnostic.text
    assert "download-manifests --redist cuda --version 12.9.1" in diagnostic.text


def test_set_data_is_the_same_in_memory_and_on_disk(base: Store) -> None:
    names = {name: [LINUX, SBSA] for name in FEATURES}
    memory: SetData = set_data_of(
        cuda("12.9.1", features=FEATURES, packages=names),
        cuda("12.6.3", features=FEATURES, packages=names),
        MATH,
    )
    assert build(memory).packages == built(base).packages
