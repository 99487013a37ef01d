"""Read source files in several processes.

A process that ends, for example because the machine has no memory left, loses only the files that
it was reading.
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import wait

from cudaredist.progress import Progress
from cudaredist.source_code.read_file import FileFacts, FileReader, SourceFile

if sys.platform == "win32":
    from multiprocessing.connection import PipeConnection as Connection
else:
    from multiprocessing.connection import Connection

_SIZE_FOR_PROCESS = 4_000_000
"""The bytes of source code that are worth another process."""
_MOST_PROCESSES = 16
_BATCH_SIZE = 1_000_000
_BATCH_FILES = 100
_ENDED = "the process that read it ended"


class Readers:
    """Reads files in some processes, or in this one if there are none."""

    def __init__(self, connections: Sequence[Connection], progress: Progress) -> None:
        self._connections, self._progress = list(connections), progress

    def read(self, reader: FileReader, files: Sequence[SourceFile]) -> list[FileFacts]:
        """Return the facts of files, in their order."""
        self._progress.expect(len(files), sum(file.size for file in files))
        if not self._connections:
            return [self._done(file, reader.read(file)) for file in files]
        facts: dict[str, FileFacts] = {}
        pending = _batches(files)
        reading: dict[Connection, list[SourceFile]] = {}
        for connection in [*self._connections]:
            self._send(connection, reader)
            self._send_next(connection, pending, reading)
        while reading:
            for one in wait([*reading]):
                connection = next(each for each in reading if each is one)
                batch = reading.pop(connection)
                for file, result in zip(batch, self._received(connection, batch), strict=True):
                    facts[file.name] = self._done(file, result)
                self._send_next(connection, pending, reading)
        lost = (file for batch in pending for file in batch)
        facts.update((file.name, FileFacts(file.name, reason=_ENDED)) for file in lost)
        return [facts[file.name] for file in files]

    def _done(self, file: SourceFile, facts: FileFacts) -> FileFacts:
        self._progress.done(file.size)
        return facts

    def _send_next(
        self,
        connection: Connection,
        pending: Iterator[list[SourceFile]],
        reading: dict[Connection, list[SourceFile]],
    ) -> None:
        """Send the next batch to a process, if both exist."""
        if connection in self._connections and (batch := next(pending, None)):
            reading[connection] = batch
            self._send(connection, batch)

    def _send(self, connection: Connection, message: object) -> None:
        with suppress(OSError):  # the answer of a process that ended fails, too
            connection.send(message)

    def _received(self, connection: Connection, batch: Sequence[SourceFile]) -> list[FileFacts]:
        """Return the answer to a batch."""
        try:
            answer: list[FileFacts] = connection.recv()
        except (OSError, EOFError):
            self._connections.remove(connection)
            return [FileFacts(file.name, reason=_ENDED) for file in batch]
        return answer


@contextmanager
def readers(size: int, progress: Progress) -> Iterator[Readers]:
    """Yield readers with the processes for a number of bytes, and end the processes."""
    count = min(os.cpu_count() or 1, size // _SIZE_FOR_PROCESS, _MOST_PROCESSES)
    # A new interpreter copies neither threads nor open files.
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        connections: list[Connection] = []
        for _ in range(count if count > 1 else 0):
            own, other = context.Pipe()
            stack.callback(own.close)
            process = context.Process(target=_answer, args=(other,), daemon=True)
            process.start()
            stack.callback(process.join)
            stack.callback(process.terminate)
            other.close()
            connections.append(own)
        yield Readers(connections, progress)


def _batches(files: Sequence[SourceFile]) -> Iterator[list[SourceFile]]:
    """Divide files, so that the processes finish at about the same time."""
    batch: list[SourceFile] = []
    size = 0
    for file in files:
        if batch and (size + file.size > _BATCH_SIZE or len(batch) == _BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch


def _answer(connection: Connection) -> None:
    """Read the files of each message, until the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends this one
    reader: FileReader | None = None
    with suppress(OSError, EOFError):
        while True:
            message = connection.recv()
            if isinstance(message, FileReader):
                reader = message
            elif reader is not None:
                connection.send([reader.read(file) for file in message])
