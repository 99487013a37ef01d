"""Tests that every shipped set evaluates with nixpkgs' check of meta attributes."""

import json
from pathlib import Path

import pytest
from conftest import REPOSITORY, Run
from support.consumers import evaluate_nix
from support.nix_builds import STAND_IN, needs_nix

SUMMARY = """package: {
  inherit (package) name pname version outputs meta;
  builds = (builtins.tryEval package.drvPath).success;
  selected = map (output: package.${output}.outputSpecified or true) package.outputs;
}"""
EVERY_SET = f"""builtins.listToAttrs (map (file:
  let
    document = builtins.fromJSON (builtins.readFile (./. + "/sets/${{file}}"));
    none = builtins.fromJSON (builtins.readFile ./providers.json);
    known = document.platform.nix_system;
    # Nix has no name for Windows on ARM.
    system = if known == null then "x86_64-linux" else known;
    pkgs = import {STAND_IN} {{ inherit system; libraries = none; }};
    summary = set: builtins.mapAttrs (_: {SUMMARY}) (removeAttrs set [ "overrideScope" "tests" ]);
  in {{
    name = file;
    value = map summary [ (make {{ inherit document; }}) (make {{ inherit document pkgs; }}) ];
  }}) (builtins.fromJSON (builtins.readFile ./files.json)))"""


@needs_nix
@pytest.mark.slow
def test_every_attribute_of_every_shipped_set_evaluates(run: Run) -> None:
    options = ("--data-dir", REPOSITORY / "data", "--wheel-base", "https://wheels.example")
    assert run("build", "--channel", "wheels", *options, "-o", "sets", "-q").exit_code == 0
    sets = {
        path.relative_to("sets").as_posix(): json.loads(path.read_bytes())
        for path in Path("sets").glob("*/cuda-*.json")
    }
    assert len(sets) >= 47
    first = min(path for path in sets)
    assert run("export", "nix", Path("sets", first), "-o", ".").exit_code == 0
    providers = {
        entry["provider"]
        for document in sets.values()
        for entry in document["external"].values()
        if entry["owner"] == "distribution"
    }
    Path("providers.json").write_text(json.dumps({name: [] for name in sorted(providers)}))
    Path("files.json").write_text(json.dumps(sorted(sets)))
    summaries_by_file = evaluate_nix(Path.cwd(), f"let make = import ./default.nix; in {EVERY_SET}")
    assert isinstance(summaries_by_file, dict), summaries_by_file
    assert summaries_by_file.keys() == sets.keys()
    for name, summaries in summaries_by_file.items():
        packages = sets[name]["packages"]
        is_for_nix = sets[name]["platform"]["nix_system"] is not None
        for summary, is_buildable in zip(summaries, (True, is_for_nix), strict=True):
            assert summary.keys() == packages.keys()
            for attr, package in packages.items():
                evaluated = summary[attr]
                is_available = package["status"] == "available"
                assert evaluated["builds"] == (is_available and is_buildable), (name, attr)
                # Nix sorts the problems by their names, which begin with the codes.
                messages = {
                    problem["message"] for problem in evaluated["meta"]["problems"].values()
                }
                assert messages == {reason["text"] for reason in package["reasons"]}
                assert bool(messages) != is_available
                assert set(evaluated["selected"]) == {True}
