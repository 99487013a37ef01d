"""explain package: the contents and needs of archives, from the rows of the index."""

import json
import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from cudaredist.commands.explain.package_report import ExplainedArchive
from cudaredist.features.distributions import distribution_of
from cudaredist.features.wheel_notes import unusual_notes
from cudaredist.formats.names import Channel, Distribution, OutputName
from cudaredist.formats.output_files import OutputFiles
from cudaredist.grouping import grouped
from cudaredist.primitives import Platform, Version, natural_order
from cudaredist.sets.file_outputs import FileOutputs, file_outputs, is_dropped, resolve
from cudaredist.sets.header_conditions import ROOTS, holds
from cudaredist.sets.library_names import key_of
from cudaredist.sets.licenses import text_in_file
from cudaredist.store.facts_index import Index, IndexedArchive, Question
from cudaredist.store.indexed_policies import LicenseText, license_rules, output_rules

_KINDS = ("sm", "compute", "lto")
"""Kinds of device code, machine code first."""


class _Contents(NamedTuple):
    contents: int
    device_code: str
    """As JSON."""
    notes: str
    """As JSON."""
    license_sha256: str | None


_CONTENTS = Question(
    _Contents,
    """
    SELECT id AS contents, json_extract(facts, '$.device_code') AS device_code,
        json_extract(facts, '$.notes') AS notes, license_sha256
    FROM contents WHERE id IN (SELECT value FROM json_each(?))""",
)


class _Binary(NamedTuple):
    contents: int
    path: str
    kind: str
    """`library`, `stub` or `program`."""
    soname: str | None
    glibc: str | None
    needs: str
    """Names with `needed` or `opens`, as JSON."""


_BINARIES = Question(
    _Binary,
    """
    SELECT contents, path, kind, soname, glibc, needs FROM binaries
    WHERE contents IN (SELECT value FROM json_each(?))
    ORDER BY id""",
)


class _Output(NamedTuple):
    contents: int
    output: OutputName
    files: int
    bytes: int


_OUTPUTS = Question(
    _Output,
    """
    SELECT contents, output, files, bytes FROM outputs
    WHERE contents IN (SELECT value FROM json_each(?))""",
)


def explain_archives(
    index: Index, own: Iterable[IndexedArchive]
) -> Iterator[tuple[IndexedArchive, ExplainedArchive]]:
    """Yield archives with their contents and needs, in the order of releases and platforms.

    The outputs are those of package sets. Libraries and programs that sets omit are not included,
    except in sizes. Archives that were not examined have the sonames and the device code of the
    wheel of the same version.
    """
    rows = sorted(own, key=lambda one: (one.archive.platform, one.archive.variant or ""))
    rows.sort(key=lambda one: (one.channel, one.redist, one.label))
    by_wheel = _by_wheel(index, rows)
    contents = {one.contents for one in rows if one.contents}
    facts = _Facts(index, {*contents, *by_wheel.values()})
    neighbors = _Neighbors(index, {one.redist for one in rows}, contents, facts.needed)
    for one in rows:
        archive = one.archive
        paths = {"relative_path": archive.relative_path, "sha256": archive.sha256}
        fields: dict[str, Any] = {"date": one.date, **paths}
        about = {"channel": one.channel, "is_examined": one.contents > 0}
        if one.contents:
            fields |= facts.of(one.contents, archive.package, archive.version)
            fields["depends"] = neighbors.providers(one, fields["needed"])
        elif one in by_wheel:
            of_wheel = facts.of(by_wheel[one], archive.package, archive.version)
            fields |= {key: of_wheel[key] for key in ("sonames", "architectures")}
            about["is_by_wheel"] = True
        yield one, ExplainedArchive.of(one.redist, one.label, archive, **about, **fields)


def _by_wheel(index: Index, rows: Iterable[IndexedArchive]) -> dict[IndexedArchive, int]:
    """Return the contents of the wheels of the same version for archives without contents."""
    unexamined = [one for one in rows if not one.contents and one.channel == "redist"]
    if not unexamined:
        return {}
    redists = {one.redist for one in unexamined}
    packages = {one.archive.package for one in unexamined}
    condition = "package IN (SELECT value FROM json_each(?))"
    found = index.archives_by_wheel(redists, condition, packages)
    contents = {one._replace(contents=0, is_by_wheel=False): one.contents for one in found}
    return {one: contents[one] for one in unexamined if one in contents}


