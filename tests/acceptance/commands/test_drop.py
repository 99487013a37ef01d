"""drop: manifests, features, tables, symbols, lock, sets, index, and what remains."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from conftest import REPOSITORY, Run
from support.running import expect_error, expect_output
from support.set_inputs import LINUX, Release, cuda, library, put_data

from cudaredist.store.data_folder import Store

X = library("libx.so.1")
DATA = Path("data")
FEATURES = dict.fromkeys(["cuda_nvcc", "cuda_cudart"], X)


@pytest.fixture
def data(run: Run) -> Run:
    """Return a runner in a folder with two releases of CUDA and one of cuDNN, and their sets."""
    releases = [cuda(label, [LINUX], features=FEATURES) for label in ("12.6.3", "12.9.1")]
    cudnn = Release("cudnn", "9.1.0", {"cudnn": [f"{LINUX}/cuda12"]}, {"cudnn": X})
    put_data(DATA, *releases, cudnn)
    assert run("build").exit_code == 0
    return run


def shipped(run: Run) -> None:
    """Copy the tables, symbols and wheels of CUDA 12.6.3 that are shipped."""
    for name in ("nvcc_compat.json", "gpus.json"):
        shutil.copy(REPOSITORY / "data" / name, DATA / name)
    (DATA / "symbols").mkdir()
    for name in ("libcudart.so.12", "libnvJitLink.so.12", "libcudart.so.13"):
        shutil.copy(REPOSITORY / f"data/symbols/{name}.json", DATA / "symbols")


def files() -> set[str]:
    return {str(path) for path in Path().rglob("*.json")}


def test_check_writes_nothing(data: Run) -> None:
    before = {path: Path(path).read_bytes() for path in files()}
    result = data("drop", "cuda@12.6.3", "--check")
    expect_output(result, 1, "would-remove data/manifests/cuda/redistrib_12.6.3.json")
    expect_output(result, 1, "would-remove build/linux-x86_64/cuda-12.6.3.json", "would-write")
    assert {path: Path(path).read_bytes() for path in files()} == before


def test_dropped_release_is_in_no_file(data: Run) -> None:
    shipped(data)
    data("build")
    before = files()
    assert data("drop", "cuda@12.6.3").exit_code == 0
    assert before - files() == {
        "build/linux-x86_64/cuda-12.6.3.json",
        "data/features/cuda/feature_12.6.3.json",
        "data/manifests/cuda/redistrib_12.6.3.json",
    }
    assert "12.6.3" not in Path("build/index.json").read_text()
    compat = json.loads((DATA / "nvcc_compat.json").read_text())
    gpus = json.loads((DATA / "gpus.json").read_text())
    assert "12.6.3" not in compat["releases"]
    assert "12.6.3" not in gpus["sources"]
    assert "12.9.2" in compat["releases"]
    assert data("build", "--check").exit_code == 0
    assert data("validate", *files()).exit_code in {0, 1}


def test_symbols_of_another_channel_stay(data: Run) -> None:
    shipped(data)
    before = (DATA / "symbols/libcudart.so.12.json").read_bytes()
    data("drop", "cuda@12.6.3")
    assert (DATA / "symbols/libcudart.so.12.json").read_bytes() == before


def test_rows_of_release_that_another_channel_has_stay(data: Run) -> None:
    shipped(data)
    wheels = DATA / "manifests/wheels/cuda"
    wheels.mkdir(parents=True)
    shutil.copy(DATA / "manifests/cuda/redistrib_12.6.3.json", wheels)
    before = (DATA / "gpus.json").read_bytes()
    data("drop", "cuda@12.6.3")
    assert (DATA / "gpus.json").read_bytes() == before
    # The other channel is the only one with CUDA 12.6.3, and is named.
    assert data("drop", "cuda@12.6.3", "--channel", "wheels").exit_code == 0
    assert (DATA / "gpus.json").read_bytes() != before


def test_symbols_and_tables_of_wheels(run: Run) -> None:
    folder = REPOSITORY / "data"
    for part in ("manifests", "features"):
        for product in ("cuda", "cudnn"):
            shutil.copytree(folder / part / "wheels" / product, DATA / part / "wheels" / product)
    shipped(run)
    libraries = DATA / "symbols"
    result = run("drop", "cuda@12.6.3", "cuda@13.0.2", "--json")
    assert result.exit_code == 0
    changed = {one["path"] for one in json.loads(result.stdout)["files"]}
    assert {str(path) for path in libraries.iterdir()} <= changed
    assert not any("12.6.3" in path.read_text() for path in libraries.iterdir())
    store = Store(DATA, "wheels")
    assert "12.6.3" not in map(str, store.manifests("cuda").labels())
    findings = json.loads(run("check", "--offline", "--json").stdout)["findings"]
    assert [one for one in findings if one["release"] in {"12.6.3", "13.0.2"}] == []


def test_last_release_removes_tables(data: Run) -> None:
    shutil.copy(REPOSITORY / "data/nvcc_compat.json", DATA / "nvcc_compat.json")
    table = DATA / "nvcc_compat.json"
    document = json.loads(table.read_text())
    document["releases"] = {"12.6.3": document["releases"]["12.6.3"]}
    table.write_text(json.dumps(document))
    assert data("drop", "cuda@12.6.3").exit_code == 0
    assert not table.exists()


def test_lock_forgets_release(run: Run, data: Run) -> None:
    lock = Store(DATA).lock_path
    entry = {"sha256": "0" * 64, "size": 3}
    lock.write_text(json.dumps({"schema_version": 1, "redists": {"cuda": {"12.6.3": entry}}}))
    assert run("check", "--offline").exit_code != 0
    assert data("drop", "cuda@12.6.3").exit_code == 0
    assert json.loads(lock.read_text())["redists"] == {}
    # A run that was interrupted before it wrote the lock is completed.
    lock.write_text(json.dumps({"schema_version": 1, "redists": {"cuda": {"12.6.3": entry}}}))
    assert data("drop", "cuda@12.6.3").exit_code == 0
    assert json.loads(lock.read_text())["redists"] == {}


def test_changed_set_is_kept_and_named(data: Run) -> None:
    path = Path("build/linux-x86_64/cuda-12.6.3.json")
    path.write_text(f"{path.read_text()}\n")
    result = data("drop", "cuda@12.6.3")
    assert f"{path} was changed, so it is kept" in result.stderr
    assert path.exists()


@pytest.mark.parametrize("path", ["../precious/thesis.json", "{cwd}/precious/thesis.json"])
def test_index_with_a_path_outside_of_its_folder_is_refused(data: Run, path: str) -> None:
    precious = Path("precious/thesis.json")
    put_in_index(precious, path.format(cwd=Path.cwd()))
    assert data("validate", "build/index.json").exit_code == 5
    before = files()
    expect_error(data("drop", "cuda@12.6.3"), 5, "is not a relative path without `..`")
    assert files() == before


def test_set_behind_a_link_out_of_the_folder_is_kept_and_named(data: Run) -> None:
    precious = Path("precious/thesis.json")
    put_in_index(precious, "linked/thesis.json")
    Path("build/linked").symlink_to("../precious")
    call = ("export", "env", "build/index.json", "--output", "env")
    expect_error(data(*call), 5, "leads out of the folder")
    result = data("drop", "cuda@12.6.3")
    assert result.exit_code == 0
    message = "build/linked/thesis.json leads out of build by a link, so it is kept"
    assert message in result.output
    assert precious.exists()


def put_in_index(file: Path, path: str) -> None:
    """Write a file, and name it in the index as the set of CUDA 12.6.3."""
    file.parent.mkdir()
    file.write_text('{"channel": "redist", "my": "thesis"}\n')
    index = json.loads(Path("build/index.json").read_text())
    (entry,) = [one for one in index["sets"] if one["cuda"] == "12.6.3"]
    entry |= {"path": path, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    Path("build/index.json").write_text(json.dumps(index))


def test_sets_with_a_dropped_library_are_named(data: Run) -> None:
    result = data("drop", "cudnn@9.1.0")
    assert result.exit_code == 0
    for label in ("12.6.3", "12.9.1"):
        name = f"build/linux-x86_64/cuda-{label}.json has cudnn 9.1.0: build it again"
        assert name in result.stderr


def test_set_that_gets_the_name_of_its_minor_is_named(data: Run) -> None:
    put_data(DATA, cuda("12.9.0", [LINUX], features=FEATURES))
    assert data("build", "--cuda", "all").exit_code == 0
    message = "build/linux-x86_64/cuda-12.9.0.json is now the set for cudaPackages_12_9: build it"
    assert message not in data("drop", "cuda@12.6.3").stderr
    expect_error(data("drop", "cuda@12.9.1"), 0, message)
    assert data("build", "--check").exit_code == 1


def test_declarations_of_a_dropped_release_are_named(data: Run) -> None:
    Path("cudaredist.toml").write_text(
        'data-dir = "data"\n[[sets]]\ncuda = ["12.6", "12.9"]\nplatforms = ["linux-x86_64"]\n'
        'redist = {cudnn = "9.1"}\naliases = {old = "12.6"}\n'
    )
    result = data("drop", "cuda@12.6.3", "cudnn@9.1.0")
    assert result.exit_code == 0
    for line, words in ((3, "cuda 12.6"), (5, "cudnn 9.1"), (6, "cuda 12.6")):
        assert f"cudaredist.toml:{line}: " in result.stderr
        assert f"names {words}, which is no longer local" in result.stderr


def test_unknown_releases_are_refused(data: Run) -> None:
    result = expect_error(
        data("drop", "cuda@12.6.4"), 2, "no local release of cuda", "12.6.3, 12.9.1"
    )
    assert "drop cuda@" not in result.stderr
    expect_error(data("drop", "cuda"), 2, "expected NAME@LABEL")
    expect_error(data("drop", "cudn@9.1.0"), 2, "no local redistributable", "cudnn")
    assert data("drop", "cuda@12.6.3", "cuda@13.0.0").exit_code == 2
    assert (DATA / "manifests/cuda/redistrib_12.6.3.json").exists()
