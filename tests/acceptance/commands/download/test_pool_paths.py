"""Tests of archives in `../../../pool/`: manifests, exports and toolkit roots."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.releases import put, release
from support.running import expect_output
from support.server import FaultServer
from support.toolkits import MadeSet

POOL = "../../../pool/x/libx-linux-x86_64-1.2.3-archive.tar.xz"


@pytest.fixture
def made_set(run: Run) -> MadeSet:
    """Return a set with one archive in the pool."""
    made_set = MadeSet()
    path = made_set.add("libx", {"LICENSE": b"EULA\n", "lib/x": b"x"})
    made_set.packages["libx"]["archive"] |= {
        "relative_path": POOL,
        "url": f"https://developer.download.nvidia.com/{POOL.removeprefix('../../../')}",
    }
    made_set.archives = {POOL.removeprefix("../../../"): made_set.archives[path]}
    made_set.write(Path("set.json"))
    return made_set


def sources(made_set: MadeSet, server: FaultServer) -> Iterator[tuple[str, ...]]:
    """Yield the options of every kind of source."""
    (data,) = made_set.archives.values()
    (path,) = made_set.archives
    server.files |= {f"/mirror/{path}": data, f"/{path}": data}
    put(Path("mirror"), {path: data})
    put(Path("flat"), {path.rpartition("/")[2]: data})
    yield "--base-url", server.url
    yield "--base-url", f"{server.url}/mirror"
    yield "--base-url", "mirror"
    yield "--offline", "--archives", "mirror"
    yield "--offline", "--archives", "flat"


def test_materialize_reads_pool_paths_from_every_source(
    made_set: MadeSet, server: FaultServer, run: Run
) -> None:
    for number, options in enumerate(sources(made_set, server)):
        root = Path(f"root{number}")
        expect_output(run("materialize", "set.json", "--root", root, *options), 0)
        assert (root / "lib/x").read_bytes() == b"x"


@pytest.mark.parametrize("form", ["urls", "sha256sums", "redistrib", "cyclonedx", "spdx"])
def test_export_of_pool_path_keeps_path_and_address(made_set: MadeSet, run: Run, form: str) -> None:
    expect_output(run("export", form, "set.json", "--output", "out"), 0)
    files = [Path("out")] if Path("out").is_file() else Path("out").rglob("*.*")
    text = "".join(path.read_text() for path in files if path.is_file())
    assert "x/libx-linux-x86_64-1.2.3-archive.tar.xz" in text or form == "spdx"
    assert "nvidia.com/.." not in text


@pytest.mark.parametrize(
    "path", ["../../../../pool/x.tar.xz", "../../../x.tar.xz", "../../../pool/../../x.tar.xz"]
)
def test_path_outside_root_is_refused(made_set: MadeSet, run: Run, path: str) -> None:
    Path("x.tar.xz").write_bytes(b"outside")
    made_set.packages["libx"]["archive"]["relative_path"] = path
    made_set.write(Path("set.json"))
    Path("mirror").mkdir()
    result = run("materialize", "set.json", "--root", "root", "--base-url", "mirror")
    assert result.exit_code == 5, result.output
    assert "packages.libx.archive.relative_path: has '..'" in result.stderr
    assert not Path("root").exists()
    assert run("export", "urls", "set.json").exit_code == 5
    files = release("12.9.1", {"libx": {"linux-x86_64": {"LICENSE": b"x"}}})
    document: dict[str, Any] = json.loads(files["redistrib_12.9.1.json"])
    document["libx"]["linux-x86_64"]["relative_path"] = path
    put(Path("data/manifests/cuda"), {"redistrib_12.9.1.json": json.dumps(document).encode()})
    assert run("process-manifests", "--base-url", "mirror").exit_code == 5