class _Facts:
    """The contents of archives, by their rows."""

    def __init__(self, index: Index, contents: Collection[int]) -> None:
        """Read some contents, and the policies of outputs and licenses."""
        self._rules, self._licenses = output_rules(index), license_rules(index)
        self._contents = {row.contents: row for row in index.ask(_CONTENTS, contents)}
        binaries = index.ask(_BINARIES, contents)
        self._binaries = grouped((row.contents, row) for row in binaries)
        self._outputs = grouped((row.contents, row) for row in index.ask(_OUTPUTS, contents))
        self.needed = {name for row in binaries for name in _names(row, "needed")}
        """The names of all required libraries."""
        # Releases share archives, and most libraries have the same path in all of them.
        self.of = cache(self._describe)
        self._distribution = cache(self._distribution_of)

    def _describe(self, row: int, package: str, version: Version) -> dict[str, Any]:
        """Return the fields of an archive with contents."""
        contents, sizes = self._contents[row], self._outputs.get(row, ())
        binaries = self._binaries.get(row, ())
        stubs = [file.path for file in binaries if file.kind == "stub"]
        filled = [size.output for size in sizes if size.files]
        outputs = file_outputs(package, version, filled, stubs, self._rules)
        placed = [
            file
            for file in binaries
            if file.kind != "stub" and not is_dropped(file.path, outputs.dropped)
        ]
        libraries = [file for file in placed if file.kind == "library"]
        sha256 = contents.license_sha256
        text = None if sha256 is None else text_in_file(sha256, self._licenses)
        key = text.title if isinstance(text, LicenseText) else text
        required = (file.glibc for file in placed if file.glibc is not None)
        return {
            "license_text": key,
            "distribution": {lib.path: self._distribution(lib.path, sha256) for lib in libraries},
            "outputs": OutputFiles.by_output(_sizes(outputs, sizes)),
            "sonames": tuple(sorted({file.soname for file in libraries if file.soname})),
            "architectures": _architectures(contents.device_code),
            "glibc": max(required, key=Version.parse, default=None),
            "needed": tuple(sorted({name for file in placed for name in _names(file, "needed")})),
            "opens": tuple(sorted({name for file in placed for name in _names(file, "opens")})),
            "notes": unusual_notes(json.loads(contents.notes)),
        }

    def _distribution_of(self, path: str, sha256: str | None) -> Distribution:
        """Return whether the license text in a file lists a library as distributable."""
        text = None if sha256 is None else text_in_file(sha256, self._licenses)
        return distribution_of(path, text)


def _names(binary: _Binary, way: str) -> list[str]:
    """Return the libraries that a binary needs in a way: `needed` or `opens`."""
    return [name for name, own_way in _needs_in(binary.needs) if own_way == way]


@lru_cache(maxsize=1024)
def _needs_in(text: str) -> list[tuple[str, str]]:
    needs: list[tuple[str, str]] = json.loads(text)
    return needs


class _Size(NamedTuple):
    files: int
    bytes: int


def _sizes(split: FileOutputs, sizes: Iterable[_Output]) -> dict[OutputName, _Size]:
    """Return the sizes of the declared outputs."""
    parts = grouped(
        (resolve((size.output,), split.outputs), size)
        for size in sizes
        if size.output in split.parts
    )
    return {
        output: _Size(
            files=sum(part.files for part in parts.get(output, ())),
            bytes=sum(part.bytes for part in parts.get(output, ())),
        )
        for output in split.outputs
    }


@lru_cache(maxsize=1024)
def _architectures(device_code: str) -> tuple[str, ...]:
    """Return the architectures in device code by folder, as JSON."""
    names = {
        name
        for code in json.loads(device_code).values()
        for part in (code["declared"], code["embedded"])
        for kind in ("sass", "ptx", "lto")
        for name in part[kind]
    }
    return tuple(sorted(names, key=architecture_order))


class _Provider(NamedTuple):
    package: str
    contents: int
    channel: Channel
    redist: str
    label: str
    platform: str
    variant: str | None


_PROVIDERS = Question(
    _Provider,
    """
    SELECT package, contents, channel, redist, label, platform, variant
    FROM archives JOIN current_releases ON release = current_releases.id
    WHERE contents IN (SELECT value FROM json_each(?))
        AND redist IN (SELECT value FROM json_each(?))
    ORDER BY package""",
)


