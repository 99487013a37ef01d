"""which: find the packages that provide a file or a soname."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import translate
from functools import cache
from itertools import chain
from typing import NamedTuple, Self

from cudaredist.commands.which.report import OutsideProvider, WhichHit, WhichReport
from cudaredist.commands.which.search import Search
from cudaredist.errors import EXIT_FINDINGS, EXIT_INCOMPLETE, EXIT_OK, UnknownNameError
from cudaredist.formats.names import Distribution, OutputName
from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.grouping import grouped
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Version, natural_order
from cudaredist.sets.file_outputs import FileOutputs, file_outputs, is_for_other_cuda
from cudaredist.sets.library_names import find_external
from cudaredist.similar_names import misspelled_names
from cudaredist.store.absence import Unexamined, inspect_command
from cudaredist.store.facts_index import WITHOUT_FILES, WITHOUT_LIBRARIES, Index, Question
from cudaredist.store.indexed_policies import library_rules, main_programs, output_rules
from cudaredist.store.indexed_vulnerabilities import indexed_vulnerabilities
from cudaredist.tables.symbols.symbol_pattern import glob_of
from cudaredist.wheel_projects import other_project, package_of_project
from cudaredist.words import without_secrets

_library = re.compile(r"\.(?:so|dll)(?:$|[.*?\[])", re.IGNORECASE)

_GLOB = "({0} GLOB ?1 OR {0} GLOB '*/' || ?1)"
"""A condition of SQL for all names that match, and possibly others."""
_SOME = "{} IN (SELECT value FROM json_each(?))"


class _File(NamedTuple):
    folder: int
    whole_path: str


_FILES = Question(
    _File,
    """
    SELECT folder, CASE path WHEN '' THEN name ELSE path || '/' || name END AS whole_path
    FROM folder_files JOIN folders ON id = folder
    WHERE {condition}""",
)
_WITH_NAME = _FILES.where("name = ?")
_WITH_PATH = _FILES.where(_GLOB.format("whole_path"))


class _Folder(NamedTuple):
    contents: int
    output: OutputName
    folder: int


_FOLDERS = Question(
    _Folder,
    f"SELECT contents, output, folder FROM contents_folders WHERE {_SOME.format('folder')}",
)


class _Binary(NamedTuple):
    contents: int
    path: str
    output: OutputName
    soname: str | None
    link: str | None


_BINARIES = Question(
    _Binary,
    f"""
    SELECT contents, binaries.path, output, soname, links.path AS link
    FROM binaries LEFT JOIN links ON binary = id
    WHERE id IN (
        SELECT id FROM binaries WHERE {_GLOB.format("path")} OR {_GLOB.format("soname")}
        UNION ALL SELECT binary FROM links WHERE {_GLOB.format("path")})""",
)


class _Distribution(NamedTuple):
    contents: int
    path: str
    distribution: Distribution


# With `+`, the query begins with the index of names. Without it, it reads all files of contents.
_DISTRIBUTIONS = Question(
    _Distribution,
    f"""
    SELECT contents, path, distribution FROM distributions
    WHERE {" AND ".join(map(_SOME.format, ("name", "+contents", "+path")))}""",
)


class _Output(NamedTuple):
    contents: int
    output: OutputName


_OUTPUTS = Question(
    _Output,
    f"SELECT contents, output FROM outputs WHERE files > 0 AND {_SOME.format('contents')}",
)


class _Library(NamedTuple):
    contents: int
    path: str
    kind: str


_LIBRARIES = Question(
    _Library,
    f"""
    SELECT contents, path, kind FROM binaries
    WHERE {_SOME.format("contents")}
        AND (kind = 'stub' OR kind = 'library' AND {_SOME.format("path")})""",
)


class _CudaFolder(NamedTuple):
    contents: int
    folder: str
    """The folder in `lib` for a CUDA release."""


_CUDA_FOLDERS = Question(
    _CudaFolder,
    f"""
    SELECT contents.id AS contents, value AS folder
    FROM contents, json_each(facts, '$.cuda_versions_in_lib')
    WHERE {_SOME.format("contents.id")}""",
)


class _Facts(NamedTuple):
    """Facts about contents of archives, by their rows."""

    outputs: Mapping[int, Sequence[OutputName]]
    libraries: Mapping[int, Sequence[str]]
    """The matching ones, and all stubs."""
    stubs: Mapping[int, Sequence[str]]
    folders: Mapping[int, Sequence[str]]
    """Only if a CUDA release is selected."""

    @classmethod
    def of(cls, search: Search, contents: Collection[int], paths: Collection[str]) -> Self:
        """Read the facts about some contents with matching paths."""
        index = search.index
        libraries = index.ask(_LIBRARIES, contents, paths)
        stubs = ((one.contents, one.path) for one in libraries if one.kind == "stub")
        return cls(
            outputs=grouped(index.ask(_OUTPUTS, contents)),
            libraries=grouped((one.contents, one.path) for one in libraries),
            stubs=grouped(stubs),
            folders=grouped(index.ask(_CUDA_FOLDERS, contents) if search.usable else ()),
        )


def find_providers(name: str, search: Search) -> WhichReport:
    """Return the local packages that provide a soname or a file.

    `name` is a soname, a file name or the end of a path, and `*` matches any characters. Of an
    absolute path, such as that of an installed library, only the file name counts. If nothing
    matches, but archives with unknown files may have the file, the exit code is 3. Raises
    `UsageError` without local manifests, and `UnknownNameError` for a platform without local
    archives.
    """
    index, platform, redists = search.index, search.platform, search.redists
    name = posixpath.basename(name) if name.startswith("/") else name
    names = redists or index.redists()
    for redist in redists:
        index.labels(redist)
    search = replace(search, redists=names)
    platforms = {one.archive.platform for one in index.archives(names)} if platform else set()
    if platform is not None and platform not in platforms:
        raise UnknownNameError("platform in the local manifests", platform, platforms)
    hits, is_beginning = _named_or_beginning(search, name)
    others: tuple[WhichHit, ...] = ()
    if platform is not None and not hits:
        others, _ = _named_or_beginning(replace(search, platform=None), name)
    packages = () if hits else _of_package(name, search)
    # The package with a file on one platform is that with the file on the others.
    providers = {hit.package for hit in hits or others}
    is_library = bool(_library.search(name))
    condition = WITHOUT_LIBRARIES if is_library else WITHOUT_FILES
    unknown: list[Unexamined] = []
    if providers or not packages:  # a package is not a file, and the manifests have its answer
        unknown = search.unexamined(condition, providers)
    outside = None if others else _outside_provider(name, index)
    likely = () if hits or outside is not None else _likely_packages(name, index)
    code = EXIT_OK
    if not hits and outside is None:
        # All libraries of examined archives are known.
        may_have_it = any(each.unread if is_library else each.archives for each in unknown)
        # No path in an archive has a folder without a name, as addresses have.
        may_have_it = may_have_it and "//" not in name
        code = EXIT_INCOMPLETE if may_have_it else EXIT_FINDINGS
    if likely and unknown:
        providers = set(likely)
        unknown = search.unexamined(condition, providers) or unknown
    scope = {release.redist for release in unknown} if providers else redists
    return WhichReport(
        name=without_secrets(name),
        cuda=search.cuda,
        searched=index.examined_releases(names),
        hits=hits,
        is_beginning=is_beginning,
        elsewhere=tuple(sorted({hit.platform for hit in others})),
        package=tuple(sorted({one.platform for one in packages})),
        outside=outside,
        unknown=sum(release.archives for release in unknown),
        likely=likely,
        suggestions=() if code == EXIT_OK else _similar(name, search.sonames()),
        hint=inspect_command(unknown, sorted(scope), platform, sorted(providers)),
        vulnerabilities=tuple(_vulnerabilities(hits, index)),
        exit_code=code,
    )


def _vulnerabilities(hits: Iterable[WhichHit], index: Index) -> Iterator[PackageVulnerability]:
    """Yield the known vulnerabilities of the packages with a file, in the archives of the hits."""
    places = grouped(((hit.redist, hit.package), (hit.release, hit.platform)) for hit in hits)
    for (redist, package), own in places.items():
        yield from indexed_vulnerabilities(index, redist, package, set(own))


def _of_package(name: str, search: Search) -> list[Archive]:
    """Return the archives of a package, or the wheels of a project such as nvidia-nccl-cu12."""
    names = {name, package_of_project(name)}
    archives = search.index.archives(search.redists, _SOME.format("package"), names)
    # The package of a project has other projects, too.
    return [one.archive for one in archives if name in {one.archive.package, one.archive.project}]


def _named_or_beginning(search: Search, name: str) -> tuple[tuple[WhichHit, ...], bool]:
    """Return the files with a name, else those that begin with it.

    The second value is true for files that begin with it. Only a name without a version, such as
    libnvrtc-builtins, can be the beginning of others.
    """
    hits = tuple(_hits(search, name))
    if hits or _extended(name):
        return hits, False
    hits = tuple(_hits(search, f"{name}.*"))
    return hits, bool(hits)


def _extended(name: str) -> bool:
    """Check if a name has an extension, a version, a folder or `*`."""
    return any(character in name for character in ".*/?[")


def _hits(search: Search, name: str) -> Iterator[WhichHit]:
    """Yield the matching files, with the output of each in package sets."""
    rules = output_rules(search.index)
    matches = _matching_files(search.index, name)
    files = {path for own in matches.values() for path in own}
    facts = _Facts.of(search, matches, files)
    distributions = _distributions(search.index, matches, files)

    @cache
    def outputs_of(row: int, package: str, version: Version) -> FileOutputs:
        # Releases share archives: each is split once.
        return file_outputs(
            package, version, facts.outputs.get(row, ()), facts.stubs.get(row, ()), rules
        )

    condition = _SOME.format("contents")
    # The query begins with these archives, not with all releases.
    ids = f"SELECT id FROM archives WHERE {condition}"
    examined_rows = search.archives(f"archives.id IN ({ids})", matches)
    by_wheel = search.archives_by_wheel(condition, matches)
    for row in chain(examined_rows, by_wheel):
        archive = row.archive
        outputs = outputs_of(row.contents, archive.package, archive.version)
        paths = matches[row.contents]
        if row.is_by_wheel:
            # Only the libraries are those of the wheel.
            libraries = facts.libraries.get(row.contents, ())
            paths = {path: output for path, output in paths.items() if path in libraries}
        for path, output in sorted(paths.items()):
            if search.usable is None or not is_for_other_cuda(
                path, facts.folders.get(row.contents, ()), search.usable[row.channel].cuda
            ):
                yield WhichHit.of(
                    row.redist,
                    row.label,
                    archive,
                    channel=row.channel,
                    is_by_wheel=row.is_by_wheel,
                    path=path,
                    output=outputs.output_of(path, output),
                    distribution=None
                    if row.is_by_wheel
                    else distributions.get((row.contents, path), "unknown"),
                    project=archive.project,
                )


def _distributions(
    index: Index, contents: Collection[int], paths: Collection[str]
) -> dict[tuple[int, str], Distribution]:
    """Return whether license texts list the matching files, by contents and path."""
    rows = index.ask(_DISTRIBUTIONS, {*map(posixpath.basename, paths)}, contents, paths)
    return {(row.contents, row.path): row.distribution for row in rows}


def _matching_files(index: Index, name: str) -> dict[int, dict[str, OutputName]]:
    """Return the outputs of matching files by path, for each row of contents.

    A library also matches by its soname and by its links.
    """
    matches: dict[int, dict[str, OutputName]] = defaultdict(dict)
    pattern, glob = _pattern(name), glob_of(name)
    # Names have an index.
    files = _WITH_PATH if not {*"*?[/"}.isdisjoint(glob) else _WITH_NAME
    paths = grouped(
        (file.folder, file.whole_path)
        for file in index.ask(files, glob)
        if pattern.match(file.whole_path)
    )
    for folder in index.ask(_FOLDERS, paths):
        matches[folder.contents] |= dict.fromkeys(paths[folder.folder], folder.output)
    for binary in index.ask(_BINARIES, glob):
        names = (binary.path, binary.soname, binary.link)
        if any(pattern.match(name) for name in names if name):
            matches[binary.contents][binary.path] = binary.output
    return matches


def _pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of files that match by name, by path or, with a `/`, by a path's end."""
    start = ".*/" if "/" in name else r".*/(?=[^/]*\Z)"
    return re.compile(f"(?s:{start})?{translate(name)}")


