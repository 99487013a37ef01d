"""Rows of the index: the entries of policies that lookups need."""

import json
from collections.abc import Iterator, Mapping, Sequence

from cudaredist.formats.base import OwnModel
from cudaredist.formats.library_policy import LibraryPolicy
from cudaredist.formats.meta_policy import MetaPolicy
from cudaredist.formats.output_policy import OutputPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.set_policy import SetPolicy
from cudaredist.store.data_folder import Store

STORED_MODELS: Mapping[str, type[SetPolicy]] = {
    "libraries": LibraryPolicy,
    "meta": MetaPolicy,
    "outputs": OutputPolicy,
}
"""The models of `STORED_POLICIES`."""
_PARTS = ("external", "packages", "normalise", "collapse")


def policy_rows(policy: SetPolicy) -> Iterator[tuple[str, str, str]]:
    """Yield the part, the name and the content of each entry."""
    for part in _PARTS:
        entries: Mapping[str, OwnModel] | Sequence[OwnModel] = getattr(policy, part, ())
        named = entries.items() if isinstance(entries, Mapping) else (("", one) for one in entries)
        for name, entry in named:
            yield part, name, json.dumps(entry.model_dump(mode="json", by_alias=True))


def read_policy_rows(store: Store, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of a policy of a data folder. Raises `InvalidFileError`."""
    return policy_rows(read_own_file(store.read_policy(name), STORED_MODELS[name]))
