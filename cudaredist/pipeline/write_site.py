"""site: write the files of the web site to a folder.

The folder contains the list of its files, so that a later run removes files that it no longer
makes.
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from cudaredist.errors import InvalidFileError, UsageError, WritingTo
from cudaredist.jsontext import canonical_json
from cudaredist.reports.manifest_reports import SiteReport
from cudaredist.schema.registry import parse_own_json
from cudaredist.store.files import names_in, read_file, write_file

LIST_NAME = "files.json"


def write_site(
    files: Iterable[tuple[str, bytes]], output: Path, earlier: Collection[str]
) -> SiteReport:
    """Write files to a folder, and remove those of an earlier run that are not among them.

    Raises `WriteError`.
    """
    sizes: dict[str, int] = {}
    written = 0
    for path, content in files:
        written += write_file(output / path, content, durable=False)
        sizes[path] = len(content)
    gone = sorted(set(earlier) - sizes.keys())
    for path in gone:
        with WritingTo(output / path):
            (output / path).unlink(missing_ok=True)
    listing = {"schema_version": 1, "files": sorted(sizes)}
    write_file(output / LIST_NAME, canonical_json(listing))
    return SiteReport(
        output=str(output),
        pages=sum(path.endswith(".html") for path in sizes),
        files=len(sizes),
        size=sum(sizes.values()),
        written=written,
        removed=len(gone),
        exit_code=0,
    )


def earlier_files(output: Path) -> set[str]:
    """Return the files that an earlier run wrote.

    Names that would leave the folder are not among them. Raises `UsageError` for a folder with
    other files.
    """
    data = read_file(output / LIST_NAME)
    if data is None:
        if names_in(output):
            raise UsageError(
                f"{output} has files, but no {LIST_NAME} of an earlier site",
                hint="name a new folder: --output FOLDER",
            )
        return set()
    try:
        document: Any = parse_own_json(data, LIST_NAME)
        names = {str(name) for name in document["files"]}
    except (InvalidFileError, KeyError, TypeError):
        raise UsageError(
            f"{output / LIST_NAME} is not the list of a site", hint=f"run `rm -r {output}`"
        ) from None
    root = output.resolve()
    return {name for name in names if (root / name).resolve().is_relative_to(root)}
