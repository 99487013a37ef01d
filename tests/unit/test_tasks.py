"""Items on the thread pool: results in order, errors as results, and `fail_fast`."""

import threading

import pytest

from cudaredist.errors import ContentError, StoppedError
from cudaredist.tasks import each, raise_if_stopped


@pytest.mark.parametrize(
    ("fail_fast", "results"),
    [
        (False, ["a", ContentError, "c", "d"]),
        (True, ["a", ContentError, StoppedError, StoppedError]),
    ],
)
def test_each_returns_errors_in_the_order_of_items(
    results: list[object], *, fail_fast: bool
) -> None:
    stop = threading.Event()

    def work(item: str) -> str:
        raise_if_stopped(stop)
        if item == "b":
            raise ContentError(item)
        return item

    answers = each("abcd", work, 1, stop, fail_fast=fail_fast)
    assert [x if isinstance(x, str) else type(x) for x in answers] == results
    assert stop.is_set() is fail_fast


def test_each_waits_for_no_item_and_keeps_the_order() -> None:
    later = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            later.wait(300)
        else:
            later.set()
        return item

    assert each([0, 1], work, 2, threading.Event()) == [0, 1]
