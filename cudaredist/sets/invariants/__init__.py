"""Invariants of package sets.

`set_invariants` checks documents, and `file_invariants` checks the files of their packages.
`coverage_invariant` and `link_invariant` each contain one longer invariant.
"""
