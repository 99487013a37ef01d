"""Create the findings of `check`.

Each finding has the exit code that it would cause alone. With exit code 0, it is a note for the
maintainer and does not fail a build.
"""

from cudaredist.commands.check.report import Finding, FindingKind
from cudaredist.primitives import Version


def finding(
    kind: FindingKind, message: str, *, label: Version | None = None, **more: object
) -> Finding:
    """Create a finding, by default with the exit code of its kind."""
    release = None if label is None else str(label)
    about = {"redist": None, "release": release, "path": None}
    return Finding.of(kind, message, **(about | more))
