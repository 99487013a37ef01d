"""Tests of the tables in docs/nixpkgs.md."""

import json
import re
from pathlib import Path

from conftest import REPOSITORY, Run


def test_table_has_outputs_of_every_package(run: Run) -> None:
    options = ("--cuda", "13.0.2", "--platform", "linux-x86_64", "--channel", "wheels")
    data = ("--data-dir", REPOSITORY / "data")
    assert run("build", *options, *data, "-o", "set.json").exit_code == 0
    packages = json.loads(Path("set.json").read_bytes())["packages"]
    page = (REPOSITORY / "docs/nixpkgs.md").read_text()
    section = page.partition("## Outputs")[2].partition("\n## ")[0]
    row = r"^\| ([a-z0-9_, ]+) \| (out[a-z ]*) \| (out[a-z ]*|-) \| (.+) \|$"
    rows = re.findall(row, section, re.MULTILINE)
    table = {name: outputs.split() for names, outputs, _, _ in rows for name in names.split(", ")}
    assert table == {
        name: entry["outputs"]
        for name, entry in packages.items()
        if entry["status"] == "available" and entry["alias_of"] is None
    }
    for _, outputs, nixpkgs, difference in rows:
        assert (outputs == nixpkgs) == difference.startswith("none"), difference
