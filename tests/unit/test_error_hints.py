"""Tests of the hints of errors."""

import errno
import os

import pytest

from cudaredist.errors import ArchiveMismatchError, WriteError


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


@pytest.mark.parametrize(
    ("name", "quantity", "source", "hint"),
    [
        ("x.whl", "size", "the manifest or the package index", "pip config list"),
        ("x.whl", "SHA-256", "the manifest", "pip config list"),
        ("x.tar.xz", "size", "the manifest", "--base-url URL"),
    ],
)
def test_archive_mismatch_names_sources_of_expected_value(
    name: str, quantity: str, source: str, hint: str
) -> None:
    error = ArchiveMismatchError(f"https://host/{name}", quantity, "5", "6")
    assert error.message == f"https://host/{name}: {quantity} is 6, but {source} states 5"
    assert hint in (error.hint or "")
