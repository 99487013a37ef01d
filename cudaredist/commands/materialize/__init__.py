"""materialize: create a toolkit root from a package set.

`components` selects the packages, and `merge` combines their files in one tree. `unpack` reads the
archives, `install` creates the root, `staging` swaps it in, and `root` verifies an existing one.
"""
