"""Tests of suggestions for mistyped names."""

import pytest

from cudaredist.similar_names import misspelled_names, nearest_name, similar_names, typed_release

COMMANDS = ["manifest", "download-manifests", "process-manifests", "update-gpus", "build"]
SONAMES = ["libcublas.so.12", "libcublasLt.so.12", "libcublas.so.13", "libnppif.so.13"]


@pytest.mark.parametrize(
    ("name", "known", "similar"),
    [
        ("manifests", COMMANDS, ("manifest", "process-manifests", "download-manifests")),
        ("process", COMMANDS, ("process-manifests",)),
        ("upd", COMMANDS, ("update-gpus",)),
        ("up", COMMANDS, ()),
        ("BUIDL", COMMANDS, ("build",)),
        ("cudnn9", ["cuda", "cudnn"], ("cudnn", "cuda")),
        ("libnvrtc", ["cuda_nvcc", "cuda_nvrtc"], ("cuda_nvrtc",)),
        ("nvidia-cublas-cu12", ["libcublas", "libcufft"], ("libcublas",)),
        ("locks", ["lock", "mirror-lock", "features"], ("lock", "mirror-lock")),
        ("nine", ["orin", "volta"], ()),
        ("", ["orin"], ()),
        ("orin", [], ()),
    ],
)
def test_similar_names_are_the_likeliest_first(
    name: str, known: list[str], similar: tuple[str, ...]
) -> None:
    assert similar_names(name, known) == similar


@pytest.mark.parametrize(
    ("name", "misspelled"),
    [
        ("libcublass.so.12", ("libcublas.so.12", "libcublasLt.so.12", "libcublas.so.13")),
        ("libcublaslt.so.12", ("libcublasLt.so.12", "libcublas.so.12", "libcublas.so.13")),
        ("libfoo.so.1", ()),
    ],
)
def test_misspelled_names_are_nearly_equal(name: str, misspelled: tuple[str, ...]) -> None:
    assert misspelled_names(name, SONAMES) == misspelled


def test_nearest_name_may_be_very_different() -> None:
    assert nearest_name("xyz", ["build"]) == "build"
    assert nearest_name("xyz", []) is None


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("12,9", "12.9"),
        ("v13.0", "13.0"),
        ("CUDA 12.8.1", "12.8.1"),
        ("cuda@12.8", "12.8"),
        ("cuda-toolkit-12-8", "12.8"),
        ("cu128", "12.8"),
        ("cu12", "12"),
        ("cudnn9", "cudnn9"),
        ("cublas", "cublas"),
        ("12.x", "12.x"),
        ("", ""),
    ],
)
def test_release_of_other_programs_is_read(text: str, release: str) -> None:
    assert typed_release(text) == release
