"""Read the source files of a folder, without executing anything."""

import os
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from cudaredist.errors import ReadError, ReadingFrom
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.source_code.api import Api
from cudaredist.source_code.branches import Evaluator
from cudaredist.source_code.declarations import Declarations, Includes
from cudaredist.source_code.judge_use import Tree
from cudaredist.source_code.read_code import CodeFile, Interest
from cudaredist.source_code.read_file import FileFacts, FileReader, SourceFile, is_source
from cudaredist.source_code.reader_processes import readers
from cudaredist.source_code.version_macros import (
    composed_macros,
    dependent_macros,
    doubtful_macros,
    pasted_parameters,
    release_macros,
)

_FILES_LIMIT = 1_000_000
_DEPTH_LIMIT = 128
_SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__"})


@dataclass
class SourceTree:
    """The uses of an API in a folder."""

    files: list[CodeFile] = field(default_factory=list)
    """The files with uses or declarations of its names."""
    read: int = 0
    """The number of files that were read."""
    size: int = 0
    includes: Includes = field(default_factory=Includes)
    """The includes of all files of C, C++ and CUDA."""
    pasted: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """The parameters of its macros that only form other names, with the releases."""
    skipped: dict[str, str] = field(default_factory=dict)
    """The reasons why files were not read, by path."""

    def add(self, facts: FileFacts) -> None:
        """Add a file, or the reason why it was not read."""
        if facts.includes is not None:
            self.includes.add(facts.name, facts.includes)
        if facts.reason:
            self.skipped[facts.name] = facts.reason
            return
        self.read += 1
        self.size += facts.size
        if facts.code is not None:
            self.files.append(facts.code)

    @property
    def facts(self) -> Tree:
        """The facts of all files."""
        own = Declarations(self.files, self.includes)
        members = frozenset[str]().union(*(file.members for file in self.files))
        types = frozenset[str]().union(*(file.types for file in self.files))
        return Tree(own, members, types, self.includes, self.pasted)


def read_tree(
    root: Path, api: Api, interest: Interest, progress: Progress = NO_PROGRESS
) -> SourceTree:
    """Return the uses of an API in the files of a folder, or in one file."""
    tree = SourceTree()
    files = [*source_files(root, tree.skipped)]
    evaluator = Evaluator(release_macros(api))
    with readers(sum(file.size for file in files), progress) as processes:
        for facts in processes.read(FileReader(interest, evaluator), files):
            tree.add(facts)
        definitions = [one for file in tree.files for one in file.definitions]
        tree.pasted = pasted_parameters(definitions)
        own = dependent_macros(definitions, evaluator.all_releases)
        composed = composed_macros(own)
        doubtful = doubtful_macros(definitions) | composed
        names = {one.name for one in own} | doubtful
        own = [one for one in own if one.name not in composed]
        again = {file.path: file for file in tree.files if _depends_on(file, names)}
        if again:
            reader = FileReader(interest, Evaluator(release_macros(api, own), doubtful))
            named = [file for file in files if file.name in again]
            for facts in processes.read(reader, named):
                file, code = again[facts.name], facts.code or CodeFile()
                file.uses, file.own = code.uses, code.own
                if facts.reason:
                    tree.skipped[facts.name] = facts.reason
    tree.files = [
        file for file in tree.files if file.uses or file.own or file.members or file.types
    ]
    return tree


def _depends_on(file: CodeFile, macros: AbstractSet[str]) -> bool:
    """Check if a condition of a file has one of some macros, and its uses may matter."""
    return bool(file.uses) and not macros.isdisjoint(file.condition_names)


def source_files(root: Path, skipped: dict[str, str]) -> Iterator[SourceFile]:
    """Yield the source files of a folder. Links are not followed."""
    if root.is_file():
        yield SourceFile(root, root.name, root.stat().st_size)
        return
    pending = [("", 0)]
    count = 0
    while pending:
        folder, depth = pending.pop()
        try:
            with ReadingFrom(root / folder), os.scandir(root / folder) as entries:
                ordered = sorted(entries, key=lambda entry: entry.name)
        except ReadError as error:
            skipped[folder or "."] = error.strerror
            continue
        inner = []
        for entry in ordered:
            name = f"{folder}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if depth >= _DEPTH_LIMIT:
                    skipped[name] = f"more than {_DEPTH_LIMIT} folders inside each other"
                elif entry.name not in _SKIPPED_FOLDERS:
                    inner.append((f"{name}/", depth + 1))
            elif is_source(entry.name) and entry.is_file(follow_symlinks=False):
                count += 1
                if count > _FILES_LIMIT:
                    skipped[name] = f"more than {_FILES_LIMIT:,} files"
                    return
                yield SourceFile(Path(entry.path), name, _size(entry))
        pending += reversed(inner)


def _size(entry: os.DirEntry[str]) -> int:
    """Return the size of a file, 0 if it was removed."""
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0
