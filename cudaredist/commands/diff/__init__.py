"""diff: compare releases, feature files, package sets and tables.

`comparable` prepares each kind of file, `compare` compares two files, `variants` aligns platforms
if only one side has variants, and `moves` finds files that moved to another package.
"""
