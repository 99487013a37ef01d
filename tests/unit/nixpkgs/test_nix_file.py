"""Tests of changes in files of Nix code."""

import pytest

from cudaredist.errors import ContentError
from cudaredist.exporters.nix_code import NixExpression, NixValue
from cudaredist.nixpkgs.nix_file import NixFile

CODE = """{ lib }:
let
  name = { a = 1; }; # name = { b = 2; };
  text = ''
    table = ${"{ a = 3; }"} ''${no} ''';
  '';
in
{
  /* table = { } */
  table = lib.f (x: let a = 5; in { b = 6; }) {
    # the first
    a = "7"; # seven

    c = if x == 1 then "8" else "\\"9;";
  };
}
"""


def edited(*names: str, value: NixValue) -> str:
    file = NixFile("f.nix", CODE)
    file.put(names, value)
    return file.text


@pytest.mark.parametrize(
    ("names", "value", "old", "new"),
    [
        (("table", "c"), "10", 'c = if x == 1 then "8" else "\\"9;";', 'c = "10";'),
        (("name", "a"), True, "name = { a = 1; };", "name = { a = true; };"),
        (
            ("table", "c"),
            NixExpression("if y then\n  1\nelse\n  2"),
            'c = if x == 1 then "8" else "\\"9;";',
            "c =\n      if y then\n        1\n      else\n        2;",
        ),
        (("table", "d"), "10", "{\n    # the", '{\n    d = "10";\n    # the'),
        (("name", "1.2"), None, "{ a = 1; };", '{\n    "1.2" = null; a = 1; };'),
    ],
)
def test_put_changes_only_one_value(
    names: tuple[str, ...], value: NixValue, old: str, new: str
) -> None:
    assert CODE.count(old) == 1
    assert edited(*names, value=value) == CODE.replace(old, new)


@pytest.mark.parametrize(
    ("name", "siblings", "after"),
    [
        ("b", "ac", 'a = "7"; # seven'),
        ("d", "abc", '"\\"9;";'),
        ("0", "ac", "(x: let a = 5; in { b = 6; }) {"),
    ],
)
def test_add_follows_last_lower_sibling(name: str, siblings: str, after: str) -> None:
    file = NixFile("f.nix", CODE)
    file.add(["table"], name, [f"{name} = 0;"], siblings=siblings)
    assert file.text == CODE.replace(after, f"{after}\n    {name} = 0;")


@pytest.mark.parametrize("names", [("missing",), ("table", "a")])
def test_parent_without_attributes_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(ContentError, match=f"f.nix: no attributes in {'.'.join(names)}"):
        edited(*names, "b", value="1")
