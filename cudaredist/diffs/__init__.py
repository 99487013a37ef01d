"""Differences as values: between manifests, feature files, package sets and tables.

`comparable` prepares each kind of file, `compare` compares them, `variants` aligns platforms that
one side nests, `moves` finds the files that changed their package, and `manifest` describes a
manifest that changed in place in a few lines.
"""
