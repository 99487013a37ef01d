"""Tests of audit: facts of files in the cache, and files that cannot be read."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.environments import install, user
from support.judged_environments import (
    CUBLAS,
    FOLDER,
    LABELS,
    TABLES,
    TO_CUBLAS,
    judge,
    loaded,
    put_cublas,
    put_example,
)
from support.patching import Patch
from support.programs import audit_data, cuda

from cudaredist.binaries.examine_file import examine_file
from cudaredist.binaries.file_facts import Binary
from cudaredist.environments import environment as environment_module
from cudaredist.environments.audit_program import audit_report
from cudaredist.environments.loader import UNREADABLE
from cudaredist.environments.read_program import ProgramReader
from cudaredist.errors import ReadError
from cudaredist.programs.program import AuditRequirements
from cudaredist.programs.report import LoadedFile
from cudaredist.store import facts_cache
from cudaredist.store.cache import Cache


def put_linked(site: Path) -> tuple[LoadedFile, ...]:
    """Install a library and its user, and return the report on them."""
    put_cublas(site, "old")
    put_example(site, user(CUBLAS, "old", rpath=TO_CUBLAS))
    return judge(site).report().libraries


def test_second_audit_reads_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patch: Patch
) -> None:
    patch(facts_cache, "_SETTLED", -(10**12))
    first = put_linked(tmp_path)
    monkeypatch.delattr(facts_cache, "examine_file")
    assert judge(tmp_path).report().libraries == first


def test_changed_file_is_read_again(tmp_path: Path, patch: Patch) -> None:
    patch(facts_cache, "_SETTLED", -(10**12))
    put_linked(tmp_path)
    (tmp_path / FOLDER / CUBLAS).unlink()
    (library_,) = (each for each in loaded(tmp_path) if each.by == ("example/a.so",))
    assert library_.found_by == "none"
    path = tmp_path / "example/a.so"
    path.write_bytes(path.read_bytes().replace(CUBLAS.encode(), b"libcublas.so.99"))
    assert [each.soname for each in judge(tmp_path).report().libraries] == ["libcublas.so.99"]


def test_facts_of_a_new_file_are_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patch: Patch
) -> None:
    patch(facts_cache, "_SETTLED", 10**15)
    put_linked(tmp_path)
    monkeypatch.delattr(facts_cache, "examine_file")
    with pytest.raises(NameError):
        judge(tmp_path)


def test_facts_of_a_new_file_with_an_old_time_are_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patch: Patch
) -> None:
    """Installers set the times of files back, and then another change can look the same."""
    patch(facts_cache, "_SETTLED", 10**15)
    put_cublas(tmp_path, "old")
    put_example(tmp_path, user(CUBLAS, "old", rpath=TO_CUBLAS))
    for path in tmp_path.rglob("*"):
        os.utime(path, (10**9, 10**9))
    judge(tmp_path)
    monkeypatch.delattr(facts_cache, "examine_file")
    with pytest.raises(NameError):
        judge(tmp_path)


def test_vanished_file_is_named(tmp_path: Path, patch: Patch) -> None:
    put_example(tmp_path, user(CUBLAS))
    last = tmp_path / "example/z.txt"
    last.touch()

    def remove_last(_: Path) -> None:
        last.unlink(missing_ok=True)

    patch(facts_cache, "examine_file", remove_last)
    reader = ProgramReader(cache=Cache(tmp_path.with_suffix(".cache")), paths=[tmp_path])
    assert reader.read_all().errors == []
    assert reader.notes == [f"not read: {last} (No such file or directory)"]
    (environment,) = reader.environments
    assert environment.unreadable == []


@pytest.mark.parametrize(
    ("name", "codes", "text"),
    [
        ("nvidia/cublas/lib/libcublas.so.12", [3, 3], "the loader cannot read"),
        ("example/a.so", [3], "are unknown: not read"),
        ("example/bin/program", [3], "are unknown: not read"),
        ("other-1.0.dist-info/METADATA", [3], "are unknown: not read"),
        ("example/README.txt", [], ""),
    ],
    ids=["needed library", "library", "program", "metadata", "another file"],
)
def test_unreadable_file_ends_no_report(
    tmp_path: Path, patch: Patch, name: str, codes: Sequence[int], text: str
) -> None:
    put_cublas(tmp_path, "old")
    put_example(tmp_path, user(CUBLAS, "old", runpath=TO_CUBLAS))
    files = {"example/README.txt": b"", "example/bin/program": b"", "other/b.so": user(CUBLAS)}
    install(tmp_path, "other", "1.0", files)
    (tmp_path / "example/bin/program").chmod(0o700)
    denied = PermissionError(13, "Permission denied")

    def examine(path: Path | str) -> Binary | None:
        if Path(path) == tmp_path / name:
            raise ReadError(path, denied)
        return examine_file(path)

    patch(facts_cache, "examine_file", examine)
    if text == "the loader cannot read":
        patch(environment_module, "damage_of", lambda _: UNREADABLE)
    reader = ProgramReader(cache=Cache(tmp_path.with_suffix(".cache")), paths=[tmp_path])
    report = audit_report(reader.read_all(), audit_data(cuda(*LABELS), TABLES), AuditRequirements())
    assert report.notes == (f"not read: {tmp_path / name} (Permission denied)",)
    unknown = [each for each in report.findings if each.kind == "unknown"]
    assert [each.exit_code for each in unknown] == codes
    assert all(name in each.message for each in unknown)
    assert any(text in each.message for each in unknown) == bool(codes)
    # The library of the other file is still reported.
    assert any("other/b.so" in each.message for each in report.findings)


def test_unreadable_folder_ends_no_report(tmp_path: Path, patch: Patch) -> None:
    put_example(tmp_path, user(CUBLAS))
    (tmp_path / "private").mkdir()
    scandir = os.scandir

    def scan(folder: str) -> object:
        if folder == str(tmp_path / "private"):
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    patch(os, "scandir", scan)
    reader = ProgramReader(cache=Cache(tmp_path.with_suffix(".cache")), paths=[tmp_path])
    (environment,) = reader.read_all().environments
    assert environment.unreadable == [f"{tmp_path / 'private'} (Permission denied)"]
    assert [file.display_path for file in environment.files] == ["example/a.so"]
