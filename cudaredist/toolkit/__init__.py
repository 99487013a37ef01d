"""Toolkit roots as values: the destination of every file of a package set. Nothing here writes.

`components` selects the packages, `root_tree` orders the files of one package, `merge` makes one
tree of all, and `pkgconfig` adapts pkg-config's files.
"""