class _Name(NamedTuple):
    soname: str


_NAMES = Question(_Name, "SELECT DISTINCT soname FROM binaries WHERE soname IS NOT NULL")


class _Library(NamedTuple):
    contents: int
    soname: str


_LIBRARIES = Question(
    _Library,
    """
    SELECT contents, soname FROM binaries
    WHERE kind = 'library' AND soname IN (SELECT value FROM json_each(?))""",
)


class _MissingHeaders(NamedTuple):
    contents: int
    headers: str
    """As JSON."""


_MISSING_HEADERS = Question(
    _MissingHeaders,
    """
    SELECT id AS contents, headers FROM contents
    WHERE id IN (SELECT value FROM json_each(?))""",
)


class _File(NamedTuple):
    contents: int
    whole_path: str


_FILES_WITH_NAMES = Question(
    _File,
    """
    SELECT contents, folders.path || '/' || name AS whole_path
    FROM (SELECT DISTINCT value AS file FROM json_each(?)) JOIN folder_files ON name = file
    JOIN folders ON folders.id = folder JOIN contents_folders USING (folder)""",
)


class _Neighbors:
    """The archives of each release and platform with libraries and headers that others need."""

    def __init__(
        self,
        index: Index,
        redists: Collection[str],
        contents: Collection[int],
        needed: Iterable[str],
    ) -> None:
        """Read the archives of some redistributables with some libraries.

        They also have the headers that contents lack.
        """
        keys = {key_of(name) for name in needed}
        sonames = [row.soname for row in index.ask(_NAMES) if key_of(row.soname) in keys]
        self._sonames = grouped(
            (row.contents, key_of(row.soname)) for row in index.ask(_LIBRARIES, sonames)
        )
        self._missing: dict[int, Mapping[str, Mapping[str, str]]] = {
            row.contents: json.loads(row.headers) or {}
            for row in index.ask(_MISSING_HEADERS, contents)
        }
        missing = {name for headers in self._missing.values() for name in headers}
        paths = {f"{root}{name}" for root in ROOTS for name in missing}
        self._headers = grouped(
            (row.contents, row.whole_path)
            for row in index.ask(_FILES_WITH_NAMES, [*map(posixpath.basename, paths)])
            if row.whole_path in paths
        )
        providers = self._sonames.keys() | self._headers.keys()
        self._places = grouped(
            ((row.channel, row.redist, row.label, row.platform, row.variant), row)
            for row in index.ask(_PROVIDERS, providers, redists)
        )
        # Releases share archives: each pair is compared once.
        self._provided = cache(self._compare)
        self._required = cache(self._find_required)

    def providers(self, one: IndexedArchive, needed: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """Return the packages of the release with required libraries or headers."""
        archive = one.archive
        place = (one.channel, one.redist, str(one.label), archive.platform, archive.variant)
        depends: dict[str, tuple[str, ...]] = {}
        neighbors: Sequence[_Provider] = self._places.get(place, ())
        for neighbor in neighbors:
            names = self._provided(one.contents, archive.platform, needed, neighbor.contents)
            if names and neighbor.package != archive.package:
                depends[neighbor.package] = names
        return depends

    def _compare(
        self, contents: int, platform: str, needed: tuple[str, ...], of_neighbor: int
    ) -> tuple[str, ...]:
        """Return the required libraries and headers that the contents of a neighbor have."""
        libraries, headers = self._required(contents, platform, needed)
        return (
            *sorted(libraries.intersection(self._sonames.get(of_neighbor, ()))),
            *sorted(headers.intersection(self._headers.get(of_neighbor, ()))),
        )

    def _find_required(
        self, contents: int, platform: str, needed: tuple[str, ...]
    ) -> tuple[set[str], set[str]]:
        """Return the keys of required libraries, and the paths of missing headers."""
        headers = {
            f"{root}{name}"
            for name, ways in self._missing[contents].items()
            if any(holds(condition, Platform(platform)) for condition in ways.values())
            for root in ROOTS
        }
        return {key_of(name) for name in needed}, headers


@lru_cache(maxsize=1024)
def architecture_order(name: str) -> tuple[int, object]:
    """Return the sort key of an architecture, machine code first."""
    kind = name.partition("_")[0]
    return (_KINDS.index(kind) if kind in _KINDS else len(_KINDS)), natural_order(name)
