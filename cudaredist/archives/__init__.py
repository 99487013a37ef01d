"""Archives as one forward stream of members, with bounded memory, from bytes as they arrive.

`open_archive` selects a reader by the file's name: `tar` reads the output of `compression`, `zip`
reads on its own. `decompress` contains the decompressors with their limits, `xz_blocks` cuts xz so
that several threads can unpack it, `memory` bounds what all archives use together, `members` is the
interface of every reader, and `stream` is a view of their bytes that bounds their names.
Nothing is written to disk or executed.
"""
