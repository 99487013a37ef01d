"""One archive's content onto the disk, in one pass: proved, read and written at the same time."""

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cudaredist.archives.members import ArchiveReader, Member
from cudaredist.errors import InvalidArchiveError, WriteError, WritingTo
from cudaredist.features.facts import Entry, Facts, facts_from_bytes, facts_to_bytes
from cudaredist.features.gather import gather
from cudaredist.pipeline.archives import ArchiveRequest, ArchiveService
from cudaredist.pipeline.toolkit.staging import TEMPORARY, remove_tree
from cudaredist.store.files import read_file, write_file
from cudaredist.toolkit.root_tree import with_origins

UNPACKED_LIMIT = 64 << 30
"""Bytes that one archive may unpack to; NVIDIA's largest has a quarter of it."""

_INDEX = "index.json"


@dataclass(frozen=True, slots=True)
class Unpacked:
    """An archive whose content lies in a folder, each file under its member's position."""

    folder: Path
    members: list[Entry]
    hashes: dict[int, str]
    """SHA-256 of each file's content, by position."""
    sizes: dict[int, int]

    def content(self, origin: int) -> Path:
        """Return where the content of a member lies."""
        return self.folder / str(origin)


def unpack(
    service: ArchiveService, request: ArchiveRequest, folder: Path, *, keep_at: Path | None
) -> Unpacked:
    """Bring an archive's content into a folder, which gets its name when all of it is proved.

    Until hash and size of the archive are found right it has another. Raises what
    `ArchiveService.read` raises, and `WriteError`; nothing is left behind then.
    """
    temporary = folder.with_name(f"{folder.name}{TEMPORARY}")
    is_wheel = request.name.endswith(".whl")

    def use(reader: ArchiveReader) -> tuple[Facts, _Writing]:
        remove_tree(temporary)
        with WritingTo(temporary):
            temporary.mkdir(parents=True)
        writing = _Writing(reader, temporary, request.name)
        return gather(writing, is_wheel=is_wheel), writing

    try:
        facts, writing = service.read(request, use, keep_at=keep_at)
        index = {
            "facts": facts_to_bytes(facts).decode(),
            "files": {str(position): found for position, found in writing.found.items()},
        }
        write_file(temporary / _INDEX, json.dumps(index).encode(), durable=False)
        with WritingTo(temporary):
            temporary.rename(folder)
    except BaseException:
        remove_tree(temporary)
        raise
    unpacked = _read(folder)
    if unpacked is None:
        raise WriteError(folder, OSError(errno.EIO, "what was written is not there"))
    return unpacked


def is_held(folder: Path) -> bool:
    """Say whether an earlier run brought an archive's content into a folder."""
    return (folder / _INDEX).is_file()


def held_content(folder: Path) -> Unpacked | None:
    """Return an archive's content that an earlier run brought into a folder.

    None where there is none, or other bytes: a machine may have lost power since, or someone may
    have been there. What is wrong is taken away.
    """
    unpacked = _read(folder)
    if unpacked is None or not _is_proved(unpacked):
        remove_tree(folder)
        return None
    return unpacked


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(folder: Path) -> Unpacked | None:
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        index = json.loads(read_file(folder / _INDEX) or b"{}")
        facts = facts_from_bytes(index["facts"].encode())
        if facts is not None:
            files = {int(position): found for position, found in index["files"].items()}
            return Unpacked(
                folder,
                with_origins(facts.members),
                {position: sha256 for position, (sha256, _) in files.items()},
                {position: size for position, (_, size) in files.items()},
            )
    return None


def _is_proved(unpacked: Unpacked) -> bool:
    try:
        return all(
            hash_of(unpacked.content(origin)) == sha256
            for origin, sha256 in unpacked.hashes.items()
        )
    except OSError:
        return False


class _Writing:
    """A reader's members, whose content is written down and hashed as it passes."""

    def __init__(self, reader: ArchiveReader, folder: Path, where: str) -> None:
        self._reader = reader
        self._folder = folder
        self._where = where
        self._left = UNPACKED_LIMIT
        self.found: dict[int, tuple[str, int]] = {}
        """SHA-256 and size of each file's content, by position."""

    @property
    def corrections(self) -> Mapping[int, Member]:
        return self._reader.corrections

    def close(self) -> None:
        self._reader.close()

    def __iter__(self) -> Iterator[tuple[Member, Iterator[bytes]]]:
        for position, (member, content) in enumerate(self._reader):
            if member.kind != "file":
                yield member, content
                continue
            passing = self._written(position, content)
            yield member, passing
            # Whoever looked at it may not have needed the rest.
            for _ in passing:
                pass

    def _written(self, position: int, content: Iterator[bytes]) -> Iterator[bytes]:
        digest = hashlib.sha256()
        size = 0
        path = self._folder / str(position)
        with WritingTo(path):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o644)
        try:
            for chunk in content:
                size += len(chunk)
                if size > self._left:
                    raise InvalidArchiveError(
                        self._where, f"unpacks to more than {UNPACKED_LIMIT:,} bytes"
                    )
                digest.update(chunk)
                _write(handle, chunk, path)
                yield chunk
        finally:
            os.close(handle)
        self._left -= size
        self.found[position] = digest.hexdigest(), size


_BINARY = getattr(os, "O_BINARY", 0)
"""Windows' alone."""


def _write(handle: int, chunk: bytes, path: Path) -> None:
    """Write all of a chunk: chunks are large, so that a buffer would only copy them once more."""
    with WritingTo(path):
        count = os.write(handle, chunk)
        while count < len(chunk):
            count += os.write(handle, memoryview(chunk)[count:])
