"""Preload for a hostile Dask worker or scheduler.

It sends pickles that execute code. The code creates a file named for the process that ran it, in
the folder `HOSTILE_FOLDER`. A worker selects the attack by the name of the archive.
"""

import copyreg
import os
import pickle
from pathlib import Path
from typing import Any

from distributed import Scheduler, get_worker
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.protocol.serialize import ToPickle

from cudaredist.commands.process import dask as cluster
from cudaredist.store.fetch_archive import ArchiveRequest

CODE = f"import os; open(os.path.join({os.environ['HOSTILE_FOLDER']!r}, str(os.getpid())), 'w')"
honest = cluster.run_task


def reduced(_: object) -> Any:
    return exec, (CODE,)


class Hostile:
    __reduce__ = reduced


class HostileError(Exception):
    __reduce__ = reduced


class HostileType(type):
    """The metaclass of a class with a pickle that executes code."""


class Odd(metaclass=HostileType):
    pass


copyreg.pickle(HostileType, reduced)


def run_task(request: ArchiveRequest, *settings: Any, **options: Any) -> object:
    match request.name.partition("-")[0]:
        case "result":
            return Hostile()
        case "type":
            return Odd()
        case "error":
            raise HostileError
        case "text":
            return "{}"
        case "other":
            return b"{}"
        case "death":
            os._exit(1)
        case "events":
            worker = get_worker()
            worker.log_event("warn", {"message": pickle.dumps(Hostile())})
            worker.log_event("print", "printed by a worker")
        case _:
            pass
    return honest(request, *settings, **options)


def dask_setup(server: Any) -> None:
    Path(os.environ["HOSTILE_FOLDER"], "preloaded").touch()
    if isinstance(server, Scheduler):
        server.add_plugin(HostilePlugin())
        return
    cluster.run_task = run_task  # type: ignore[assignment]
    get_data = server.handlers["get_data"]

    # Dask passes serializers only to a handler that names them.
    async def pickled(comm: Any, keys: Any, serializers: Any = None, **options: Any) -> Any:
        if not all(isinstance(server.data[key], bytes) for key in keys):
            serializers = ["pickle"]
        return await get_data(comm, keys, serializers=serializers, **options)

    server.handlers["get_data"] = pickled


class HostilePlugin(SchedulerPlugin):
    def update_graph(self, scheduler: Any, *, client: str, **_: object) -> None:
        message = {"op": "event", "topic": "any", "event": ToPickle(Hostile())}
        scheduler.client_comms[client].send(message)
