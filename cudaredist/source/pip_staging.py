"""A folder for the temporary files of a run, which a later run removes if this one is killed."""

import contextlib
import logging
import os
import secrets
import shutil
import tempfile
import threading
from pathlib import Path

from cudaredist.errors import WriteError
from cudaredist.locks import lock_if_free, locked_folder
from cudaredist.private import make_private_folders

_log = logging.getLogger(__name__)

_NAME = "staging"


class Staging:
    """A folder of one run in the cache, made when it is first needed.

    It is locked as long as the run lives, which tells it from the folders of killed runs. Without a
    cache (on a worker of a cluster, or if it cannot be written) it is in the system's folder for
    temporary files.
    """

    def __init__(self, cache: Path | None) -> None:
        self._cache = cache
        self._mutex = threading.Lock()
        self._stack = contextlib.ExitStack()
        self._folder: Path | None = None

    def folder(self) -> Path:
        """Return the folder. Raises `UsageError` for a cache of another user."""
        with self._mutex:
            if self._folder is None:
                self._folder = self._made()
            return self._folder

    def close(self) -> None:
        """Remove the folder."""
        with self._mutex:
            self._folder = None
            self._stack.close()

    def _made(self) -> Path:
        if self._cache is not None:
            try:
                return self._made_in(self._cache)
            except WriteError as error:
                _log.warning("going on without a cache: %s", error)
        temporary = tempfile.TemporaryDirectory(prefix="cudaredist-", ignore_cleanup_errors=True)
        return Path(self._stack.enter_context(temporary))

    def _made_in(self, cache: Path) -> Path:
        root = cache / _NAME
        make_private_folders(cache, root)
        turn = locked_folder(root)
        try:
            for left in root.iterdir():
                handle = lock_if_free(left)
                if handle is not None:
                    shutil.rmtree(left, ignore_errors=True)
                    os.close(handle)
            folder = root / secrets.token_hex(6)
            make_private_folders(cache, folder)
            handle = lock_if_free(folder)
        finally:
            if turn is not None:
                os.close(turn)
        if handle is not None:
            self._stack.callback(os.close, handle)
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder
