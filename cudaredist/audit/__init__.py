"""Judge a program: its libraries, symbols, device code, and the versions it requires.

Nothing here reads files.
"""
