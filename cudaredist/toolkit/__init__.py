"""Toolkit roots: which files of a package set go where, as values; nothing here writes.

`selection` says which packages are meant, `tree` what one package brings, `merge` makes one tree of
all, `pkgconfig` has what pkg-config's files need.
"""

from cudaredist.toolkit.components import Chosen, choose
from cudaredist.toolkit.merge import (
    OURS,
    RECORD_NAME,
    VERSION_NAME,
    Layout,
    Plan,
    PlannedFile,
    make_plan,
)
from cudaredist.toolkit.pkgconfig import LIMIT as PKG_CONFIG_LIMIT
from cudaredist.toolkit.pkgconfig import relocatable
from cudaredist.toolkit.root_tree import PackageTree, make_tree, with_origins

__all__ = [
    "OURS",
    "PKG_CONFIG_LIMIT",
    "RECORD_NAME",
    "VERSION_NAME",
    "Chosen",
    "Layout",
    "PackageTree",
    "Plan",
    "PlannedFile",
    "choose",
    "make_plan",
    "make_tree",
    "relocatable",
    "with_origins",
]
