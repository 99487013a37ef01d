"""Consumers of exported files: libraries and tools that read them."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from support.running import completed

NIX_SUMMARY = """builtins.mapAttrs (_: package: {
  inherit (package) name pname version outputs meta;
  builds = map (v: (builtins.tryEval v).success) [ package.drvPath package.outPath package.src ];
}) (removeAttrs set [ "overrideScope" "tests" ])"""
"""Fields of every attribute, and whether it can be built."""


@cache
def read_cyclonedx(text: str) -> dict[str, Any]:
    """Return a CycloneDX document after validating it with its library."""
    # Every worker imports this module, and only one of them runs the test.
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415
    from packageurl import PackageURL  # noqa: PLC0415

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bom: dict[str, Any] = json.loads(text)
    known = {component["bom-ref"] for component in bom["components"]}
    assert len(known) == len(bom["components"])
    for entry in bom["dependencies"]:
        assert set(entry["dependsOn"]) <= known
    for component in bom["components"]:
        purl = PackageURL.from_string(component["purl"])
        if purl.type == "pypi":
            stem = f"{purl.name.replace('-', '_')}-{purl.version}-"
            assert dict(purl.qualifiers)["file_name"].startswith(stem)
        else:
            assert (purl.name, purl.version) == (component["name"], component["version"])
    return bom


def read_spdx(text: str) -> dict[str, Any]:
    """Return an SPDX document after validating it with its library."""
    from spdx_tools.spdx.parser.jsonlikedict import json_like_dict_parser  # noqa: PLC0415
    from spdx_tools.spdx.validation.document_validator import (  # noqa: PLC0415
        validate_full_spdx_document,
    )

    bom: dict[str, Any] = json.loads(text)
    parsed = json_like_dict_parser.JsonLikeDictParser().parse(bom)  # type: ignore[no-untyped-call] # not typed there
    assert [message.validation_message for message in validate_full_spdx_document(parsed)] == []
    return bom


def evaluate_nix(folder: Path, expression: str, arguments: str = "{ }") -> Any:
    """Return the value of an expression, or the error message of Nix.

    `set` is the value of the folder's default.nix. Nothing is built, and no store is needed.
    """
    process = completed(
        *("nix-instantiate", "--store", "dummy://", "--eval", "--strict", "--json"),
        *("-E", f"let set = import ./default.nix {arguments}; in {expression}"),
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "NIX_PATH": ""},
    )
    return json.loads(process.stdout) if process.returncode == 0 else process.stderr
