"""The outputs of an archive's files in package sets, from the rows of the index.

`outputs.py` has the outputs of whole archives, with their contents.
"""

import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from cudaredist.formats.names import OutputName
from cudaredist.primitives import Version
from cudaredist.sets.bounds import is_within
from cudaredist.store.indexed_policies import OutputRules

ORDER: tuple[OutputName, ...] = (
    "out",
    "doc",
    "samples",
    "python",
    "bin",
    "dev",
    "include",
    "lib",
    "static",
    "stubs",
)
"""nixpkgs' order. `lib` must precede `static`: otherwise, moving `lib` takes static libraries."""
STUB_PATHS = ("stubs/x", "lib/stubs/x")
"""Paths in the folders of stubs."""


class FileOutputs(NamedTuple):
    """The outputs of a package set for the files of an archive."""

    outputs: tuple[OutputName, ...]
    """The declared outputs."""
    parts: tuple[OutputName, ...]
    """The outputs of the feature file whose files are in them."""
    dropped: tuple[str, ...]
    """Patterns of the files that policy drops."""

    def output_of(self, path: str, output: OutputName) -> OutputName | None:
        """Return the output of a file, None if policy drops it.

        `output` is that of the feature file.
        """
        return None if is_dropped(path, self.dropped) else resolve((output,), self.outputs)


def file_outputs(
    package: str,
    version: Version,
    outputs: Collection[OutputName],
    stubs: Iterable[str],
    rules: OutputRules,
) -> FileOutputs:
    """Return the outputs of an archive's files for all CUDA releases.

    `outputs` are those with files, and `stubs` are the paths of the libraries for linking only.
    """
    dropped = tuple(
        drop.source for drop in rules.drops if drop.package == package and is_within(version, drop)
    )
    declared = [name for name in ORDER if name in outputs or name == "out"]
    has_stubs = not all(is_dropped(path, dropped) for path in stubs)
    if any(is_dropped(path, dropped) for path in STUB_PATHS) and not has_stubs:
        declared = [name for name in declared if name != "stubs"]
    parts = tuple(declared)
    if package in rules.collapsed and len(declared) > 1:
        declared = ["out"]
    return FileOutputs(tuple(declared), parts, dropped)


def is_dropped(path: str, patterns: Iterable[str]) -> bool:
    """Check if one of the patterns of dropped files matches a file or its folder."""
    return any(is_below(path, pattern) for pattern in patterns)


def folders_above(path: str) -> Iterator[str]:
    """Yield the folders above a path, nearest first."""
    while (folder := posixpath.dirname(path)) not in {"", path}:
        yield folder
        path = folder


def is_below(path: str, pattern: str) -> bool:
    """Check if a pattern matches a path or a folder above it."""
    return any(fnmatchcase(name, pattern) for name in (path, *folders_above(path)))


def nested_folder(folders: Collection[str], cuda: Version | None) -> str | None:
    """Return the subfolder of `lib` for a CUDA release, or None.

    `folders` are the subfolders of `lib` for CUDA releases.
    `12.6` takes precedence over `12`.
    """
    numbers = [str(number) for number in cuda.components] if cuda else []
    names = [".".join(numbers[:count]) for count in (2, 1)]
    return next((name for name in names if name in folders), None)


def is_for_other_cuda(path: str, folders: Collection[str], cuda: Version) -> bool:
    """Check if a file is in a subfolder of `lib` for another CUDA release."""
    top, _, below = path.partition("/")
    folder = below.partition("/")[0]
    is_nested = top == "lib" and folder in folders
    return is_nested and folder != nested_folder(folders, cuda)


def resolve(preference: Sequence[OutputName], outputs: Sequence[OutputName]) -> OutputName:
    """Return the first preferred output that is declared, else `out`."""
    return next((output for output in preference if output in outputs), "out")
