"""The commands, with one folder each.

A folder contains the options (`command`), the work, the report and the text of one command. Code
that several commands share is in the packages below this one. `pyproject.toml` lists the few
commands that may import another command.
"""
