"""The root or image that exists before a run, and whether the run may replace it."""

import logging
import os
from pathlib import Path
from typing import NamedTuple

from cudaredist.commands.materialize.install import Toolkit
from cudaredist.commands.materialize.oci import read_layout
from cudaredist.commands.materialize.options import MaterializeOptions
from cudaredist.commands.materialize.report import OciImage
from cudaredist.commands.materialize.root import is_empty, is_intact, list_root
from cudaredist.errors import UsageError
from cudaredist.formats.toolkit_record import RECORD_NAME, PackageName, ToolkitRecord
from cudaredist.hints import again
from cudaredist.store.read_data import read_record
from cudaredist.words import listed

_log = logging.getLogger(__name__)

_SHOWN = 3


class Existing(NamedTuple):
    """A root or image in the folder of the new one."""

    record: ToolkitRecord | None = None
    """The record of a root, or of an image that is current."""
    is_current: bool = False
    """Whether it is exactly what the run would create."""
    image: OciImage | None = None


class ExistingRoot:
    """Checks the root at a path before a run replaces it."""

    def __init__(self, options: MaterializeOptions, toolkit: Toolkit, path: Path) -> None:
        """`path` is the root's path without links, and `toolkit` the one to create."""
        self._options, self._toolkit, self._path = options, toolkit, path

    def read(self) -> Existing:
        """Return the existing root or image, empty if there is none.

        Raises `UsageError` if it cannot be replaced.
        """
        if not os.path.lexists(self._path):
            return Existing()
        root, record = self._options.root, read_record(self._path)
        if self._options.layout == "oci":
            if record is not None:
                message = f"{root} is a toolkit root, and cannot become an image"
                raise UsageError(message, hint="name a new folder with --root")
            return self._read_image()
        if record is None and not is_empty(self._path):
            problem = f"exists and is not a cudaredist toolkit root (no {RECORD_NAME})"
            hint = f"run `{again(output='cuda-toolkit')}` for a new folder"
            raise UsageError(f"{root} {problem}", hint=hint)
        if record is not None and self._toolkit.is_recorded(record):
            if is_intact(self._path, record, is_quick=not self._options.replace):
                return Existing(record, is_current=True)
            _log.warning("files of %s were changed or removed; creating it again", root)
        self.check_replaceable(record)
        return Existing(record)

    def _read_image(self) -> Existing:
        """Return the image in the folder, empty unless it is current.

        Raises `UsageError` if the folder has anything else, or another image without --replace.
        """
        root, stored = self._options.root, read_layout(self._path)
        if stored is None and not is_empty(self._path):
            hint = f"run `{again(output='cuda-image')}` for a new folder"
            raise UsageError(f"{root} exists and is not an image of cudaredist", hint=hint)
        if stored is None:
            return Existing()
        record, image = stored
        if not self._toolkit.is_recorded(record) and not self._options.replace:
            message = f"{root} has another image, which would be replaced"
            raise UsageError(message, hint=f"run `{again('--replace')}`")
        if self._toolkit.is_recorded(record) and image is not None:
            return Existing(record, is_current=True, image=image)
        if image is None:
            _log.warning("files of %s were changed or removed; creating it again", root)
        return Existing()

    def check_replaceable(self, record: ToolkitRecord | None) -> None:
        """Raise `UsageError` if packages or other files would be removed."""
        if record is None:
            return
        root, toolkit, replace = self._options.root, self._toolkit, self._options.replace
        removed = sorted(record.packages.keys() - toolkit.packages.keys())
        if removed and not replace:
            problem = "has packages that are not selected and would be removed"
            hint = f"to remove them, run `{again('--replace')}`"
            names = {PackageName(name).attr for name in removed}
            # Packages for another target cannot be kept.
            if names.isdisjoint(PackageName(name).attr for name in toolkit.packages):
                options = " ".join(f"--component {name}" for name in sorted(names))
                hint = f"to keep them, run `{again(options)}`; to remove them, use --replace"
            raise UsageError(f"{root} {problem}: {', '.join(removed)}", hint=hint)
        if record.libraries != toolkit.libraries and not replace:
            message = f"{root} has other files of these packages, which would be replaced"
            raise UsageError(message, hint=f"run `{again('--replace')}`")
        foreign = list_root(self._path).foreign_to(record)
        if foreign:
            problem = "would be replaced, but has files that cudaredist did not install"
            call = again(output="cuda-toolkit")
            hint = f"move them to another folder, or run `{call}` for a new folder"
            raise UsageError(f"{root} {problem}: {listed(foreign, _SHOWN)}", hint=hint)
