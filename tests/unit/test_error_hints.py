"""Tests of the hints of errors."""

import errno
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from support.running import invoke

from cudaredist import errors
from cudaredist.errors import ArchiveMismatchError, CudaRedistError, Problem, WriteError
from cudaredist.hints import again, calling, command_line, quoted
from cudaredist.words import plural

CALL = {
    "--component": ("--component", "cuda"),
    "--base-url": ("--base-url", "https://user:secret@host/my folder"),
    "--data-dir": ("--data-dir", "my data"),
}
AGAIN = "cudaredist materialize --component cuda --base-url 'https://host/my folder' "
AGAIN += "--data-dir 'my data'"
MISSING = FileNotFoundError(errno.ENOENT, "No such file")
ERRORS = {
    "UsageError": (("wrong",), "cudaredist materialize --help"),
    "UnknownNameError": (("component", "cuda", ["cudnn"]), AGAIN.replace("cuda -", "cudnn -")),
    "NotInDataError": (("CUDA", "cuda", ["cudnn"]), AGAIN.replace("cuda -", "cudnn -")),
    "InsecureAddressError": (("http://host",), f"{AGAIN} --allow-http"),
    "IncompleteError": (("missing",), None),
    "SourceError": (("host", "reason"), None),
    "NotAtSourceError": (("host", "reason"), None),
    "RefusedError": (("host", "reason"), None),
    "TransientError": (("host", "reason"), AGAIN),
    "CannotResumeError": (("host", "reason"), AGAIN),
    "UnreachedError": (("host", "reason"), AGAIN),
    "StoppedError": ((), AGAIN),
    "ReadError": (("my folder/file", MISSING), "ls 'my folder'"),
    "WriteError": (("my folder/file", MISSING), "ls -ld 'my folder'"),
    "IntegrityError": (("damaged",), None),
    "ArchiveMismatchError": (("x.tar.xz", "size", 1, 2), AGAIN),
    "ManifestMismatchError": (("x.json", "size", 1, 2), AGAIN),
    "ManifestChangedError": (("cudaredist check", ()), "cudaredist check"),
    "EditedLocallyError": (("cudaredist check", ()), "cudaredist check"),
    "ContentError": (("invalid",), None),
    "TooLargeError": (("file", 1), None),
    "InvalidArchiveError": (("file", "reason"), None),
    "InvalidFileError": (("file", [Problem("", "invalid")]), None),
    "ConflictError": (("bin differs",), None),
    "UnsafePathError": (("..", "one"), None),
    "EmptyIndexError": (("host",), AGAIN.replace(" --base-url 'https://host/my folder'", "")),
}
"""Every class of errors, with its arguments and the command of its hint."""


def test_every_error_class_has_row() -> None:
    classes = [CudaRedistError]
    for one in classes:
        classes += one.__subclasses__()
    assert {one.__name__ for one in classes[1:]} == set(ERRORS)


@pytest.mark.parametrize("name", ERRORS)
def test_hint_of_error_class_is_a_command_that_works(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my folder").mkdir()
    arguments, expected = ERRORS[name]
    kind = getattr(errors, name)
    with calling("materialize", CALL, {"materialize": CALL}):
        hint = kind(*arguments).hint or ""
    command = next(iter(re.findall("`([^`]*)`", hint)), None)
    assert command == expected
    if command is None:
        return
    if command.startswith("cudaredist"):
        assert invoke(*shlex.split(command)[1:], "--help").exit_code == 0
    else:
        subprocess.run(shlex.split(command), check=True)


def test_command_line_has_folders_of_call() -> None:
    options = {"update-gpus": {"--data-dir", "--base-url"}, "versions": {"--data-dir"}}
    with calling("check", CALL, options):
        assert command_line("versions") == "cudaredist versions --data-dir 'my data'"
        assert command_line("update-gpus", channel="wheels", version="a b") == (
            "cudaredist update-gpus --data-dir 'my data' --channel wheels --version 'a b'"
        )


def test_options_replace_those_of_call() -> None:
    with calling("materialize", CALL, {}):
        call = again("--offline", without=["--component"], base_url="my mirror", max_download=500)
    kept = "cudaredist materialize --data-dir 'my data'"
    assert call == f"{kept} --base-url 'my mirror' --max-download 500 --offline"


@pytest.mark.parametrize(
    ("count", "nouns", "expected"),
    [
        (0, ["file"], "0 files"),
        (1, ["file"], "1 file"),
        (2000, ["file"], "2,000 files"),
        (1, ["library", "libraries"], "1 library"),
        (2, ["library", "libraries"], "2 libraries"),
    ],
)
def test_noun_agrees_with_count(count: int, nouns: list[str], expected: str) -> None:
    assert plural(count, *nouns) == expected


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "free disk space: `df -h mirror`"),
        (errno.EACCES, "select another folder, or change its permissions: `ls -ld mirror`"),
    ],
)
def test_hint_of_write_error_names_folder_and_no_option(
    number: int, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mirror").mkdir()
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


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("cuda@12.9", "cuda@12.9"),
        ("my folder", "'my folder'"),
        ("https://user:secret@host/", "https://host/"),
        ("linux-x86_64+cuda12=http://user:s=@secret@host/", "linux-x86_64+cuda12=http://host/"),
        ("http://user=http://secret@host/", "http://host/"),
        ("http:secret=http://secret@host/", "http:host/"),
        ("user:secret=http://secret@host/", "user:host/"),
        ("secret=x:secret@host/", "host/"),
        ("//secret=http:secret@host/", "//host/"),
        ("it's \x1b[31m\n", r"$'it\'s \x1b[31m\n'"),
    ],
)
def test_words_of_commands_are_quoted_without_credentials(word: str, expected: str) -> None:
    assert quoted(word) == expected
