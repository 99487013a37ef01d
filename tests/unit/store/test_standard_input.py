"""Tests of the standard input in place of a file."""

import io
import sys
from pathlib import Path

import pytest

from cudaredist.errors import ReadError
from cudaredist.store import files
from cudaredist.store.files import read_file


def test_standard_input_is_read_once_and_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    files.read_standard_input.cache_clear()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"text")))
    assert read_file(Path("-")) == read_file(Path("-")) == b"text"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"text")))
    with pytest.raises(ReadError, match="larger than 3 bytes"):
        read_file(Path("-"), 3)
    files.read_standard_input.cache_clear()
