"""Exporters: a package set as the files of its consumers, all of them pure functions.

To add a format, write its exporter and add it to the registry. The tests that walk the registry
report the parts that are missing.
"""

from cudaredist.errors import find_name
from cudaredist.exporters.bazel import bazel
from cudaredist.exporters.cyclonedx import cyclonedx
from cudaredist.exporters.export_format import Exporter
from cudaredist.exporters.lists import ignore_missing, nix, outputs, sha256sums, urls
from cudaredist.exporters.nixpkgs_tables import nixpkgs
from cudaredist.exporters.python_locks import pylock, requirements
from cudaredist.exporters.redistrib import redistrib
from cudaredist.exporters.spdx import spdx
from cudaredist.exporters.toolchain import cmake, env

_ALL = (
    *(nix, nixpkgs, redistrib, bazel, pylock, requirements),
    *(cyclonedx, spdx, urls, sha256sums, outputs, ignore_missing, env, cmake),
)
EXPORTERS: dict[str, Exporter] = {exporter.name: exporter for exporter in _ALL}
"""Every format by name, in order of worth."""


def find_exporter(name: str) -> Exporter:
    """Return the format of that name, or raise `UnknownNameError` with the nearest one."""
    return find_name("export format", name, EXPORTERS)
