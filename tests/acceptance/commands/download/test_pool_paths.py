"""Tests of early-access releases: archives in `../../../pool/`, and manifests in `release/`."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.releases import early_release, put, release
from support.running import expect_error, expect_output
from support.server import FaultServer, redirect
from support.toolkits import MadeSet

from cudaredist.sources.http import HttpSource
from cudaredist.sources.protocol import Settings

POOL = "../../../pool/x/libx-linux-x86_64-1.2.3-archive.tar.xz"


@pytest.fixture
def made_set(run: Run) -> MadeSet:
    """Return a set with one archive in the pool."""
    made_set = MadeSet()
    path = made_set.add("libx", {"LICENSE": b"EULA\n", "lib/x": b"x"})
    made_set.packages["libx"]["archive"] |= {
        "relative_path": POOL,
        "url": f"https://packages.nvidia.com/bin-archive/{POOL.removeprefix('../../../')}",
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
        expect_output(run("materialize", "set.json", "--output", root, *options), 0)
        assert (root / "lib/x").read_bytes() == b"x"


@pytest.mark.parametrize("form", ["urls", "sha256sums", "redistrib", "cyclonedx", "spdx"])
def test_export_of_pool_path_keeps_path_and_address(made_set: MadeSet, run: Run, form: str) -> None:
    expect_output(run("export", form, "set.json", "--output", "out"), 0)
    files = [Path("out")] if Path("out").is_file() else Path("out").rglob("*.*")
    text = "".join(path.read_text() for path in files if path.is_file())
    assert "x/libx-linux-x86_64-1.2.3-archive.tar.xz" in text or form == "spdx"
    assert "nvidia.com/.." not in text


@pytest.mark.parametrize(
    "path",
    [
        "../../../../pool/x.tar.xz",
        "../../../x.tar.xz",
        "../../../pool/../../x.tar.xz",
        "../../../pool/..\\..\\x.tar.xz",
        "../../../pool/%2e%2e/%2e%2e/x.tar.xz",
        "/pool/x.tar.xz",
        "//example.org/x.tar.xz",
        "https://example.org/x.tar.xz",
    ],
)
def test_path_outside_root_is_refused(made_set: MadeSet, run: Run, path: str) -> None:
    Path("x.tar.xz").write_bytes(b"outside")
    made_set.packages["libx"]["archive"]["relative_path"] = path
    made_set.write(Path("set.json"))
    Path("mirror").mkdir()
    result = run("materialize", "set.json", "--output", "root", "--base-url", "mirror")
    assert result.exit_code == 5, result.output
    assert "packages.libx.archive.relative_path: " in result.stderr
    assert not Path("root").exists()
    assert run("export", "urls", "set.json").exit_code == 5
    files = release("12.9.1", {"libx": {"linux-x86_64": {"LICENSE": b"x"}}})
    document: dict[str, Any] = json.loads(files["redistrib_12.9.1.json"])
    document["libx"]["linux-x86_64"]["relative_path"] = path
    put(Path("data/manifests/cuda"), {"redistrib_12.9.1.json": json.dumps(document).encode()})
    assert run("process-manifests", "--base-url", "mirror", "--pre").exit_code == 5


@pytest.mark.parametrize("is_same", [True, False])
def test_redirect_out_of_root_is_followed_and_verified(
    made_set: MadeSet, server: FaultServer, run: Run, *, is_same: bool
) -> None:
    ((path, data),) = made_set.archives.items()
    server.files[f"/mirror/{path}"] = data
    with FaultServer() as other:
        other.files["/elsewhere"] = data if is_same else bytes(len(data))
        server.misbehave(f"/mirror/{path}", redirect(f"{other.url}/elsewhere"), times=9)
        url = f"{server.url}/mirror".replace("http://", "http://user:secret@")
        result = run("materialize", "set.json", "--output", "root", "--base-url", url)
    assert other.requests["/elsewhere"]
    assert all(headers.get("Authorization") is None for _, headers in other.headers)
    assert (result.exit_code == 0) is is_same, result.output
    assert Path("root/lib/x").is_file() is is_same
    assert is_same or "SHA-256" in result.stderr or "sha256" in result.stderr


# -- early-access releases at a source

ROOT = "/bin-archive"


def serve(server: FaultServer, files: Mapping[str, bytes]) -> None:
    """Serve files below the root, with a listing of each folder of manifests."""
    server.files |= {f"{ROOT}/{path}": data for path, data in files.items()}
    for folder in ("compute", "release"):
        place = f"{ROOT}/{folder}/cuda/redist/"
        names = [path.removeprefix(place) for path in server.files if f"{place}redistrib_" in path]
        links = "".join(f"<a href='{name}'>{name}</a>" for name in names)
        server.files[place] = f"<pre>{links}</pre>".encode()


@pytest.fixture
def early(server: FaultServer) -> str:
    """Serve CUDA 13.4.0 as early access next to 13.3.1, and return the root's address."""
    files = release("13.3.1", {"libx": {"linux-x86_64": {"lib/x": b"y"}}})
    serve(server, {f"compute/cuda/redist/{path}": data for path, data in files.items()})
    serve(server, early_release("13.4.0"))
    return server.url + ROOT


