"""Rows of the index: the entries of policies that lookups need."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cudaredist.formats.fixup_policy import FixupPolicy
from cudaredist.formats.library_policy import LibraryPolicy
from cudaredist.formats.license_policy import LicensePolicy
from cudaredist.formats.meta_policy import MetaPolicy
from cudaredist.formats.output_policy import OutputPolicy
from cudaredist.formats.policy import NamePolicy, RequirementPolicy, WithheldPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.set_policy import SetPolicy
from cudaredist.store.data_folder import Store

STORED_MODELS: Mapping[str, type[SetPolicy]] = {
    "fixups": FixupPolicy,
    "libraries": LibraryPolicy,
    "licenses": LicensePolicy,
    "meta": MetaPolicy,
    "names": NamePolicy,
    "outputs": OutputPolicy,
    "requirements": RequirementPolicy,
    "withheld": WithheldPolicy,
}
"""The models of `STORED_POLICIES`."""
_PARTS: Mapping[type[SetPolicy], tuple[str, ...]] = {
    FixupPolicy: ("urls",),
    LibraryPolicy: ("external",),
    LicensePolicy: ("packages", "manifests", "redists", "default", "texts"),
    MetaPolicy: ("packages",),
    NamePolicy: ("renames", "aliases"),
    OutputPolicy: ("normalise", "collapse"),
    WithheldPolicy: ("withheld",),
}
"""The parts of policies that have rows."""
NAMED = "named"
"""The part of the packages that a policy names, which have no entry."""


def policy_rows(policy: SetPolicy) -> Iterator[tuple[str, str, str]]:
    """Yield the part, the name and the content of each entry."""
    parts = _PARTS.get(type(policy), ())
    document = policy.model_dump(mode="json", by_alias=True, include={*parts})
    for part in parts:
        entries: Any = document[part]
        if part == "default":
            entries = [entries]
        named = entries.items() if isinstance(entries, dict) else (("", one) for one in entries)
        for name, entry in named:
            yield part, name, json.dumps(entry)
    for package in dict.fromkeys(policy.named_packages()):
        yield NAMED, package, "null"


def read_policy_rows(store: Store, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of a policy of a data folder. Raises `InvalidFileError`."""
    return policy_rows(read_own_file(store.read_policy(name), STORED_MODELS[name]))
