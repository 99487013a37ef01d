"""Readers of archives at rest, with bounded memory.

Callers verify an archive's hash first, if they know it. `open_archive` selects a reader by the
file's name: `tar` reads the output of `decompress`, and `zip` uses the standard library. `members`
is the interface of every reader with its limits, and `stream` is a view of unpacked bytes.
`makeself` verifies self-extracting archives, and `wheel_metadata` reads one file of a wheel.
Nothing is written to disk or executed.
"""
