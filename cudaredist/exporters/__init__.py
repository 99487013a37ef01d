"""Export formats for package sets and manifests. Each exporter is a pure function.

To add a format, write its exporter and add it to the registry. The tests of the registry report
missing parts.
"""

from cudaredist.errors import find_name
from cudaredist.exporters.bazel import bazel
from cudaredist.exporters.cyclonedx import cyclonedx
from cudaredist.exporters.export_format import Exporter
from cudaredist.exporters.lists import ignore_missing, outputs, sha256sums, urls
from cudaredist.exporters.nix_set import nix
from cudaredist.exporters.python_locks import pylock, requirements
from cudaredist.exporters.redistrib import redistrib
from cudaredist.exporters.rules_ml_toolchain import rules_ml_toolchain
from cudaredist.exporters.spdx import spdx
from cudaredist.exporters.template import rendered_sets
from cudaredist.exporters.toolchain import cmake, env
from cudaredist.exporters.vulnerabilities import vex

_ALL = (
    *(nix, redistrib, bazel, rules_ml_toolchain, pylock, requirements),
    *(cyclonedx, vex, spdx, urls, sha256sums, outputs, ignore_missing, env, cmake),
)
TEMPLATE = Exporter("template", "text", rendered_sets, takes_addresses=True, reads_data=True)
"""The format of the user's templates, which are rendered in another process."""
EXPORTERS: dict[str, Exporter] = {exporter.name: exporter for exporter in _ALL}
"""Every format by name, most important first."""


def find_exporter(name: str) -> Exporter:
    """Return a format by name.

    Raises `UnknownNameError` with the most similar name.
    """
    return find_name("export format", name, EXPORTERS)
