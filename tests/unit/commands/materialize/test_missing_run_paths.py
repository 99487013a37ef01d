"""Tests of the search for missing run paths in a root."""

from pathlib import Path

import pytest
from support import binaries

from cudaredist.commands.materialize.merge import Content, Plan, PlannedFile
from cudaredist.commands.materialize.missing_run_paths import added_run_paths, missing_run_paths
from cudaredist.formats.toolkit_record import ToolkitLink

USER = "lib/libuser.so.1"


def plan_of(files: dict[str, bytes], links: dict[str, str] | None = None) -> Plan:
    contents = {
        path: PlannedFile("x", Content(Path(), "", 1), False, binaries.read(data))  # noqa: FBT003
        for path, data in files.items()
    }
    targets = (links or {}).items()
    return Plan(contents, {path: ToolkitLink(target=end, package="x") for path, end in targets})


def user(
    *needed: str, opens: str = "", runpath: str | None = None, rpath: str | None = None
) -> bytes:
    sections = {".rodata": opens.encode() + b"\0"}
    return binaries.elf(
        soname="libuser.so.1", needed=needed, runpath=runpath, rpath=rpath, sections=sections
    )


LIBRARY = binaries.elf(soname="liba.so.1")


@pytest.mark.parametrize(
    ("data", "where", "links"),
    [
        (user("liba.so.1", runpath="$ORIGIN"), "lib/liba.so.1", {}),
        (user("liba.so.1", rpath="/elsewhere:${ORIGIN}/."), "lib/liba.so.1", {}),
        (user("liba.so.1", runpath="$ORIGIN/../lib64"), "lib/liba.so.1", {"lib64": "lib"}),
        (user("liba.so.1", runpath="$ORIGIN/../other"), "other/liba.so.1", {}),
        (user("libother.so.1", opens="libmore.so.2"), "lib/liba.so.1", {}),
        (user("liba.so.1"), "lib/stubs/liba.so.1", {}),
        (user(opens="libuser.so"), "lib/liba.so.1", {"lib/libuser.so": "libuser.so.1"}),
    ],
)
def test_library_that_finds_others_is_not_named(
    data: bytes, where: str, links: dict[str, str]
) -> None:
    assert missing_run_paths(plan_of({USER: data, where: LIBRARY}, links)) == {}


@pytest.mark.parametrize(
    ("data", "where", "links", "run_paths"),
    [
        (user("liba.so.1"), "lib/liba.so.1", {}, ("$ORIGIN",)),
        (user("liba.so.1", runpath="$ORIGIN/../nvidia/lib"), "lib/liba.so.1", {}, ("$ORIGIN",)),
        (user(opens="liba.so.1"), "lib/liba.so.1", {}, ("$ORIGIN",)),
        # A version may be added at run time.
        (user(opens="liba.so"), "lib/liba.so.1", {}, ("$ORIGIN",)),
        (user(opens="liba.so"), "lib/liba.so.1.2", {"lib/liba.so": "liba.so.1.2"}, ("$ORIGIN",)),
        (user("liba.so.1"), "x/lib/liba.so.1", {}, ("$ORIGIN/../x/lib",)),
    ],
)
def test_library_without_run_path_is_named(
    data: bytes, where: str, links: dict[str, str], run_paths: tuple[str, ...]
) -> None:
    missing = missing_run_paths(plan_of({USER: data, where: LIBRARY}, links))
    assert missing.keys() == {USER}
    assert added_run_paths(USER, missing[USER]) == run_paths


def test_library_for_another_machine_and_program_are_not_named() -> None:
    other = binaries.elf(soname="liba.so.1", machine="aarch64")
    program = binaries.elf(kind="program", needed=["liba.so.1"])
    plan = plan_of({USER: user("liba.so.1"), "lib/liba.so.1": other, "bin/program": program})
    assert missing_run_paths(plan) == {}
