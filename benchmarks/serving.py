"""A server of a benchmark, in a process of its own: its work must not slow the client down."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def serving(serve: Callable[..., None], *arguments: object) -> Iterator[int]:
    """Run `serve` with a pipe, to which it sends its port; yield the port, and end it after."""
    here, there = multiprocessing.Pipe()
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=serve, args=(there, *arguments), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()
