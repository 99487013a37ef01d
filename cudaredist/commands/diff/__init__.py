"""diff: compare releases, feature files, package sets and tables.

`read_sides` reads each kind of file, `compare` compares two sides (`comparable`), `variants` aligns
platforms if only one side has variants, and `moves` finds files that moved to another package.
`stored_report` keeps the reports about releases in the cache.
"""
