"""Run tasks on a thread pool."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeAlias

from cudaredist.errors import StoppedError

Task: TypeAlias = Callable[[], "list[Task] | None"]
"""A function to run in a thread. It returns the tasks that follow it, if any."""


def raise_if_stopped(stop: threading.Event) -> None:
    """Raise `StoppedError` if the run must stop."""
    if stop.is_set():
        raise StoppedError


def run_tasks(tasks: Iterable[Task], jobs: int, stop: threading.Event) -> None:
    """Run tasks and the tasks they return, `jobs` at a time.

    If a task raises an error or the user interrupts the run, set `stop` and raise without waiting
    for the other tasks.
    """
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="cudaredist")
    finished: SimpleQueue[Future[list[Task] | None]] = SimpleQueue()
    pending = 0
    waiting = list(tasks)
    try:
        while waiting or pending:
            for task in waiting:
                pool.submit(task).add_done_callback(finished.put)
            pending += len(waiting) - 1
            waiting = finished.get().result() or []
    except BaseException:
        stop.set()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