def local_labels() -> set[str]:
    """Return the names of the local manifests."""
    return {path.stem for path in Path("data/manifests/cuda").glob("redistrib_*")}


def test_early_access_is_downloaded_only_with_pre(
    early: str, server: FaultServer, run: Run
) -> None:
    download = ("download-manifests", "--redist", "cuda", "--base-url", early)
    expect_output(run(*download, "--version", "all"), 0)
    assert local_labels() == {"redistrib_13.3.1"}
    assert not any("/release/" in path for path in server.requests)
    expect_output(run(*download, "--pre"), 0)
    assert local_labels() == {"redistrib_13.3.1", "redistrib_13.4.0"}
    serve(server, early_release("13.5.0"))
    expect_output(run(*download), 0)
    assert len(local_labels()) == 2
    assert '"gone"' not in Path("data/lock.json").read_text()
    assert run("check", "--base-url", early).exit_code != 3


@pytest.mark.parametrize("command", ["download-manifests", "bump"])
def test_label_of_early_access_without_pre_names_the_option(
    early: str, run: Run, command: str
) -> None:
    source = ("--redist", "cuda", "--base-url", early)
    run("download-manifests", *source)
    call = (command, *source, "--version", "13.4.0")
    expect_error(run(*call), 3, "lists 13.4.0 upstream", f"cudaredist {command} ", " --pre`")
    Path("data/features/cuda").mkdir(parents=True)
    result = run(*call, "--pre", *(["--no-process"] if command == "bump" else []))
    expect_output(result, 0)
    assert "redistrib_13.4.0" in local_labels()


def test_early_access_is_processed_only_with_pre_or_by_label(
    early: str, server: FaultServer, run: Run
) -> None:
    source = ("--base-url", early)
    run("download-manifests", "--redist", "cuda", *source, "--version", "all", "--pre")
    expect_output(run("process-manifests", *source), 0)
    folder = Path("data/features/cuda")
    assert {path.name for path in folder.iterdir()} == {"feature_13.3.1.json"}
    for options in (("--pre",), ("--version", "13.4.0")):
        expect_output(run("process-manifests", *source, *options), 0)
        (folder / "feature_13.4.0.json").unlink()
    assert all(path.startswith(f"{ROOT}/") for path in server.requests)


def test_set_of_early_access_requires_its_whole_label(early: str, run: Run) -> None:
    source = ("--base-url", early)
    run("download-manifests", "--redist", "cuda", *source, "--version", "all", "--pre")
    run("process-manifests", *source, "--pre")
    of_set = ("--platform", "linux-x86_64", "--allow-hollow", "--output", "set.json")
    build = ("build", *of_set, "--cuda")
    expect_output(run(*build, "13"), 0)
    document = json.loads(Path("set.json").read_text())
    assert document["cuda"]["release"] == "13.3.1"
    assert "early_access" not in document["cuda"]
    assert run(*build, "13.4").exit_code == 2
    expect_output(run(*build, "13.4.0"), 0)
    document = json.loads(Path("set.json").read_text())
    assert document["cuda"]["early_access"] is True
    address = document["packages"]["libx"]["archive"]["url"]
    assert address.startswith("https://packages.nvidia.com/bin-archive/pool/linux-x86_64/5B515474")
    result = run("export", "urls", "set.json", "--base-url", "https://example.org/cuda")
    expect_output(result, 0, "https://example.org/cuda/pool/linux-x86_64/5B515474-7E78/")
    expect_output(run("materialize", "set.json", "--output", "root", *source), 0)
    assert Path("root/lib/x").read_bytes() == b"x"


def test_process_of_only_early_access_suggests_pre(early: str, run: Run) -> None:
    source = ("--base-url", early)
    run("download-manifests", "--redist", "cuda", *source, "--pre")
    result = run("process-manifests", *source)
    expect_error(result, 2, "only early-access releases", "process-manifests", "--pre")


@pytest.mark.parametrize("slash", ["\\/", "\\u002f", "/"])
def test_early_access_is_known_with_escaped_slashes(early: str, run: Run, slash: str) -> None:
    source = ("--base-url", early)
    run("download-manifests", "--redist", "cuda", *source, "--pre")
    path = Path("data/manifests/cuda/redistrib_13.4.0.json")
    path.write_text(path.read_text().replace("/", slash))
    expect_error(run("process-manifests", *source), 2, "only early-access releases")