def _outside_provider(name: str, index: Index) -> OutsideProvider | None:
    """Return the policy's provider of a library outside all redistributables."""
    entry = find_external(posixpath.basename(name), library_rules(index))
    if entry is None:
        return None
    return OutsideProvider(
        owner=entry.owner,
        provider=entry.provider,
        reason=entry.reason,
        packages=entry.packages,
    )


def _likely_packages(name: str, index: Index) -> tuple[str, ...]:
    """Return the packages whose main program has a name, or whose product has such a library."""
    file = posixpath.basename(name)
    program = file.removesuffix(".exe")
    packages = {package for package, own in main_programs(index).items() if own == program}
    if (project := other_project(file)) is not None:
        packages.add(package_of_project(project))
    archives = index.archives(index.redists(), _SOME.format("package"), packages)
    return tuple(sorted({one.archive.package for one in archives}))


def _similar(name: str, sonames: Collection[str]) -> tuple[str, ...]:
    """Return the sonames that begin with a name, else those that it may misspell."""
    prefix = posixpath.basename(name).lower()
    matches = [soname for soname in sonames if soname.lower().startswith(f"{prefix}.")]
    if not matches and prefix.endswith(".dll"):
        # Names of DLLs have the number of bits and the version: cublas64_12.dll.
        numbered = re.compile(rf"{re.escape(prefix.removesuffix('.dll'))}(64)?[_0-9]*\.dll")
        matches = [soname for soname in sonames if numbered.fullmatch(soname.lower())]
    similar = matches or [
        soname for soname in misspelled_names(prefix, sonames) if _is_alike(prefix, soname)
    ]
    return tuple(sorted(similar, key=natural_order))


def _is_alike(name: str, soname: str) -> bool:
    """Check if two names of libraries are alike without their versions."""
    return bool(misspelled_names(name.partition(".")[0], [soname.partition(".")[0]]))
