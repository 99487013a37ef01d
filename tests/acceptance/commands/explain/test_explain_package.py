"""Tests of `explain package`: a package across releases and platforms."""

import json
from pathlib import Path

import pytest
from conftest import Run
from support.small_sets import make_data


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a data folder with one examined release of CUDA."""
    root = tmp_path_factory.mktemp("explained")
    make_data(root)
    return root / "data"


def test_explain_package_shows_versions_and_needed_libraries(run: Run, data: Path) -> None:
    result = run("explain", "package", "libcublas", "--data-dir", data)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        "redist  version   platform      releases",
        "cuda    12.9.1.5  linux-sbsa    12.9.1",
        "cuda    12.9.1.5  linux-x86_64  12.9.1",
    ]
    assert "libcublas 12.9.1.5 (cuda 12.9.1) for linux-x86_64" in lines
    assert "  sonames: libcublas.so.12 libcublasLt.so.12" in lines
    assert "  needed libraries: libc.so.6 libcublasLt.so.12 libcuda.so.1" in lines


def test_explain_package_names_dependencies(run: Run, data: Path) -> None:
    document = json.loads(
        run("explain", "package", "libcusolver", "--data-dir", data, "--json").stdout
    )
    assert (document["kind"], document["asked"]) == ("package", "libcusolver")
    (archive,) = document["archives"]
    assert archive["depends"] == {"libcublas": ["libcublas.so.12"]}
    assert archive["is_examined"] is True
    assert set(archive["outputs"]) == {"include", "lib", "out"}


def test_explain_package_without_features_reports_not_examined(run: Run, data: Path) -> None:
    path = data / "features/cuda/feature_12.9.1.json"
    content = path.read_bytes()
    path.unlink()
    try:
        result = run("explain", "package", "libcublas", "--data-dir", data)
    finally:
        path.write_bytes(content)
    assert result.stdout.count("  not examined\n") == 2


def test_explain_package_of_unknown_name_suggests_package(run: Run, data: Path) -> None:
    result = run("explain", "package", "libcublass", "--data-dir", data)
    assert result.exit_code == 2
    assert "did you mean libcublas" in result.output
