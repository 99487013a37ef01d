"""Wheels as redistributable archives: held against their record, with the tree of an archive.

A wheel is a zip whose files lie under `nvidia/<name>/` (or `<name>/`), beside metadata. It leaves
out what packaging for Python does not carry: modes and development links.
"""

import base64
import csv
import hashlib
import io
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cudaredist.errors import printable
from cudaredist.features.facts import Entry

_RECORD_LIMIT = 16 << 20
_NOTES = 20
_NOTE_LIMIT = 1024
"""The most characters of one note: a RECORD may state names of any length."""
_is_record = re.compile(r"[^/]+\.dist-info/RECORD").fullmatch
_is_signature = re.compile(r"[^/]+\.dist-info/RECORD\.(?:jws|p7s)").fullmatch
_is_marker = re.compile(r"[^/]+\.dist-info/WHEEL").fullmatch
_METADATA = re.compile(r"[^/]+\.(?:dist-info|data)/")
_is_license = re.compile(
    r"[^/]+\.dist-info/(?:licenses/)?licen[cs]e(?:\.txt)?", re.IGNORECASE
).fullmatch
_PREFIX = re.compile(r"(?:nvidia/)?[^/]+/")
_VERSIONED = re.compile(r"(?P<plain>.+\.so)\.(?P<version>[0-9]+(?:\.[0-9]+)*)")
_EXECUTABLE = 0o755
_GLUE = "__init__.py"
_TOP = "wheel"


class Record:
    """The hashes of a wheel's members as they pass, and what its RECORD says of them."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._text: bytes | None = None

    def following(self, name: str, content: Iterator[bytes]) -> Iterator[bytes]:
        """Pass a member's content on; afterwards it is known, if all of it was asked for."""
        digest = hashlib.sha256()
        kept = bytearray()
        is_record = _is_record(name) is not None
        for chunk in content:
            digest.update(chunk)
            if is_record and len(kept) < _RECORD_LIMIT:
                kept += chunk
            yield chunk
        if is_record:
            self._text = bytes(kept)
        elif not _is_signature(name):
            encoded = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
            self._found[name] = f"sha256={encoded}"

    def notes(self) -> tuple[str, ...]:
        """Return in which members the wheel and its RECORD disagree."""
        if self._text is None:
            return ("a wheel without a RECORD",)
        try:
            rows = list(csv.reader(io.StringIO(self._text.decode("utf-8"))))
        except (UnicodeDecodeError, csv.Error):
            return ("a wheel whose RECORD cannot be read",)
        stated = {row[0]: row[1] for row in rows if len(row) > 1 and not _is_record(row[0])}
        found = [
            *(f"not in RECORD: {name}" for name in self._found.keys() - stated.keys()),
            *(f"only in RECORD: {name}" for name in stated.keys() - self._found.keys()),
            *(
                f"other than in RECORD: {name}"
                for name, hash_ in self._found.items()
                if stated.get(name, hash_) != hash_
            ),
        ]
        more = len(found) - _NOTES
        noted = (printable(_cut(note)) for note in sorted(found)[:_NOTES])
        return (*noted, *([f"and {more} more in RECORD"] if more > 0 else []))


def _cut(note: str) -> str:
    return note if len(note) <= _NOTE_LIMIT else f"{note[:_NOTE_LIMIT]}…"


def as_redistributable(members: Sequence[Entry]) -> tuple[Sequence[Entry], tuple[str, ...]]:
    """Return the members of a wheel as an archive of NVIDIA's would have them, and notes.

    The prefix goes, the licence comes to the top, programs in `bin` are executable, and
    `libX.so` is added beside `libX.so.N` where it is missing. All other archives stay as they are.
    """
    if not any(_is_marker(entry.name) for entry in members):
        return members, ()
    modules = {entry.name.rpartition("/")[0] for entry in members if _is_module(entry.name)}
    placed: list[Entry] = []
    for entry in members:
        if _is_license(entry.name):
            placed.append(replace(entry, name=f"{_TOP}/LICENSE"))
        elif not _METADATA.match(entry.name) and not _is_glue(entry.name, modules):
            path = _PREFIX.sub("", entry.name, count=1)
            placed.append(_with_mode(replace(entry, name=f"{_TOP}/{path}"), path))
    links = _missing_links(placed)
    added = (link.name.removeprefix(f"{_TOP}/") for link in links)
    notes = tuple(f"link added, as wheels have none: {path}" for path in added)
    return [*placed, *links], notes


def _is_module(name: str) -> bool:
    return name.endswith(".py") and not name.endswith(f"/{_GLUE}")


def _is_glue(name: str, modules: set[str]) -> bool:
    """Say whether a file is only there so that Python finds a folder."""
    folder, _, last = name.rpartition("/")
    return last == _GLUE and folder not in modules


def _with_mode(entry: Entry, path: str) -> Entry:
    is_program = entry.binary is not None or "." not in path.rpartition("/")[2]
    if path.startswith("bin/") and entry.kind == "file" and is_program:
        return replace(entry, mode=entry.mode | _EXECUTABLE)
    return entry


def _missing_links(placed: Sequence[Entry]) -> list[Entry]:
    """Return a link `libX.so` to the newest `libX.so.N` beside it, where there is none."""
    names = {entry.name for entry in placed}
    targets: dict[str, list[tuple[list[int], str]]] = defaultdict(list)
    for entry in placed:
        folder, _, last = entry.name.rpartition("/")
        match = _VERSIONED.fullmatch(last)
        if match and entry.binary is not None and entry.binary.is_shared:
            version = [int(part) for part in match["version"].split(".")]
            targets[f"{folder}/{match['plain']}"].append((version, last))
    return [
        Entry(name=link, kind="symlink", target=max(versions)[1])
        for link, versions in sorted(targets.items())
        if link not in names
    ]
