"""What changed between two manifests, as a reviewer reads it."""

import json
from typing import Any

import pytest
from support.manifests import manifest

from cudaredist.diffs import manifest_changes
from cudaredist.manifests import read_manifest


def changes(old: bytes, new: bytes) -> list[str]:
    return list(manifest_changes(read_manifest(old), read_manifest(new)))


def edited(**values: Any) -> bytes:
    """The usual manifest with values set by dotted path."""
    document = json.loads(manifest())
    for path, value in values.items():
        *parents, last = path.split("__")
        place = document
        for step in parents:
            place = place[step.replace("_x86", "-x86")]
        place[last] = value
    return json.dumps(document).encode()


def test_nothing_changed() -> None:
    assert changes(manifest(), manifest()) == []


def test_formatting_is_no_change() -> None:
    assert changes(manifest(), json.dumps(json.loads(manifest())).encode()) == []


@pytest.mark.parametrize(
    ("new", "line"),
    [
        pytest.param(edited(release_date="2026-01-01"), "release_date: 2025-06-04 -> 2026-01-01"),
        pytest.param(edited(release_product="x"), "release_product: cuda -> x"),
        pytest.param(
            edited(cuda_cudart__version="12.9.2"), "cuda_cudart: version 12.9.1 -> 12.9.2"
        ),
        pytest.param(
            edited(cuda_cudart__license="MIT"), "cuda_cudart: license 'CUDA Toolkit' -> 'MIT'"
        ),
        pytest.param(manifest(platforms=("linux-x86_64",)), "cuda_cudart: linux-sbsa: removed"),
        pytest.param(
            manifest(platforms=("linux-x86_64", "linux-sbsa", "linux-all")),
            "cuda_cudart: linux-all: added",
        ),
        pytest.param(manifest(packages=("cuda_cudart", "cuda_nvcc")), "cuda_nvcc: added"),
        pytest.param(manifest(packages=("cuda_nvcc",)), "cuda_cudart: removed"),
        pytest.param(edited(more={"a": 1}), "keys that are not understood changed"),
    ],
)
def test_names_the_change(new: bytes, line: str) -> None:
    assert line in changes(manifest(), new)


def test_rebuilt_archives_show_their_hashes() -> None:
    lines = changes(
        manifest(platforms=("linux-x86_64",)), manifest(platforms=("linux-x86_64",), salt="x")
    )
    assert [line.rpartition(" -> ")[0].split()[:3] for line in lines] == [
        ["cuda_cudart:", "linux-x86_64:", "sha256"],
        ["cuda_cudart:", "linux-x86_64:", "md5"],
    ]


def test_early_versions_are_told_apart() -> None:
    def early(*versions: str) -> bytes:
        places = {v: {"linux-x86_64": f"a/a-{v}.tar.gz"} for v in versions}
        return json.dumps({"a": places}).encode()

    assert changes(early("1.0", "1.1"), early("1.0", "1.2")) == [
        "a: version 1.0, 1.1 -> 1.0, 1.2",
        "a: 1.1.linux-x86_64: removed",
        "a: 1.2.linux-x86_64: added",
    ]
