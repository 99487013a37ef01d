"""Entries of policies in the index: equal to those of the models, with the same errors."""

import json
from pathlib import Path

import pytest

from cudaredist.errors import InvalidFileError
from cudaredist.formats.library_policy import LibraryPolicy
from cudaredist.formats.meta_policy import MetaPolicy
from cudaredist.formats.output_policy import OutputPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.documents import STORED_POLICIES
from cudaredist.store.facts_index import Index
from cudaredist.store.indexed_policies import library_rules, main_programs, output_rules


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Copy the policies with entries in the index."""
    folder = tmp_path / "data/policy"
    folder.mkdir(parents=True)
    for name in STORED_POLICIES:
        data = (shipped_data() / f"policy/{name}.json").read_bytes()
        (folder / f"{name}.json").write_bytes(data)
    return folder.parent


def index_of(data: Path) -> Index:
    return Index(Store(data), Cache(data.parent / "cache"))


def entries_of(index: Index) -> tuple[object, ...]:
    return library_rules(index), output_rules(index), main_programs(index)


def test_entries_of_index_are_those_of_the_policy(data: Path) -> None:
    index = index_of(data)
    libraries = read_own_file(index.store.read_policy("libraries"), LibraryPolicy)
    expected = [
        (one.owner, one.provider, one.names, one.packages, one.symbols, one.reason)
        for one in libraries.external
    ]
    assert [tuple(one) for one in library_rules(index).external] == expected
    outputs = read_own_file(index.store.read_policy("outputs"), OutputPolicy)
    drops = [
        (one.package, one.versions.min, one.versions.max, one.source)
        for one in outputs.normalise
        if one.op == "drop"
    ]
    assert [tuple(one) for one in output_rules(index).drops] == drops
    assert output_rules(index).collapsed == outputs.collapse.keys()
    meta = read_own_file(index.store.read_policy("meta"), MetaPolicy)
    programs = {name: one.main_program for name, one in meta.packages.items() if one.main_program}
    assert main_programs(index) == programs


def test_policies_that_the_index_does_not_have_are_read(data: Path) -> None:
    expected = entries_of(index_of(data))
    for path in (data / "policy").iterdir():
        path.unlink()
    assert entries_of(index_of(data)) == expected


def test_policy_of_data_folder_replaces_the_shipped_one(data: Path) -> None:
    path = data / "policy/outputs.json"
    policy = json.loads(path.read_bytes())
    path.write_text(json.dumps(policy | {"collapse": {}}))
    assert not output_rules(index_of(data)).collapsed


def test_broken_policy_is_an_error(data: Path) -> None:
    (data / "policy/outputs.json").write_text('{"schema_version": 1}')
    index = index_of(data)
    with pytest.raises(InvalidFileError, match="policy-outputs"):
        output_rules(index)
    assert library_rules(index).external
