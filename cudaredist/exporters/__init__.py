"""Package sets as the files of their consumers: one module per format, all of them pure.

To add a format, write its module and add it to the registry; the tests that walk the registry tell
what else is missing.
"""

from cudaredist.errors import UnknownNameError
from cudaredist.exporters.bazel import BAZEL
from cudaredist.exporters.cmake import CMAKE
from cudaredist.exporters.cyclonedx import CYCLONEDX
from cudaredist.exporters.env import ENV
from cudaredist.exporters.export_format import Exporter, Files, Subject, with_addresses
from cudaredist.exporters.ignore_missing import IGNORE_MISSING
from cudaredist.exporters.nix import NIX
from cudaredist.exporters.outputs import OUTPUTS
from cudaredist.exporters.redistrib import REDISTRIB
from cudaredist.exporters.sha256sums import SHA256SUMS
from cudaredist.exporters.spdx import SPDX
from cudaredist.exporters.urls import URLS

__all__ = ["EXPORTERS", "Exporter", "Files", "Subject", "find_exporter", "with_addresses"]

EXPORTERS: dict[str, Exporter] = {
    exporter.name: exporter
    for exporter in (
        NIX,
        REDISTRIB,
        BAZEL,
        CYCLONEDX,
        SPDX,
        URLS,
        SHA256SUMS,
        OUTPUTS,
        IGNORE_MISSING,
        ENV,
        CMAKE,
    )
}
"""Every format by name, in order of worth."""


def find_exporter(name: str) -> Exporter:
    """Return the format of that name; `UnknownNameError`, which suggests the nearest, if none."""
    try:
        return EXPORTERS[name]
    except KeyError:
        raise UnknownNameError("export format", name, EXPORTERS) from None
