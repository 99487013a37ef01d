"""Rows of the index: policies whose entries lookups need."""

import json
from collections.abc import Mapping
from typing import Any

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


def policy_row(policy: SetPolicy) -> tuple[str, str]:
    """Return the name and the content of a policy."""
    name = next(name for name, model in STORED_MODELS.items() if isinstance(policy, model))
    return name, json.dumps(_content(policy))


def read_policy(store: Store, name: str) -> Mapping[str, Any]:
    """Return the content of a policy of a data folder. Raises `InvalidFileError`."""
    return _content(read_own_file(store.read_policy(name), STORED_MODELS[name]))


def _content(policy: SetPolicy) -> Mapping[str, Any]:
    content: Mapping[str, Any] = policy.model_dump(mode="json", by_alias=True)
    return content
