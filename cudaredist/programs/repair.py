"""Changes that resolve a finding, and the commands that make them."""

import os
from collections.abc import Mapping
from shlex import quote
from typing import Literal, NamedTuple, TypeAlias

from packaging.specifiers import SpecifierSet

from cudaredist.wheel_projects import COMPONENTS, package_of

Installer: TypeAlias = Literal["pip", "uv", "conda"]

COMMANDS: Mapping[Installer, tuple[str, str, str]] = {
    "pip": ("pip uninstall --yes", "pip install", "pip install --force-reinstall --no-deps"),
    "uv": ("uv pip uninstall", "uv pip install", "uv pip install --reinstall --no-deps"),
    "conda": ("conda remove", "conda install", "conda install --force-reinstall"),
}
"""Commands that remove, install, and install again."""
_PYTHON = "Scripts/python" if os.name == "nt" else "bin/python"
"""The interpreter of a virtual environment."""
_ORDER = ("===", "==", "~=", ">=", ">", "!=", "<=", "<")
_CONDA_PRODUCTS = frozenset({"cudnn", "cutensor", "nccl"})
"""Products whose packages have the same names and versions in conda-forge."""


class Install(NamedTuple):
    """A project to install."""

    project: str
    versions: SpecifierSet
    extras: tuple[str, ...] = ()


class Repair(NamedTuple):
    """Changes that resolve a finding."""

    installer: Installer = "pip"
    """The program that removes and installs packages."""
    environment: str | None = None
    """The path of the environment to change. None: it is the active one, or none is active."""
    removed: tuple[str, ...] = ()
    """Projects to remove."""
    installs: tuple[Install, ...] = ()
    reinstalls: tuple[tuple[str, str], ...] = ()
    """Projects and versions to install again."""
    commands: tuple[str, ...] = ()
    """Commands of other programs."""
    has_placeholder: bool = False
    """Whether a part of a command has to be replaced, so that it is not combined with others."""

    @property
    def is_possible(self) -> bool:
        """Whether the installer knows all packages."""
        changed = [install.project for install in self.installs]
        changed += (project for project, _ in self.reinstalls)
        return self.installer != "conda" or all(map(_conda_name, [*self.removed, *changed]))

    @property
    def command(self) -> str:
        """The commands in one line."""
        equals = "=" if self.installer == "conda" else "=="
        packages = (
            [self._package(project) for project in self.removed],
            [self._requirement(install) for install in self.installs],
            [f"{self._package(project)}{equals}{version}" for project, version in self.reinstalls],
        )
        parts = [
            " ".join([self._in_environment(command), *map(quote, names)])
            for command, names in zip(COMMANDS[self.installer], packages, strict=True)
            if names
        ]
        return " && ".join([*parts, *self.commands])

    def _in_environment(self, command: str) -> str:
        """Return a command that changes the environment, even if another one is active."""
        if self.environment is None:
            return command
        path = quote(self.environment)
        if self.installer == "pip":
            return f"{path}/{_PYTHON} -m {command}"
        option = "--python" if self.installer == "uv" else "--prefix"
        return f"{command} {option} {path}"

    def _requirement(self, install: Install) -> str:
        extras = f"[{','.join(install.extras)}]" if install.extras else ""
        return f"{self._package(install.project)}{extras}{specifier_text(install.versions)}"

    def _package(self, project: str) -> str:
        """Return the name of a project's package for the installer."""
        return (_conda_name(project) if self.installer == "conda" else None) or project


def specifier_text(versions: SpecifierSet) -> str:
    """Return versions as a requirement has them, lower bounds first."""
    parts = sorted(versions, key=lambda part: (_ORDER.index(part.operator), part.version))
    return ",".join(map(str, parts))


def _conda_name(project: str) -> str | None:
    """Return the package of conda-forge with the libraries of a wheel, if it is known."""
    package, _ = package_of(project)
    is_known = package in _CONDA_PRODUCTS or package in COMPONENTS.values()
    return package.replace("_", "-") if is_known else None
