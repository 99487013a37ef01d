"""Create the findings of `check`.

Each finding has the exit code that it would cause alone. With exit code 0, it is a note for the
maintainer and does not fail a build.
"""

from collections.abc import Generator
from functools import partial
from pathlib import Path

from cudaredist.commands.check.report import Finding, FindingKind
from cudaredist.errors import CudaRedistError, ReadError, problems_of
from cudaredist.formats.base import OwnModel
from cudaredist.formats.registry import FileKind, parse_own_json, read_own_file
from cudaredist.jsontext import canonical_json
from cudaredist.primitives import Version
from cudaredist.store.data_folder import Store
from cudaredist.store.files import read_file


def finding(
    kind: FindingKind, message: str, *, label: Version | None = None, **more: object
) -> Finding:
    """Create a finding, by default with the exit code of its kind."""
    release = None if label is None else str(label)
    about = {"redist": None, "release": release, "path": None}
    return Finding.of(kind, message, **(about | more))


def own_file_findings(
    store: Store, path: Path, kind: FileKind
) -> Generator[Finding, None, OwnModel | None]:
    """Yield a file's defects, and return its model unless it is broken."""
    about = partial(finding, path=store.relative(path))
    try:
        data = read_file(path) or b""
        document = parse_own_json(data)
        model = read_own_file(data, kind.model)
    except ReadError as error:
        yield about("unreadable", error.message)
        return None
    except CudaRedistError as error:
        yield about("invalid", f"not a valid {kind.name} file", details=problems_of(error))
        return None
    if canonical_json(document) != data:
        message = "not in canonical form (sorted keys, two spaces, final newline)"
        yield about("not-canonical", message, hint="run the command that writes this file again")
    return model
