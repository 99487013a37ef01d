"""What each command does, without a terminal: sources, a store and options in, a report out.

Nothing here prints or exits; an item that fails becomes an outcome
with its error, and the others go on.
"""

from cudaredist.pipeline.check import check_data
from cudaredist.pipeline.download import Destination, ManifestDownload, into_folder, into_store
from cudaredist.pipeline.selection import ALL, LATEST, Selection
from cudaredist.pipeline.validate import validate_files

__all__ = [
    "ALL",
    "LATEST",
    "Destination",
    "ManifestDownload",
    "Selection",
    "check_data",
    "into_folder",
    "into_store",
    "validate_files",
]
