"""Exporters: a package set as the files of its consumers, all of them pure functions.

To add a format, write its exporter and add it to the registry. The tests that walk the registry
report the parts that are missing.
"""

from cudaredist.errors import UnknownNameError
from cudaredist.exporters.bazel import BAZEL
from cudaredist.exporters.cyclonedx import CYCLONEDX
from cudaredist.exporters.export_format import Exporter
from cudaredist.exporters.lists import IGNORE_MISSING, NIX, OUTPUTS, SHA256SUMS, URLS
from cudaredist.exporters.redistrib import REDISTRIB
from cudaredist.exporters.spdx import SPDX
from cudaredist.exporters.toolchain import CMAKE, ENV

_ALL = (
    *(NIX, REDISTRIB, BAZEL, CYCLONEDX, SPDX),
    *(URLS, SHA256SUMS, OUTPUTS, IGNORE_MISSING, ENV, CMAKE),
)
EXPORTERS: dict[str, Exporter] = {exporter.name: exporter for exporter in _ALL}
"""Every format by name, in order of worth."""


def find_exporter(name: str) -> Exporter:
    """Return the format of that name, or raise `UnknownNameError` with the nearest one."""
    try:
        return EXPORTERS[name]
    except KeyError:
        raise UnknownNameError("export format", name, EXPORTERS) from None
