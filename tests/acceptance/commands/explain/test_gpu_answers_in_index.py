"""Tests of the answers of `explain gpu` that the index stores."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import REPOSITORY, Run
from support.patching import Patch
from support.running import report
from support.set_inputs import LINUX, Release, cuda, put_data, with_code

from cudaredist.commands.explain.answer_gpus import answer_and_store
from cudaredist.commands.explain.gpu_answer import stored_answers
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index

READ = "cudaredist.commands.explain.answer_gpus.read_coverage"
SHIPPED = "cudaredist.commands.explain.gpu_answer.shipped_data"


def cublas(label: str) -> Release:
    features = {"libcublas": with_code({"sm_70 sm_80": 5})}
    return cuda(label, [LINUX], features=features, libcublas=[LINUX])


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the shipped data. Its files count as changed long ago."""
    monkeypatch.setattr("cudaredist.store.documents._SETTLED_NS", -(10**12))
    root = tmp_path / "data"
    put_data(root, cublas("12.9.1"))
    for name in ("gpus.json", "policy/gpus.json", "policy/drivers.json", "policy/constraints.json"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes((REPOSITORY / "data" / name).read_bytes())
    monkeypatch.setattr(SHIPPED, lambda: root)
    return root


def test_second_answer_reads_no_device_code(
    run: Run, data: Path, patch: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = patch.count(READ)
    call = ("explain", "gpu", "V100", "--sources", "--data-dir", data, "--no-shipped-data")
    text, document = run(*call).stdout, report(run(*call, "--json"))
    assert (run(*call).stdout, report(run(*call, "--json"))) == (text, document)
    assert "12.9.1" in text
    assert reads.number == 1
    # Hints have the options of the call, which are not a part of the answer.
    renamed = ("explain", "gpu", "10.1", "--no-shipped-data", "--data-dir")
    other = run(*renamed, data).stdout
    assert f"--data-dir {data}" in other
    monkeypatch.chdir(data.parent)
    assert run(*renamed, "data").stdout == other.replace(f"--data-dir {data}", "--data-dir data")
    assert reads.number == 2


def add_release(data: Path) -> None:
    put_data(data, cublas("12.9.2"))


def edit_table(data: Path) -> None:
    path = data / "gpus.json"
    path.write_text(path.read_text().replace("V100S", "V100X"))


def edit_policy(data: Path) -> None:
    path = data / "policy/gpus.json"
    document = json.loads(path.read_text())
    document["overlay"]["7.0"]["reason"] = "another reason"
    path.write_text(json.dumps(document))


def edit_drivers(data: Path) -> None:
    path = data / "policy/drivers.json"
    document = json.loads(path.read_text())
    document["last_branches"]["Volta"]["branch"] = "999"
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (add_release, "CUDA 12.9.2 is the newest known release"),
        (edit_table, "V100X"),
        (edit_policy, "another reason"),
        (edit_drivers, "its last driver branch is 999"),
    ],
)
def test_answer_follows_the_data(
    run: Run, data: Path, edit: Callable[[Path], None], words: str
) -> None:
    call = ("explain", "gpu", "V100", "--sources", "--data-dir", data, "--no-shipped-data")
    assert words not in run(*call).stdout
    edit(data)
    assert words in run(*call).stdout


def test_answer_without_the_shipped_data_follows_its_policies(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / "shipped"
    shutil.copytree(REPOSITORY / "data/policy", shipped / "policy")
    for name in (SHIPPED, "cudaredist.store.data_folder.shipped_data"):
        monkeypatch.setattr(name, lambda: shipped)
    (data / "policy/drivers.json").unlink()
    call = ("explain", "gpu", "V100", "--sources", "--data-dir", data, "--no-shipped-data")
    assert "its last driver branch is 999" not in run(*call).stdout
    edit_drivers(shipped)
    assert "its last driver branch is 999" in run(*call).stdout


def test_policy_of_releases_is_a_part_of_the_data(run: Run, data: Path, patch: Patch) -> None:
    reads = patch.count(READ)
    call = ("explain", "gpu", "V100", "--data-dir", data, "--no-shipped-data")
    run(*call)
    path = data / "policy/constraints.json"
    path.write_bytes(path.read_bytes() + b"\n")
    run(*call)
    assert reads.number == 2


def test_answers_of_earlier_data_are_not_stored(data: Path, tmp_path: Path) -> None:
    store, cache = Store(data), Cache(tmp_path / "cache")
    earlier = Index(store, cache)
    add_release(data)
    Index(store, cache)
    answers = answer_and_store(["7.0"], store, earlier)
    assert stored_answers(["7.0"], store, Index(store, cache)) == {}
    answer_and_store(["7.0"], store, Index(store, cache))
    assert stored_answers(["7.0"], store, Index(store, cache)).keys() == answers.keys()


def test_answers_are_those_of_a_channel_and_of_layers(data: Path, tmp_path: Path) -> None:
    store, cache = Store(data), Cache(tmp_path / "cache")
    answers = answer_and_store(["7.0", "9.0a"], store, Index(store, cache))
    index = Index(store, cache)
    assert stored_answers(["7.0", "9.0a", "8.0"], store, index) == answers
    assert stored_answers(["7.0"], Store(data, "wheels"), index) == {}
    assert stored_answers(["7.0"], Store(data, base=store), index) == {}


def test_answer_that_cannot_be_stored_is_given(data: Path, tmp_path: Path) -> None:
    store, cache = Store(data), tmp_path / "cache"
    index = Index(store, Cache(cache))
    (path,) = (path for path in cache.rglob("*") if path.is_file() and path.stat().st_size > 10_000)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - 4096)
        file.write(bytes(4096))
    assert answer_and_store(["7.0"], store, index)["7.0"].coverage
    assert answer_and_store(["7.0"], store, Index(store, Cache(cache)))["7.0"].coverage
