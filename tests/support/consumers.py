"""The consumers of exported files, each asked with its own tool whether it can read them."""

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from spdx_tools.spdx.parser.jsonlikedict.json_like_dict_parser import JsonLikeDictParser
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

NIX_SUMMARY = """builtins.mapAttrs (_: package: {
  inherit (package) name pname version outputs meta;
  builds = map (v: (builtins.tryEval v).success) [ package.drvPath package.outPath package.src ];
}) set"""
"""What every attribute says of itself, and whether it can be built."""


@cache
def read_cyclonedx(text: str) -> dict[str, Any]:
    """Return a CycloneDX document that its own library finds valid."""
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bom: dict[str, Any] = json.loads(text)
    known = {component["bom-ref"] for component in bom["components"]}
    assert len(known) == len(bom["components"])
    for entry in bom["dependencies"]:
        assert set(entry["dependsOn"]) <= known
    for component in bom["components"]:
        purl = PackageURL.from_string(component["purl"])
        assert (purl.name, purl.version) == (component["name"], component["version"])
    return bom


def read_spdx(text: str) -> dict[str, Any]:
    """Return an SPDX document that its own library finds valid."""
    bom: dict[str, Any] = json.loads(text)
    parsed = JsonLikeDictParser().parse(bom)  # type: ignore[no-untyped-call] # not typed there
    assert [message.validation_message for message in validate_full_spdx_document(parsed)] == []
    return bom


def evaluate_nix(folder: Path, expression: str, arguments: str = "{ }") -> Any:
    """Return the value of an expression, or what Nix says is wrong.

    `set` is what the folder's default.nix gives. Nothing is built, and no store is needed.
    """
    done = subprocess.run(
        [
            *("nix-instantiate", "--store", "dummy://", "--eval", "--strict", "--json"),
            *("-E", f"let set = import ./default.nix {arguments}; in {expression}"),
        ],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "NIX_PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr
