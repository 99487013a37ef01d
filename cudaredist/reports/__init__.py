"""What commands answer with: values that every output format is made from.

`--json` prints them as they are, `schema_version` first.
"""
