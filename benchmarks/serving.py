"""Run the server of a benchmark in a separate process.

The server's work then does not slow down the client.
"""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def serving(serve: Callable[..., None], *arguments: object) -> Iterator[int]:
    """Run a server, and yield its port.

    Stops the server at the end. `serve` sends the port through the pipe in its first argument.
    """
    here, there = multiprocessing.Pipe()
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=serve, args=(there, *arguments), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()
