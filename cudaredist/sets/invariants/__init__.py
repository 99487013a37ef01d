"""Invariants of package sets.

`documents` checks documents, and `files` checks the files of their packages.
`coverage` and `links` each contain one longer invariant.
"""
