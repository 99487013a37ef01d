"""Unpack an archive, with hashes and facts, in one pass."""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from cudaredist.archives.members import Member, Members
from cudaredist.binaries.file_content import FileContent
from cudaredist.commands.materialize.merge import Content
from cudaredist.commands.materialize.staging import TEMPORARY, remove_tree
from cudaredist.errors import InvalidArchiveError, WritingTo
from cudaredist.features.facts import Entry, Facts, facts_from_bytes, facts_to_bytes
from cudaredist.features.gather import gather
from cudaredist.jsontext import load_json
from cudaredist.sets.package_tree import with_origins
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.fetch_archive import ArchiveRequest
from cudaredist.store.files import hash_of, read_file, write_file

UNPACKED_LIMIT = 64 << 30
"""Largest unpacked size of an archive, in bytes; four times NVIDIA's largest."""

_INDEX = "index.json"


class Unpacked(NamedTuple):
    """An unpacked archive.

    Each file is named by its member's position.
    """

    members: list[Entry]
    contents: dict[int, Content]
    """The content of each file, by position."""


def unpack(
    service: ArchiveService, request: ArchiveRequest, folder: Path, *, keep_at: Path | None
) -> Unpacked:
    """Unpack a verified archive to a folder.

    The folder gets its final name when it is complete. Raises the errors of `ArchiveService.read`,
    and `WriteError`; the folder is removed then.
    """
    temporary = folder.with_name(f"{folder.name}{TEMPORARY}")
    is_wheel = request.name.endswith(".whl")

    def use(members: Members) -> tuple[Facts, _WritingReader]:
        remove_tree(temporary)
        with WritingTo(temporary):
            temporary.mkdir(parents=True)
        writing = _WritingReader(members, temporary, request.name)
        return gather(writing, writing, is_wheel=is_wheel), writing

    try:
        facts, writing = service.read(request, use, keep_at=keep_at)
        index = {
            "facts": facts_to_bytes(facts).decode(),
            "files": {str(position): file for position, file in writing.files.items()},
        }
        write_file(temporary / _INDEX, json.dumps(index).encode(), durable=False)
        with WritingTo(temporary):
            temporary.rename(folder)
    except BaseException:
        remove_tree(temporary)
        raise
    contents = {
        number: Content(folder / str(number), *file) for number, file in writing.files.items()
    }
    return Unpacked(with_origins(facts.members), contents)


def is_unpacked(folder: Path) -> bool:
    """Check if a folder has an unpacked archive."""
    return (folder / _INDEX).is_file()


def earlier_content(folder: Path) -> Unpacked | None:
    """Return the content unpacked by an earlier run.

    The files may have changed since, for example after a power failure. If so, removes the folder
    and returns None.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        index = load_json(read_file(folder / _INDEX) or b"{}")
        facts = facts_from_bytes(index["facts"].encode())
        files = index["files"].items()
        contents = {int(name): Content(folder / name, *file) for name, file in files}
        if facts and all(hash_of(c.path) == c.sha256 for c in contents.values()):
            return Unpacked(with_origins(facts.members), contents)
    remove_tree(folder)
    return None


@dataclass(slots=True)
class _WritingReader:
    """An archive's members, whose files are also written, hashed and stored."""

    members: Members
    folder: Path
    name: str
    files: dict[int, tuple[str, int]] = field(default_factory=dict)
    """SHA-256 and size of each file's content, by position."""
    _left: int = field(default_factory=lambda: UNPACKED_LIMIT)
    _content: FileContent = field(init=False)

    def __iter__(self) -> Iterator[tuple[Member, Iterator[bytes]]]:
        for position, (member, content) in enumerate(self.members):
            if member.kind != "file":
                yield member, content
                continue
            path = self.folder / str(position)
            with WritingTo(path):
                # A buffer would copy each chunk again.
                file = path.open("x+b", buffering=0)
            with file:
                chunks = self._write_file(position, content, file, path)
                yield member, chunks
                # The caller may not have read all of it.
                for _ in chunks:
                    pass

    def _write_file(
        self, position: int, content: Iterator[bytes], file: FileIO, path: Path
    ) -> Iterator[bytes]:
        digest = hashlib.sha256()
        size = 0
        for chunk in content:
            size += len(chunk)
            if size > self._left:
                problem = f"unpacks to more than {UNPACKED_LIMIT:,} bytes"
                raise InvalidArchiveError(self.name, problem)
            digest.update(chunk)
            with WritingTo(path):
                count = file.write(chunk)
                while count < len(chunk):
                    count += file.write(memoryview(chunk)[count:])
            yield chunk
        self._left -= size
        self.files[position] = digest.hexdigest(), size
        self._content = FileContent(file, size, path)

    def store(self, chunks: Iterable[bytes]) -> FileContent:
        """Read the chunks, which `__iter__` writes to a file, and return its bytes."""
        for _ in chunks:
            pass
        return self._content
