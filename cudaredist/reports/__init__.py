"""The reports of commands, as data for every output format.

`--json` prints them unchanged, `schema_version` first.
"""
