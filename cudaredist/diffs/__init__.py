"""Differences as values: between manifests, feature files, package sets and tables.

`subjects` makes of each kind of file what is compared, `compare` compares, `moves` says which files
changed their package, and `lines` says in a few lines what changed in a manifest that changed in
place.
"""

from cudaredist.diffs.comparable import (
    Comparable,
    merge_comparables,
    of_features,
    of_manifest,
    of_package_set,
    of_tables,
)
from cudaredist.diffs.compare import compare, is_alarming, natural_order
from cudaredist.diffs.manifest import manifest_changes

__all__ = [
    "Comparable",
    "compare",
    "is_alarming",
    "manifest_changes",
    "merge_comparables",
    "natural_order",
    "of_features",
    "of_manifest",
    "of_package_set",
    "of_tables",
]
