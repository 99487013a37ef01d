"""Many things at once: where all work of a command is spread over threads."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeAlias

from cudaredist.errors import StoppedError

Task: TypeAlias = Callable[[], "list[Task]"]
"""Something to be done in a thread; it returns what is to be done after it."""


def raise_if_stopped(stop: threading.Event) -> None:
    """Raise `StoppedError` if the run is to end."""
    if stop.is_set():
        raise StoppedError


def run_tasks(tasks: Iterable[Task], jobs: int, stop: threading.Event) -> None:
    """Run tasks, and those they return, `jobs` at a time until none is left.

    Where one raises, or the user interrupts, the others are told to stop and not waited for.
    """
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="cudaredist")
    finished: SimpleQueue[Future[list[Task]]] = SimpleQueue()
    pending = 0
    waiting = list(tasks)
    try:
        while waiting or pending:
            for task in waiting:
                pool.submit(task).add_done_callback(finished.put)
            pending += len(waiting) - 1
            waiting = finished.get().result()
    except BaseException:
        stop.set()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
