"""One archive's content onto the disk, in one pass: proved, read and written at the same time."""

import contextlib
import errno
import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cudaredist.archives import ArchiveReader, Member
from cudaredist.errors import InvalidArchiveError, WriteError
from cudaredist.features import Entry, Facts, facts_from_bytes, facts_to_bytes, gather
from cudaredist.pipeline.examine import Examination, Wanted
from cudaredist.store import read_file, write_file
from cudaredist.toolkit import with_origins

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


def unpack(examination: Examination, wanted: Wanted, folder: Path) -> Unpacked:
    """Bring an archive's content into a folder, unless it is there already.

    The folder gets its name when hash and size are proved; until then it has another. Raises what
    `Examination.read` raises, and `WriteError`.
    """
    held = held_content(folder)
    if held is not None:
        return held
    temporary = folder.with_name(f"{folder.name}.tmp")
    is_wheel = wanted.name.endswith(".whl")

    def use(reader: ArchiveReader) -> tuple[Facts, _Writing]:
        _renew(temporary)
        writing = _Writing(reader, temporary, wanted.name)
        return gather(writing, is_wheel=is_wheel), writing

    try:
        facts, writing = examination.read(wanted, use)
        index = {
            "facts": facts_to_bytes(facts).decode(),
            "files": {str(position): found for position, found in writing.found.items()},
        }
        write_file(temporary / _INDEX, json.dumps(index).encode(), durable=False)
        temporary.rename(folder)
    except OSError as error:
        raise WriteError(temporary, error) from error
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    unpacked = held_content(folder)
    if unpacked is None:
        raise WriteError(folder, OSError(errno.EIO, "what was written is not there"))
    return unpacked


def held_content(folder: Path) -> Unpacked | None:
    """Return an archive's content that an earlier run brought into a folder; None where none is."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
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


def _renew(folder: Path) -> None:
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    except OSError as error:
        raise WriteError(folder, error) from error


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
    def corrections(self) -> "dict[int, Member]":
        return dict(self._reader.corrections)

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
        try:
            file = path.open("wb")
        except OSError as error:
            raise WriteError(path, error) from error
        with file:
            for chunk in content:
                size += len(chunk)
                if size > self._left:
                    raise InvalidArchiveError(
                        self._where, f"unpacks to more than {UNPACKED_LIMIT:,} bytes"
                    )
                digest.update(chunk)
                try:
                    file.write(chunk)
                except OSError as error:
                    raise WriteError(path, error) from error
                yield chunk
            try:
                file.flush()
            except OSError as error:
                raise WriteError(path, error) from error
        self._left -= size
        self.found[position] = digest.hexdigest(), size
