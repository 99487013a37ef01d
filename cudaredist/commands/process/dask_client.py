"""A Dask client that accepts only bytes from the cluster.

A normal client of distributed unpickles results, their types, exceptions, warnings and every part
of a message that is marked as pickled. The cluster could execute code that way. Dask's options
limit only the results. So an audit hook refuses all pickles that name a class or a function, and
this client ignores the rest.
"""

import functools
import pickle
import sys

from distributed import Client

_FORMATS = ["msgpack"]
"""The formats of results: bytes, text and numbers, but no objects."""


def _refuse(event: str, _: tuple[object, ...]) -> None:
    if event == "pickle.find_class":
        raise pickle.UnpicklingError("refused: the Dask cluster sent a pickle")


@functools.cache
def refuse_pickles() -> None:
    """Refuse pickles that name a class or a function in this process.

    Other pickles contain only plain values and cannot execute anything.
    """
    sys.addaudithook(_refuse)


class BytesClient(Client):
    """A client whose tasks return bytes."""

    def __init__(self, address: str, timeout: float) -> None:
        refuse_pickles()
        super().__init__(
            address,
            timeout=timeout,
            set_as_default=False,
            serializers=_FORMATS,
            deserializers=_FORMATS,
            direct_to_workers=False,
        )

    async def _ensure_connected(self, *arguments: object, **options: object) -> None:
        """Connect, and keep the stream of reports serialized.

        Incomplete TLS settings become an OSError: after other errors, Dask leaves the client open.
        """
        try:
            await super()._ensure_connected(*arguments, **options)
        except (TypeError, RuntimeError, pickle.UnpicklingError) as error:
            raise OSError(str(error)) from error
        if self.scheduler_comm is not None:
            self.scheduler_comm.comm.deserialize = False

    async def _handle_report(self) -> None:
        """Read reports, and end the connection if one is a pickle."""
        while True:
            try:
                await super()._handle_report()
            except pickle.UnpicklingError:
                if self.scheduler_comm is not None:
                    self.scheduler_comm.comm.abort()
            else:
                break

    async def _handle_event(self, *_: object, **__: object) -> None:
        """Ignore events, with which workers could print to this terminal."""

    def _handle_key_in_memory(self, key: object = None, *_: object, **__: object) -> None:
        """Record a finished task, without the pickled type of its result."""
        super()._handle_key_in_memory(key=key)

    def _handle_task_erred(self, key: object = None, *_: object, **__: object) -> None:
        """Record a failed task, without its pickled exception and traceback."""
        failure = RuntimeError("the task failed on the Dask cluster")
        super()._handle_task_erred(key=key, exception=failure)
