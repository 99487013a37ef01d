"""Toolkit roots: which files of a package set go where, as values; nothing here writes.

`selection` says which packages are meant, `tree` what one package brings, `merge` makes one tree of
all.
"""

from cudaredist.toolkit.merge import Plan, PlannedFile, make_plan
from cudaredist.toolkit.selection import select_packages
from cudaredist.toolkit.tree import PackageTree, make_tree, with_origins

__all__ = [
    "PackageTree",
    "Plan",
    "PlannedFile",
    "make_plan",
    "make_tree",
    "select_packages",
    "with_origins",
]
