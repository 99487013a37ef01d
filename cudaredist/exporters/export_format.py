"""Exporters and their input: a package set with its available packages."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias, TypeVar

from cudaredist.errors import InvalidFileError, Problem, UsageError
from cudaredist.formats.package_vulnerability import PackageVulnerability
from cudaredist.formats.packageset import PackageSet, SetArchive, SetPackage
from cudaredist.formats.toolkit_record import ToolkitFile, ToolkitRecord
from cudaredist.hints import again
from cudaredist.primitives import join_address, path_problem
from cudaredist.redists import NVIDIA_BASE, NVIDIA_PREVIEWS
from cudaredist.words import listed, plural, shown

Files: TypeAlias = Mapping[str, bytes]
"""File contents by relative path."""

T = TypeVar("T")

_is_plain_url = re.compile(r"[a-z][a-z0-9+.-]*://[!#-;=?-Z_a-z~\[\]]+").fullmatch
_CMAKE_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "$": "\\$"})


class ExportedPackage(NamedTuple):
    """An available package and its archive."""

    attr: str
    entry: SetPackage
    archive: SetArchive


@dataclass(frozen=True)
class ExportedSet:
    """A package set to export.

    Equal sets result in equal bytes in every format.
    """

    package_set: PackageSet
    root: str | None = None
    """Path of the toolkit root, for formats that use it."""
    host: PackageSet | None = None
    """The set of the compiler, if the set is the target of a cross toolkit."""
    record: ToolkitRecord | None = None
    """The record of the toolkit root. None: it does not exist yet."""
    vulnerabilities: Mapping[str, tuple[PackageVulnerability, ...]] = field(default_factory=dict)
    """Known vulnerabilities by attribute, if they are exported."""
    nvidia_channel: str | None = None
    """The channel of `releases.json` to write, for NVIDIA's manifests. None: do not write it."""

    @property
    def title(self) -> str:
        """One-line description of the set."""
        text = f"CUDA {self.package_set.cuda.release} for {self.package_set.platform.redist_system}"
        if self.host is not None:
            text += f" on {self.host.platform.redist_system}"
        return "".join(character if character.isprintable() else " " for character in text)

    @cached_property
    def packages(self) -> tuple[ExportedPackage, ...]:
        """The available packages without aliases, sorted by name.

        Raises `InvalidFileError` if the path or URL of an archive is unsafe in an exported file.
        """
        packages, problems = [], []
        for attr, entry in sorted(self.package_set.available.items()):
            problem = _archive_problem(entry.archive)
            if problem is not None:
                problems.append(Problem(f"packages.{attr}.archive", problem))
            if entry.archive is not None:
                packages.append(ExportedPackage(attr, entry, entry.archive))
        if problems:
            raise InvalidFileError("package-set file", problems)
        return tuple(packages)

    @cached_property
    def dependencies(self) -> dict[str, list[str]]:
        """The available packages that each available package depends on, sorted."""
        names = {package.attr for package in self.packages}
        return {
            attr: sorted({entry.attr for entry in package.depends} & names - {attr})
            for attr, package, _ in self.packages
        }

    def opened(self, attr: str) -> list[str]:
        """Return the packages with libraries that a package opens and requires, sorted."""
        depends = self.package_set.packages[attr].depends
        return sorted(
            {entry.attr for entry in depends if entry.kind == "dlopen" and not entry.is_optional}
        )

    def optional_dependencies(self, attr: str) -> list[str]:
        """Return the packages that a package can do without, sorted."""
        depends = self.package_set.packages[attr].depends
        required = {entry.attr for entry in depends if not entry.is_optional}
        return sorted({entry.attr for entry in depends} - required)

    def changed_files(self, attr: str) -> dict[str, ToolkitFile]:
        """Return the files of a package in the root to which run paths were added."""
        files = {} if self.record is None else self.record.changed_files
        return {path: file for path, file in files.items() if file.package == attr}

    @cached_property
    def without_libraries(self) -> frozenset[str]:
        """The available packages with unknown libraries."""
        return frozenset(package.attr for package in self.packages if not package.entry.contents)

    @cached_property
    def unexamined(self) -> frozenset[str]:
        """The available packages with unknown outputs."""
        whole = {package.attr for package in self.packages if package.entry.outputs == ("out",)}
        return self.without_libraries & whole

    def require_addresses(self) -> None:
        """Raise `UsageError` if the URL of an archive is unknown."""
        unknown = [package.attr for package in self.packages if package.archive.url is None]
        if not unknown:
            return
        if self.package_set.channel == "wheels":
            call = again("--resolve")
            hint = f"run `{call}` to use the package index, or add --wheel-base URL to use a mirror"
        else:
            hint = (
                "add the URLs to `urls` in policy/fixups.json of an overlay, and build the "
                "set again with --overlay FOLDER"
            )
        message = f"unknown URLs of {plural(len(unknown), 'archive')}: {listed(unknown)}"
        raise UsageError(message, hint=hint)


