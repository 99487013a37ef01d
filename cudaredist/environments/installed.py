"""Read installed environments: their kind, and the METADATA and RECORD of their packages."""

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.parser import HeaderParser
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cudaredist.programs.program import ProgramFile
from cudaredist.programs.report import EnvironmentKind
from cudaredist.store.files import foreign_text
from cudaredist.wheels import parse_requirements

_METADATA = "METADATA"
_DIST_INFO = ".dist-info"
_MARKS = frozenset({"pyvenv.cfg", "conda-meta", ".cudaredist.json", "etc", "usr"})
"""Names in the folder of an environment."""
_TEXT_LIMIT = 16 << 20
_LINE_LIMIT = 1 << 16
_TEXT_FILES = (".py", ".h,", ".hpp,", ".cuh,")
"""Parts of lines of RECORD for modules and headers, which are most lines."""
_SIZE_DIGITS = 20


class RecordedFile(NamedTuple):
    """A file in RECORD."""

    digest: str
    """Its hash, such as `sha256=...`. Empty if RECORD has none."""
    size: int | None


class Distribution(NamedTuple):
    """An installed Python package."""

    project: str
    version: str
    site: str
    """The folder that it is installed in, such as `site-packages`."""
    requires: tuple[Requirement, ...]
    extras: tuple[str, ...]
    files: Mapping[str, RecordedFile]
    """Its files other than modules and headers by path, also removed ones."""
    installer: str = ""
    """The program that installed it, such as `pip`, `uv` or `conda`."""

    @property
    def title(self) -> str:
        """Its project and version."""
        return f"{self.project} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An installed environment."""

    path: str
    kind: EnvironmentKind
    root: str
    """The root of its file system."""
    files: list[ProgramFile] = field(default_factory=list)
    distributions: dict[str, Distribution] = field(default_factory=dict)
    """By project."""
    unreadable: list[str] = field(default_factory=list)
    """Libraries and folders that cannot be read."""

    def add_package(self, folder: Path) -> None:
        """Add the package with a metadata folder. Other folders are ignored."""
        if folder.suffix == _DIST_INFO:
            package = _distribution(folder)
            self.distributions.setdefault(package.project, package)

    def owners(self) -> dict[str, Distribution]:
        """Return the packages of files by path."""
        packages = self.distributions.values()
        return {path: package for package in packages for path in package.files}


def find_environment(path: Path) -> Environment | None:
    """Return the environment in a folder, None if it is a folder of a program."""
    # The folder may have many other files.
    with os.scandir(path) as entries:
        names = {each.name for each in entries if _may_be_mark(each.name)}
    real = os.path.realpath(path)

    def environment(kind: EnvironmentKind, root: str = "/") -> Environment:
        return Environment(path=str(path), kind=kind, root=root)

    if "pyvenv.cfg" in names:
        return environment("virtual environment")
    if "conda-meta" in names:
        return environment("conda environment")
    if ".cudaredist.json" in names:
        return environment("toolkit")
    if {"etc", "usr"} <= names:
        return environment("root file system", real)
    if any(name.endswith(_DIST_INFO) for name in names):
        return environment("packages")
    libraries = (path / name for name in sorted(names) if name.startswith("lib"))
    has_packages = any(any(each.glob("python3*/site-packages")) for each in libraries)
    return environment("packages") if has_packages else None


def included_python(environment: Environment) -> str | None:
    """Describe the Python whose packages a virtual environment includes.

    Return None for an environment without `--system-site-packages`.
    """
    if environment.kind != "virtual environment":
        return None
    lines = foreign_text(Path(environment.path, "pyvenv.cfg"), _TEXT_LIMIT).splitlines()
    pairs = (line.partition("=") for line in lines)
    settings = {name.strip().lower(): value.strip() for name, _, value in pairs}
    includes = settings.get("include-system-site-packages", "").lower() == "true"
    if not includes:
        return None
    home = settings.get("home")
    return f"the Python in {home}" if home else "another Python"


def _may_be_mark(name: str) -> bool:
    """Check if a name in a folder may be the mark of an environment."""
    return name in _MARKS or name.startswith("lib") or name.endswith(_DIST_INFO)


def _distribution(folder: Path) -> Distribution:
    """Return an installed package. Invalid requirements are left out."""
    headers = HeaderParser().parsestr(foreign_text(folder / _METADATA, _TEXT_LIMIT))
    name, _, version = folder.name.removesuffix(_DIST_INFO).partition("-")
    site = os.path.realpath(folder.parent)
    record = foreign_text(folder / "RECORD", _TEXT_LIMIT).splitlines()
    files: dict[str, RecordedFile] = {}
    for line in record:
        is_text = any(map(line.__contains__, _TEXT_FILES)) and ".pyd" not in line
        row = [] if is_text or len(line) > _LINE_LIMIT else _row(line)
        if row:
            name_in_site, *digest_and_size = row
            files[_normalized(f"{site}/{name_in_site}")] = _recorded(*digest_and_size[:2])
    return Distribution(
        project=canonicalize_name(headers.get("Name", name)),
        version=headers.get("Version", version),
        site=site,
        requires=tuple(parse_requirements(headers)),
        extras=tuple(headers.get_all("Provides-Extra", ())),
        installer=foreign_text(folder / "INSTALLER", _LINE_LIMIT).strip(),
        files=files,
    )


def _normalized(path: str) -> str:
    """Return a path without `.`, `..` and repeated slashes, as almost all in RECORD already are."""
    is_normal = "/." not in path and "//" not in path and not path.endswith("/")
    return path if is_normal else os.path.normpath(path)


def _row(line: str) -> list[str]:
    """Return the fields of a line of RECORD, none if it is invalid. No name has line breaks."""
    if '"' not in line:
        return line.split(",") if line else []
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _recorded(digest: str = "", size: str = "") -> RecordedFile:
    is_number = size.isdecimal() and len(size) <= _SIZE_DIGITS
    return RecordedFile(digest, int(size) if is_number else None)
