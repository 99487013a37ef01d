"""Toolkit roots as values: the path of every file.

Nothing in this package writes to disk. `components` selects the packages, `root_tree` arranges the
files of one package, `merge` combines all packages, and `pkgconfig` adapts pkg-config files.
"""