class Exporter(NamedTuple):
    """An export format."""

    name: str
    file: str | None
    """Name of its file. None: several files."""
    files: Callable[..., Files]
    """Takes an `ExportedSet`, or the manifests of a data folder."""
    takes_root: bool = False
    """Whether it uses the path of a toolkit root."""
    reads_root: bool = False
    """Whether it names the changed files of an existing toolkit root."""
    takes_target: bool = False
    """Whether it has a form for a cross toolkit."""
    takes_addresses: bool = False
    """Whether it has the addresses or sizes of archives."""
    takes_index: bool = False
    """Whether it has the addresses of wheels in the package index."""
    takes_advisories: bool = False
    """Whether it has known vulnerabilities."""
    reads_features: bool = False
    """Whether it skips packages that were not inspected."""
    reads_libraries: bool = False
    """Whether it also skips packages with known outputs but unknown libraries."""
    reads_manifests: bool = False
    """Whether it takes all manifests of a data folder instead of a set."""
    reads_data: bool = False
    """Whether it reads the data folder."""

    @property
    def title(self) -> str:
        """The first line of its docstring."""
        return (self.files.__doc__ or "").partition("\n")[0]

    def skipped(self, exported: ExportedSet) -> frozenset[str]:
        """Return the available packages that the format skips."""
        if self.reads_libraries:
            return exported.without_libraries
        return exported.unexamined if self.reads_features else frozenset()


def exporter(
    name: str, file: str | None, **reads: bool
) -> Callable[[Callable[..., Files]], Exporter]:
    """Return a decorator that makes a function a format, with the fields of `Exporter`."""
    return lambda files: Exporter(name, file, files, **reads)


def with_addresses(package_set: PackageSet, base: str) -> PackageSet:
    """Set the URLs of archives to those of a mirror.

    Wheels without a URL get the base, joined with their paths. In URLs of NVIDIA's servers, the
    base replaces the server. Other URLs do not change.
    """
    is_wheels = package_set.channel == "wheels"
    base = f"{base.rstrip('/')}/"
    if not _is_plain_url(base):
        option = "--wheel-base" if is_wheels else "--base-url"
        hint = f"use a URL such as https://example.org/, or run `{again(without=[option])}`"
        raise UsageError(f"{shown(base)} is not a URL", hint=hint)
    packages = dict(package_set.packages)
    for attr, entry in packages.items():
        if entry.archive is None:
            continue
        url = entry.archive.url
        if is_wheels:
            url = url or join_address(base, entry.archive.relative_path)
        elif url is not None and url.startswith((f"{NVIDIA_BASE}/", f"{NVIDIA_PREVIEWS}/")):
            url = base + url.removeprefix(f"{NVIDIA_BASE}/").removeprefix(f"{NVIDIA_PREVIEWS}/")
        archive = entry.archive.model_copy(update={"url": url})
        packages[attr] = entry.model_copy(update={"archive": archive})
    return package_set.model_copy(update={"packages": packages})


def filled_template(name: str, **values: object) -> bytes:
    """Return the file that a template makes from values.

    Filters quote a text: `shell`, `cmake` (inside quotes), and `json`, whose escapes are those of
    Starlark, except for non-ASCII characters.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - slow to import

    environment = Environment(
        loader=PackageLoader("cudaredist.exporters"),
        autoescape=False,  # noqa: S701 - no template is HTML
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "shell": shlex.quote,
        "cmake": lambda text: text.translate(_CMAKE_ESCAPES),
        "json": lambda text: json.dumps(text or "", ensure_ascii=False),
    }
    return environment.get_template(name).render(values).encode()


def with_line_feed(data: bytes) -> bytes:
    """Return text with a line feed at the end."""
    return data if data.endswith(b"\n") else data + b"\n"


def without_nulls(fields: Mapping[str, T | None]) -> dict[str, T]:
    """Return the fields that have a value."""
    return {key: value for key, value in fields.items() if value is not None}


def _archive_problem(archive: SetArchive | None) -> str | None:
    if archive is None:
        return "is null, but the package is available"
    problem = path_problem(archive.relative_path)
    if problem is not None:
        return f"the path {shown(archive.relative_path)} {problem}"
    if archive.url is not None and not _is_plain_url(archive.url):
        return f"{shown(archive.url)} is not a URL"
    return None
