"""Tests of exported manifests with `channels.json` and `releases.json`."""

import json
from pathlib import Path

from conftest import Run
from support.releases import put
from support.running import expect_error, expect_output
from support.toolkits import MadeSet


def test_exported_tree_is_a_source_of_its_channel(run: Run) -> None:
    made_set = MadeSet()
    made_set.add("libx", {"LICENSE": b"EULA\n", "lib/x": b"x"})
    made_set.write(Path("set.json"))
    export = ("export", "redistrib", "set.json", "--output", "tree")
    expect_output(run(*export, "--nvidia-channel", "own"), 0)
    (archive,) = made_set.archives.values()
    document = json.loads(Path("set.json").read_text())["packages"]["libx"]
    path = document["archive"]["relative_path"]
    redist, label = document["redist"], document["release"]
    put(Path("tree"), {f"release/{redist}/redist/{path}": archive})
    source = ("--redist", redist, "--base-url", "tree")
    expect_output(run("download-manifests", *source, "--nvidia-channel", "own"), 0)
    lock = json.loads(Path("data/lock.json").read_text())["redists"][redist][label]
    assert lock["nvidia_channel"] == "own"
    assert lock["address"] == f"release/{redist}/redist/{lock['sha256']}.json"
    expect_output(run("process-manifests", *source), 0)
    assert Path(f"data/features/{redist}/feature_{label}.json").is_file()


def test_channel_requires_the_format_redistrib(run: Run) -> None:
    made_set = MadeSet()
    made_set.add("libx", {"lib/x": b"x"})
    made_set.write(Path("set.json"))
    result = run("export", "urls", "set.json", "--nvidia-channel", "own")
    expect_error(result, 2, "--nvidia-channel requires the format redistrib")
    result = run("export", "redistrib", "set.json", "--output", "x", "--nvidia-channel", "a/b")
    expect_error(result, 2, "not the name of a channel")
