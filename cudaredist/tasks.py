"""Run tasks on a thread pool."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import TypeAlias, TypeVar

from cudaredist.errors import CudaRedistError, StoppedError
from cudaredist.progress import NO_PROGRESS, Progress

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

Task: TypeAlias = Callable[[], "list[Task] | None"]
"""A function to run in a thread. It returns the tasks that follow it, if any."""


@dataclass(frozen=True, slots=True)
class Workers:
    """The threads of a run, the event that stops them, and their progress."""

    jobs: int = 16
    stop: threading.Event = field(default_factory=threading.Event)
    progress: Progress = NO_PROGRESS


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
    pending, mutex = 1, threading.Lock()
    # This thread wakes up only once: a wake-up per task takes longer than many a task.
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def submit(tasks: Sequence[Task]) -> None:
        """Submit the tasks that follow a finished one."""
        nonlocal pending
        with mutex:
            pending += len(tasks) - 1
            is_last = not pending
        for task in tasks:
            pool.submit(run, task)
        if is_last:
            ended.put(None)

    def run(task: Task) -> None:
        try:
            submit(task() or [])
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            ended.put(error)

    try:
        submit(list(tasks))
        if (error := ended.get()) is not None:
            raise error  # noqa: TRY301 - it also stops the other tasks
    except BaseException:
        stop.set()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def each(
    items: Iterable[_Item],
    work: Callable[[_Item], _Result],
    jobs: int,
    stop: threading.Event,
    *,
    fail_fast: bool = False,
) -> list[_Result | CudaRedistError]:
    """Process items, `jobs` at a time, and return the results in their order.

    If an item raises a `CudaRedistError`, the error is its result. With `fail_fast`, it also sets
    `stop`.
    """
    results: dict[int, _Result | CudaRedistError] = {}

    def run(position: int, item: _Item) -> None:
        try:
            results[position] = work(item)
        except CudaRedistError as error:
            results[position] = error
            if fail_fast:
                stop.set()

    run_tasks([partial(run, *entry) for entry in enumerate(items)], jobs, stop)
    return [results[position] for position in range(len(results))]
