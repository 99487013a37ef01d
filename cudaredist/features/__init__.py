"""From an archive's bytes to what it provides: facts are gathered once, features follow by rule.

`facts` is what was read, `wheel` makes the members of a wheel those of an archive of NVIDIA's,
`tree` is the files and links that members make, `links` resolves the latter, `placement` which
output each file belongs to,
`derive` all features of an archive, `legacy` the peer's form of them. Nothing here knows where
bytes come from or where results go.
"""

from cudaredist.features.archive_tree import Tree, build_tree
from cudaredist.features.derive import RULES, derive
from cudaredist.features.entry import Entry
from cudaredist.features.extracts import EXTRACT_PATHS, HEADER_LIMIT, Extract, ExtractKind
from cudaredist.features.facts import (
    FACTS_SCHEMA,
    Facts,
    LateTables,
    facts_from_bytes,
    facts_to_bytes,
    gather,
)
from cudaredist.features.legacy import legacy_json, legacy_outputs
from cudaredist.features.placement import Placed, place_all
from cudaredist.features.wheel import as_redistributable

__all__ = [
    "EXTRACT_PATHS",
    "FACTS_SCHEMA",
    "HEADER_LIMIT",
    "RULES",
    "Entry",
    "Extract",
    "ExtractKind",
    "Facts",
    "LateTables",
    "Placed",
    "Tree",
    "as_redistributable",
    "build_tree",
    "derive",
    "facts_from_bytes",
    "facts_to_bytes",
    "gather",
    "legacy_json",
    "legacy_outputs",
    "place_all",
]
