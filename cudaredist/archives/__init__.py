"""Streaming readers of archives with bounded memory.

`open_archive` selects a reader by the file's name. `tar` reads the output of `compression`, `zip`
reads the file itself. `decompress` contains the decompressors with their limits, `xz_blocks` splits
xz into blocks for several threads, `memory` limits the memory of all archives together, `members`
is the interface of every reader, and `stream` is a view of the bytes and limits the names.
`wheel_metadata` reads one file of a wheel. Nothing is written to disk or executed.
"""
