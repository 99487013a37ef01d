"""Differences between manifests, feature files, package sets and tables.

`comparable` prepares each kind of file, `compare` compares two files, `variants` aligns platforms
if only one side has variants, `moves` finds files that moved to another package, and `manifest`
summarizes the changes of a manifest in a few lines.
"""
