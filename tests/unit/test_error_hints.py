"""Tests of the hints of errors."""

import errno
import os

import pytest

from cudaredist.errors import WriteError


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "free disk space: `df -h mirror`"),
        (errno.EACCES, "select another folder, or change its permissions: `ls -ld mirror`"),
    ],
)
def test_hint_of_write_error_names_folder_and_no_option(number: int, hint: str) -> None:
    error = WriteError("mirror/SHA256SUMS", OSError(number, os.strerror(number)))
    assert error.message == f"cannot write mirror/SHA256SUMS: {os.strerror(number)}"
    assert error.hint == hint
