"""Tests of other names of options."""

from typing import Any

import pytest
from typer.main import get_command

from cudaredist.app import app
from cudaredist.cli.other_names import OTHER_NAMES, after_format, without_other_names

COMMANDS: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", OTHER_NAMES)
def test_other_names_stand_for_options_in_the_help(command: str) -> None:
    options = {
        spelling for p in COMMANDS[command].params for spelling in (*p.opts, *p.secondary_opts)
    }
    assert not options & OTHER_NAMES[command].keys()
    names = {words[0] for words in OTHER_NAMES[command].values() if words}
    assert names <= options


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "audit x --cuda 12.9 --max-glibc=2.28",
            "audit x --require-cuda 12.9 --require-glibc=2.28",
        ),
        ("audit --gpu x", "audit --require-gpu host x"),
        ("audit -- --gpu", "audit -- --gpu"),
        ("build --cuda 12.9 --capability=9.0", "build --cuda 12.9 --gpu=9.0"),
        ("bump --print-commit-message", "bump --format commit-message"),
        (
            "process-manifests --no-parallel --no-cleanup",
            "process-manifests --jobs 1 --keep-archives",
        ),
        ("download-manifests --parallel --no-cleanup x", "download-manifests x"),
        ("check --driver 580 --cuda", "check --require-driver 580 --cuda"),
        ("materialize x --root=y --target z", "materialize x --output=y --target-set z"),
        ("export cmake x --root y --target z", "export cmake x --root y --target-set z"),
        ("build --target linux-sbsa", "build --target linux-sbsa"),
        ("which --cuda 12.9", "which --cuda 12.9"),
        ("--version", "--version"),
        ("", ""),
    ],
)
def test_call_gets_the_names_of_the_help(call: str, expected: str) -> None:
    assert without_other_names(call.split()) == expected.split()


@pytest.mark.parametrize(
    ("call", "rest"),
    [
        ("nixpkgs set.json --diff co", "set.json --diff co"),
        ("--diff nixpkgs nixpkgs set.json", "--diff nixpkgs set.json"),
        ("-o nixpkgs --json nixpkgs", "-o nixpkgs --json"),
        ("-qo nixpkgs nixpkgs", "-qo nixpkgs"),
        ("-onix --diff=nix nixpkgs", "-onix --diff=nix"),
        ("-- nixpkgs", "--"),
        ("nix nixpkgs", None),
        ("- nixpkgs", None),
        ("--output nixpkgs nix", None),
        ("--json", None),
        ("", None),
    ],
)
def test_format_is_the_first_argument(call: str, rest: str | None) -> None:
    expected = None if rest is None else rest.split()
    assert after_format(call.split(), "nixpkgs", {"--output", "-o", "--diff"}) == expected


def test_empty_words_are_kept() -> None:
    assert without_other_names(["audit", "", "--error", ""]) == ["audit", "", "--error", ""]
