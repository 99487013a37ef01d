"""materialize: create a toolkit root from a package set.

`components` selects the packages, and `merge` combines their files in one tree. `runtime` selects
the libraries of programs, and `library_code` finds their unused device code. `unpack` reads the
archives, `install` creates the root, `oci` writes it as an image, `staging` swaps it in, and `root`
verifies an existing one.
"""
