"""Run the server of a benchmark in a separate process.

The server's work then does not slow down the client.
"""

import asyncio
import multiprocessing
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection


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


def serve_connections(
    pipe: Connection,
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> None:
    """Send the port of a new server, and answer its connections until the process is stopped."""

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())
