"""The reader of files whose hashes a command records."""

from pathlib import Path

from cudaredist.cli.options import RecordOptions
from cudaredist.cli.session import Session, open_cache
from cudaredist.sources.hashed_file import Recorder
from cudaredist.sources.protocol import Settings


def open_recorder(session: Session, options: RecordOptions, root: Path, title: str) -> Recorder:
    """Lock a folder, and return the reader of files to record in it."""
    return Recorder(
        settings=Settings(timeout=options.requests.timeout, retries=options.requests.retries),
        progress=session.progress(title),
        begin=session.lock(root),
        accept_changed=options.replace,
        folder=open_cache(options.cache_dir).temporary_folder(),
    )
