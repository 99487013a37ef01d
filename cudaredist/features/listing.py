"""The names of an archive's files, by output and folder, in the small form of feature files.

Between two names of a folder stands a slash, which no name contains.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from cudaredist.features.placement import Placed
from cudaredist.schema.base import OutputName
from cudaredist.schema.features import FileNames

_LIMIT = 1 << 20
"""Characters of all names of an archive; cuda_cccl has 40,000."""


def list_files(placed: Mapping[str, Placed]) -> tuple[FileNames, int]:
    """Return the files of an archive, and the number of those left out as they are too many."""
    folders: dict[OutputName, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    room, left_out = _LIMIT, 0
    for path in sorted(placed):
        folder, _, name = path.rpartition("/")
        names = folders[placed[path].output][folder]
        room -= len(name) + 1 + (0 if names else len(folder))
        if room < 0:
            left_out += 1
        else:
            names.append(name)
    listing = {
        output: {folder: "/".join(names) for folder, names in by_folder.items() if names}
        for output, by_folder in sorted(folders.items())
    }
    return {output: by_folder for output, by_folder in listing.items() if by_folder}, left_out


def listed_files(listing: FileNames) -> Iterator[tuple[str, OutputName]]:
    """Yield each path of a listing with its output."""
    for output, by_folder in listing.items():
        for folder, names in by_folder.items():
            for name in names.split("/"):
                yield f"{folder}/{name}" if folder else name, output
