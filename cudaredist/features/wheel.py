"""Wheels as redistributable archives, verified against their RECORD.

A wheel is a zip with its files in `nvidia/<name>/` (or `<name>/`, or `nvidia/<name>/cu12/`) next to
metadata. It lacks things that Python packaging does not support: modes and development links.
"""

import base64
import csv
import hashlib
import io
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cudaredist.features.facts import Entry
from cudaredist.features.wheel_notes import LINK_ADDED
from cudaredist.primitives import cut
from cudaredist.words import printable

_RECORD_LIMIT = 16 << 20
_NOTES = 20
_NOTE_LIMIT = 1024
"""Limit for the characters of one note. A RECORD may contain names of any length."""
_is_record = re.compile(r"[^/]+\.dist-info/RECORD").fullmatch
_is_signature = re.compile(r"[^/]+\.dist-info/RECORD\.(?:jws|p7s)").fullmatch
_is_marker = re.compile(r"[^/]+\.dist-info/WHEEL").fullmatch
_is_metadata = re.compile(r"[^/]+\.(?:dist-info|data)/").match
_is_license = re.compile(
    r"[^/]+\.dist-info/(?:licenses/)?licen[cs]e(?:\.txt)?", re.IGNORECASE
).fullmatch
WHEEL_PREFIX = r"(?:nvidia/)?[^/]+/(?:cu[0-9]+/)?"
"""The beginning of paths in a wheel, such as `nvidia/cublas/`, `nvidia/cu13/` and `cutensor/`."""
_begins_with_prefix = re.compile(WHEEL_PREFIX).match
_versioned = re.compile(r"(?P<plain>.+\.so)\.(?P<version>[0-9]{1,18}(?:\.[0-9]{1,18})*)").fullmatch
_EXECUTABLE = 0o755
_GLUE = "__init__.py"
_TOP = "wheel"


class Record:
    """The hashes of a wheel's members, for comparison to its RECORD."""

    def __init__(self) -> None:
        self._hashes: dict[str, str] = {}
        self._text: bytes | None = None

    def following(self, name: str, content: Iterator[bytes]) -> Iterator[bytes]:
        """Return a member's content, hashed for comparison.

        The hash counts only if the caller reads the content to its end.
        """
        digest = hashlib.sha256()
        text = bytearray()
        is_record = _is_record(name) is not None
        for chunk in content:
            digest.update(chunk)
            if is_record and len(text) < _RECORD_LIMIT:
                text += chunk
            yield chunk
        if is_record:
            self._text = bytes(text)
        elif not _is_signature(name):
            encoded = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
            self._hashes[name] = f"sha256={encoded}"

    def notes(self) -> tuple[str, ...]:
        """Return the differences between the wheel and its RECORD."""
        if self._text is None:
            return ("the wheel has no RECORD",)
        try:
            rows = list(csv.reader(io.StringIO(self._text.decode("utf-8"))))
        except (UnicodeDecodeError, csv.Error):
            return ("the wheel's RECORD cannot be read",)
        stated = {row[0]: row[1] for row in rows if len(row) > 1 and not _is_record(row[0])}
        hashes = self._hashes
        both = hashes.keys() & stated.keys()
        differences = [
            *(f"not in RECORD: {name}" for name in hashes.keys() - both),
            *(f"only in RECORD: {name}" for name in stated.keys() - both),
            *(f"differs from RECORD: {name}" for name in both if hashes[name] != stated[name]),
        ]
        more = len(differences) - _NOTES
        notes = (printable(cut(note, _NOTE_LIMIT)) for note in sorted(differences)[:_NOTES])
        return (*notes, *([f"and {more} more in RECORD"] if more > 0 else []))


def as_redistributable(members: Sequence[Entry]) -> tuple[Sequence[Entry], tuple[str, ...]]:
    """Return a wheel's members in the layout of an archive.

    The prefix is removed, the license moves to the top, programs in `bin` become executable, and
    `libX.so` is added next to `libX.so.N` if missing. The notes list these links. Archives that are
    not wheels stay unchanged.
    """
    if not any(_is_marker(entry.name) for entry in members):
        return members, ()
    modules = {entry.name.rpartition("/")[0] for entry in members if _is_module(entry.name)}
    placed: list[Entry] = []
    for entry in members:
        if _is_license(entry.name):
            placed.append(replace(entry, name=f"{_TOP}/LICENSE"))
        elif not _is_metadata(entry.name) and not _is_glue(entry.name, modules):
            prefix = _begins_with_prefix(entry.name)
            path = entry.name[prefix.end() :] if prefix else entry.name
            placed.append(_with_mode(replace(entry, name=f"{_TOP}/{path}"), path))
    links = _missing_links(placed)
    added = (link.name.removeprefix(f"{_TOP}/") for link in links)
    notes = tuple(f"{LINK_ADDED}: {path}" for path in added)
    return [*placed, *links], notes


def _is_module(name: str) -> bool:
    return name.endswith(".py") and not name.endswith(f"/{_GLUE}")


def _is_glue(name: str, modules: set[str]) -> bool:
    """Check if a file exists only to make a folder importable."""
    folder, _, last = name.rpartition("/")
    return last == _GLUE and folder not in modules


def _with_mode(entry: Entry, path: str) -> Entry:
    is_program = entry.binary is not None or "." not in path.rpartition("/")[2]
    if path.startswith("bin/") and entry.kind == "file" and is_program:
        return replace(entry, mode=entry.mode | _EXECUTABLE)
    return entry


def _missing_links(placed: Sequence[Entry]) -> list[Entry]:
    """Return missing links from `libX.so` to the newest `libX.so.N`."""
    names = {entry.name for entry in placed}
    targets: dict[str, list[tuple[list[int], str]]] = defaultdict(list)
    for entry in placed:
        folder, _, last = entry.name.rpartition("/")
        match = _versioned(last)
        if match and entry.binary is not None and entry.binary.is_shared:
            version = [int(part) for part in match["version"].split(".")]
            targets[f"{folder}/{match['plain']}"].append((version, last))
    return [
        Entry(name=link, kind="symlink", target=max(versions)[1])
        for link, versions in sorted(targets.items())
        if link not in names
    ]