def test_process_without_selected_early_access_does_not_suggest_pre(early: str, run: Run) -> None:
    source = ("--base-url", early)
    run("download-manifests", "--redist", "cuda", *source, "--version", "all", "--pre")
    result = run("process-manifests", *source, "--max-version", "11")
    assert "early-access" not in result.output
    result = run("process-manifests", *source, "--min-version", "13.4")
    expect_error(result, 2, "only early-access releases", "--min-version 13.4", "--pre")


def test_hint_without_pre_names_no_early_access(early: str, run: Run) -> None:
    source = ("download-manifests", "--redist", "cuda", "--base-url", early)
    run(*source, "--pre")
    expect_error(run(*source, "--version", "13.9.9"), 3, "newest upstream: cuda 13.3.1;")
    result = run(*source, "--version", "13.9.9", "--pre")
    expect_error(result, 3, "newest upstream: cuda 13.4.0;")


@pytest.mark.parametrize("is_folder", [False, True])
def test_label_of_release_candidate_is_ignored_and_logged(
    early: str, server: FaultServer, run: Run, *, is_folder: bool
) -> None:
    name = "redistrib_13.9.0-rc1.json"
    serve(server, {f"compute/cuda/redist/{name}": b"{}"})
    put(Path("data/manifests/cuda"), {name: b"{}"})
    if is_folder:
        put(
            Path("source"),
            {p.removeprefix(f"{ROOT}/"): x for p, x in server.files.items() if x[:1] == b"{"},
        )
    source = ("--redist", "cuda", "--base-url", "source" if is_folder else early)
    result = run("download-manifests", *source, "--version", "all", "-v")
    expect_output(result, 0)
    assert f"'{name}' is ignored" in result.stderr
    assert f"data/manifests/cuda/{name} is ignored" in result.stderr
    assert local_labels() == {"redistrib_13.3.1", "redistrib_13.9.0-rc1"}
    assert run("versions", *source, "--format", "newest").stdout == "13.3.1\n"
    expect_output(run("process-manifests", "--base-url", early), 0)
    assert [path.stem for path in Path("data/features/cuda").iterdir()] == ["feature_13.3.1"]
    expect_error(run("build", "--cuda", "13.9.0-rc1"), 2, "no local manifest of CUDA '13.9.0-rc1'")


def test_positional_form_reads_pool_below_root_of_address(early: str, run: Run) -> None:
    address = f"{early}/release/cuda/redist"
    expect_output(run("download-manifests", address, "manifests"), 0)
    expect_output(run("process-manifests", address, "manifests"), 0)
    assert Path("manifests/feature_13.4.0.json").is_file()


def test_mirror_keeps_early_access_in_its_folders(
    early: str, server: FaultServer, run: Run
) -> None:
    sync = ("mirror", "sync", "mirror", "--redist", "cuda", "--base-url", early)
    expect_output(run(*sync, "--version", "all"), 0)
    assert not Path("mirror/pool").exists()
    expect_output(run(*sync, "--version", "all", "--pre"), 0)
    for path, data in early_release("13.4.0").items():
        assert (Path("mirror") / path).read_bytes() == data
    expect_output(run("mirror", "verify", "mirror"), 0)
    server.files.clear()
    download = ("download-manifests", "--redist", "cuda", "--base-url", "mirror", "--pre")
    expect_output(run(*download), 0)
    expect_output(run("process-manifests", "--base-url", "mirror", "--pre"), 0)
    expect_output(run("mirror", "prune", "mirror", "--version", "all"), 0)
    assert not Path("mirror/pool").exists()
    assert Path("mirror/compute/cuda/redist/redistrib_13.3.1.json").is_file()


def test_versions_mark_early_access(early: str, run: Run) -> None:
    listed = ("versions", "--redist", "cuda", "--base-url", early)
    run("download-manifests", "--redist", "cuda", "--base-url", early)
    assert "13.4.0" not in expect_output(run(*listed), 0).stdout
    expect_output(run(*listed, "--pre"), 0, "13.4.0", "new (early access)")
    assert run(*listed, "--format", "newest").stdout == "13.3.1\n"
    assert run(*listed, "--format", "newest", "--pre").stdout == "13.4.0\n"


def test_nvidia_source_reads_early_access_from_other_server() -> None:
    source = HttpSource("https://developer.download.nvidia.com", Settings())
    root = "https://packages.nvidia.com/bin-archive"
    assert source.place_of("pool/a/x.zip") == f"{root}/pool/a/x.zip"
    assert source.place_of("release/cuda/redist/") == f"{root}/release/cuda/redist/"
    assert source.place_of("compute/x").startswith("https://developer.download.nvidia.com/compute")
    other = HttpSource("https://example.org/nvidia", Settings())
    assert other.place_of("pool/x.zip") == "https://example.org/nvidia/pool/x.zip"
