"""One API of the shipped data for several calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from cudaredist.source_code.api import Api, read_api
from cudaredist.source_code.judge_use import Judge
from cudaredist.store.data_folder import shipped_data
from cudaredist.store.facts_index import Index


@contextmanager
def sharing_api() -> Iterator[None]:
    """Read the API of a product in the shipped data once, and use each judge of it again."""
    apis: dict[object, Api] = {}

    def shared_api(index: Index, redist: str) -> Api:
        if index.store.root != shipped_data():
            return read_api(index, redist)
        key = redist, index.channels
        if key not in apis:
            apis[key] = read_api(index, redist)
        return apis[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cudaredist.source_code.audit_source.read_api", shared_api)
        patch.setattr("cudaredist.source_code.audit_source.Judge", cache(Judge))
        yield
