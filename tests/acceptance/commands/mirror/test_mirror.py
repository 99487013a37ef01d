"""mirror sync and prune: a mirror of small releases, from a server on loopback."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from support.factory import archive, manifest, package_set, set_archive, set_package
from support.mirrors import FOLDER, NEW, OLD, SAME, mirrored, path_of, published, serve_releases
from support.releases import release
from support.running import expect_error, expect_output, report
from support.server import Behaviour, FaultServer, body, breaking_after, status
from support.toolkits import modes_of_all
from typer.testing import Result

MIRROR = Path("mirror")


@pytest.fixture
def sync(run: Run, server: FaultServer) -> Run:
    """Run mirror sync of CUDA against the server."""

    def invoke(*options: object) -> Result:
        source = ("--base-url", server.url, "--retries", 1, "-j", 2)
        selection = () if "--set" in options else ("--redist", "cuda")
        return run("mirror", "sync", MIRROR, *selection, *source, *options)

    return invoke


def test_sync_copies_each_file_and_lists_it(sync: Run, server: FaultServer, run: Run) -> None:
    files = serve_releases(server)
    expect_output(sync("--version", "all"), 0, "manifests: 2 written", "archives: 8 copied")
    assert published(MIRROR) == files
    for path in (path for path in mirrored(MIRROR) if not path.endswith("index.html")):
        folder, _, name = path.rpartition("/")
        assert f'<a href="{name}">' in (MIRROR / folder / "index.html").read_text()
    assert 'href="cuda_nvcc/"' in (MIRROR / FOLDER / "index.html").read_text()
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=MIRROR, check=True)
    assert run("mirror", "verify", MIRROR).exit_code == 0


@pytest.mark.usefixtures("strict_umask")
def test_mirror_is_readable_for_all_users(sync: Run, server: FaultServer) -> None:
    serve_releases(server)
    assert sync("--version", "all").exit_code == 0
    assert modes_of_all(MIRROR) == {0o755, 0o644}


def test_second_sync_asks_only_for_listings_and_manifests(sync: Run, server: FaultServer) -> None:
    serve_releases(server)
    sync("--version", "all")
    before = mirrored(MIRROR)
    server.requests.clear()
    server.headers.clear()
    result = expect_output(sync("--version", "all", "--json"), 0)
    assert {one["status"] for one in report(result)["archives"]} == {"present"}
    assert set(server.requests) == {
        f"/{FOLDER}",
        *(f"/{FOLDER}redistrib_{label}.json" for label in (OLD, NEW)),
    }
    conditional = [path for path, headers in server.headers if "If-None-Match" in headers]
    assert len(conditional) == 2
    assert mirrored(MIRROR) == before


def test_sync_links_equal_contents(sync: Run, server: FaultServer) -> None:
    files = serve_releases(server)
    sync("--version", "all")
    same = [MIRROR / path for path in files if "cuda_same" in path]
    assert len({path.stat().st_ino for path in same}) == 1
    assert sum(server.requests[f"/{path}"] for path in files if "cuda_same" in path) == 1
    inodes = {path.stat().st_ino for path in MIRROR.rglob("*") if path.is_file()}
    contents = {path.read_bytes() for path in MIRROR.rglob("*") if path.is_file()}
    assert len(inodes) == len(contents)


def test_sync_links_content_of_an_earlier_run(sync: Run, server: FaultServer) -> None:
    files = serve_releases(server)
    sync("--version", OLD)
    server.requests.clear()
    expect_output(sync("--version", NEW.partition(".")[0]), 0, f"(cuda {NEW})")
    assert published(MIRROR) == files
    assert not [path for path in server.requests if "cuda_same" in path]


def test_sync_copies_the_selected_archives_only(sync: Run, server: FaultServer) -> None:
    files = serve_releases(server)
    only = ("--version", NEW, "--platform", "linux-x86_64", "--package", "cuda_cudart")
    assert sync(*only).exit_code == 0
    assert set(published(MIRROR)) == {
        path_of(files, "cuda_cudart/linux-x86_64", NEW),
        f"{FOLDER}redistrib_{NEW}.json",
    }
    expect_error(sync("--package", "cuda_cudar"), 2, "did you mean cuda_cudart")


def put_set(archive: dict[str, Any]) -> None:
    """Write a package set with one package."""
    packages = {"cuda_cudart": set_package("cuda_cudart", release=OLD, archive=archive)}
    Path("set.json").write_text(json.dumps(package_set(packages, release=OLD)))


def test_sync_of_a_package_set_copies_its_archives(sync: Run, server: FaultServer) -> None:
    files = serve_releases(server)
    path = path_of(files, "cuda_cudart/linux-x86_64", OLD)
    put_set(set_archive(path.removeprefix(FOLDER), files[path]))
    expect_output(sync("--set", "set.json"), 0)
    assert set(published(MIRROR)) == {path, f"{FOLDER}redistrib_{OLD}.json"}


def test_component_selects_packages_of_a_set_with_what_they_need(
    sync: Run, server: FaultServer
) -> None:
    files = serve_releases(server)
    paths = {
        name: path_of(files, f"{name}/linux-x86_64", OLD) for name in ("cuda_cudart", "cuda_nvcc")
    }
    packages = {
        name: set_package(
            name, release=OLD, archive=set_archive(path.removeprefix(FOLDER), files[path])
        )
        for name, path in paths.items()
    }
    Path("set.json").write_text(json.dumps(package_set(packages, release=OLD)))
    expect_output(sync("--set", "set.json", "--component", "cuda_cudart"), 0)
    manifest = f"{FOLDER}redistrib_{OLD}.json"
    assert set(published(MIRROR)) == {paths["cuda_cudart"], manifest}
    depends = {"attr": "cuda_cudart", "output": "out", "kind": "runtime"}
    packages["cuda_nvcc"]["depends"] = [depends]
    Path("set.json").write_text(json.dumps(package_set(packages, release=OLD)))
    expect_output(sync("--set", "set.json", "--component", "cuda_nvcc"), 0)
    assert set(published(MIRROR)) == {*paths.values(), manifest}
    expect_error(sync("--set", "set.json", "--component", "cuda_nvc"), 2, "did you mean")
    expect_error(sync("--component", "cuda_nvcc"), 2, "--component requires --set")


def test_sync_reports_archives_of_a_set_that_no_manifest_has(
    sync: Run, server: FaultServer
) -> None:
    serve_releases(server)
    put_set(set_archive("cuda_cudart/linux-x86_64/old.tar.xz", b"old"))
    message = "cuda_cudart: no manifest has the archive of the package set"
    expect_error(sync("--set", "set.json"), 3, message)


def test_sync_resumes_an_archive(sync: Run, server: FaultServer) -> None:
    files = serve_releases(server, NEW, size=300_000)
    path = path_of(files, "cuda_cudart/linux-x86_64")
    server.misbehave(f"/{path}", breaking_after(100_000))
    codes = []
    while path not in published(MIRROR):
        codes.append(sync("--retries", 0).exit_code)
    assert codes == [3] * (len(files[path]) // 100_000) + [0]
    assert published(MIRROR) == files
    ranges = [headers["Range"] for _, headers in server.headers if "Range" in headers]
    assert ranges == [f"bytes={n}00000-" for n in range(1, len(codes))]
    assert not list((MIRROR / ".mirror/partial").iterdir())


def test_sync_reads_files_that_a_killed_run_did_not_record(sync: Run, server: FaultServer) -> None:
    files = serve_releases(server, NEW)
    sync()
    (MIRROR / "mirror.json").write_text('{"schema_version": 1, "mirrored": {}}')
    broken = MIRROR / path_of(files, "cuda_nvcc")
    broken.unlink()
    broken.write_bytes(b"cut")
    server.requests.clear()
    assert sync().exit_code == 0
    assert published(MIRROR) == files
    assert server.count(".tar.xz") + server.count(".zip") == 1


# -- upstream changes


def test_sync_keeps_a_manifest_that_changed_in_place(sync: Run, server: FaultServer) -> None:
    files = serve_releases(server)
    sync("--version", "all")
    server.files[f"/{FOLDER}redistrib_{NEW}.json"] = manifest(NEW, salt="other")
    result = sync("--version", "all")
    assert result.exit_code == 4
    assert f"cuda {NEW}: changed in place upstream; the local file was kept" in result.stderr
    hint = result.stderr.partition("hint:")[2]
    assert "`cudaredist mirror sync mirror --redist cuda --version all " in hint
    assert " --replace`" in hint
    assert published(MIRROR) == files
    expect_output(sync("--version", "all", "--replace"), 4, "manifests: 1 unchanged, 1 written")


def test_sync_keeps_good_archives_if_accepted_ones_are_wrong(
    sync: Run, server: FaultServer, run: Run
) -> None:
    files = serve_releases(server, NEW)
    sync()
    path = path_of(files, "cuda_nvcc")
    changed = json.loads(files[f"{FOLDER}redistrib_{NEW}.json"])
    changed["cuda_nvcc"]["linux-x86_64"] |= archive(path.removeprefix(FOLDER), b"new archive")
    server.files[f"/{FOLDER}redistrib_{NEW}.json"] = json.dumps(changed).encode()
    server.files[f"/{path}"] = b"bad archive"
    expect_error(sync("--replace"), 4, "SHA-256 is")
    assert published(MIRROR)[path] == files[path]
    assert run("mirror", "verify", MIRROR).exit_code == 4
    server.files[f"/{path}"] = b"new archive"
    assert sync().exit_code == 0
    assert published(MIRROR)[path] == b"new archive"
    assert run("mirror", "verify", MIRROR).exit_code == 0


def test_sync_reports_gone_releases_and_keeps_them(sync: Run, server: FaultServer) -> None:
    files = serve_releases(server)
    sync("--version", "all")
    for path in [path for path in server.files if OLD in path]:
        del server.files[path]
    serve_releases(server, NEW)
    result = sync("--version", "all")
    assert result.exit_code == 0
    assert f"cuda {OLD}: upstream no longer lists it; the mirror keeps it" in result.stdout
    assert published(MIRROR) == files


@pytest.mark.parametrize(
    ("behaviour", "code", "message"),
    [
        pytest.param(body(b"other"), 4, "but the manifest states", id="wrong size"),
        pytest.param(status(404), 3, "the server answered 404", id="missing"),
    ],
)
def test_sync_with_a_wrong_archive_copies_the_others(
    sync: Run, server: FaultServer, behaviour: Behaviour, code: int, message: str
) -> None:
    files = serve_releases(server, NEW)
    path = path_of(files, "cuda_nvcc")
    server.misbehave(f"/{path}", behaviour)
    expect_error(sync(), code, message)
    assert published(MIRROR) == {name: data for name, data in files.items() if name != path}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("cuda_nvcc/index.html", "not a path that a mirror can have"),
        ("cuda_nvcc/redistrib_1.0.0.json", "not a path that a mirror can have"),
        ("../../../pool/simple.part", "not a path that a mirror can have"),
    ],
)
def test_sync_refuses_paths_of_generated_files(
    sync: Run, server: FaultServer, path: str, message: str
) -> None:
    document = json.loads(manifest(NEW, packages=["cuda_nvcc"], platforms=["linux-x86_64"]))
    document["cuda_nvcc"]["linux-x86_64"]["relative_path"] = path
    server.add_manifests("cuda", {NEW: json.dumps(document).encode()})
    expect_error(sync(), 4, message)


def test_sync_of_two_contents_for_one_path_keeps_the_first_and_prefers_the_newest(
    sync: Run, server: FaultServer, run: Run
) -> None:
    files = serve_releases(server)
    old, new = path_of(files, "cuda_nvcc", OLD), path_of(files, "cuda_nvcc", NEW)
    changed = json.loads(files[f"{FOLDER}redistrib_{NEW}.json"])
    changed["cuda_nvcc"]["version"] = OLD
    changed["cuda_nvcc"]["linux-x86_64"]["relative_path"] = old.removeprefix(FOLDER)
    server.files[f"/{FOLDER}redistrib_{NEW}.json"] = json.dumps(changed).encode()
    server.files[f"/{old}"] = files[new]
    message = "another manifest states another SHA-256 for this path"
    for _ in range(2):
        result = sync("--version", "all")
        assert result.exit_code == 4
        assert message in result.stderr
        assert f"mirror-{OLD}`" in result.stderr
        assert published(MIRROR)[old] == files[new]
        assert server.requests[f"/{old}"] == 1
    assert sync("--version", NEW).exit_code == 0
    assert run("mirror", "verify", MIRROR).exit_code == 0


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def flip_and_keep_time(path: Path) -> None:
    about = path.stat()
    flip(path)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def replace_by_symlink(path: Path) -> None:
    path.rename("elsewhere")
    path.symlink_to(Path("elsewhere").resolve())


@pytest.mark.parametrize(
    ("alter", "options", "result"),
    [
        pytest.param(truncate, (), "1 repaired", id="size"),
        pytest.param(flip, (), "1 repaired", id="time"),
        pytest.param(flip, ("--checksum",), "1 repaired", id="time, with checksum"),
        pytest.param(flip_and_keep_time, (), "4 present", id="equal size and time"),
        pytest.param(flip_and_keep_time, ("--checksum",), "1 repaired", id="content"),
        pytest.param(replace_by_symlink, (), "1 repaired", id="symbolic link"),
        pytest.param(Path.touch, (), "4 present", id="time only"),
        pytest.param(Path.unlink, (), "1 copied, 3 present", id="missing"),
    ],
)
def test_sync_repairs_altered_archives(
    sync: Run,
    server: FaultServer,
    alter: Callable[[Path], object],
    options: tuple[str, ...],
    result: str,
) -> None:
    files = serve_releases(server, NEW)
    sync()
    nvcc = path_of(files, "cuda_nvcc")
    alter(MIRROR / nvcc)
    repaired = expect_output(sync(*options), 0)
    line = repaired.stdout.splitlines()[-1]
    assert result in line
    assert line.endswith(f"compared by {'checksum' if options else 'size and time'}")
    assert (published(MIRROR) == files) == (result != "4 present" or alter is Path.touch)
    assert not (MIRROR / nvcc).is_symlink()


def test_sync_reads_every_file_of_an_earlier_lock(sync: Run, server: FaultServer) -> None:
    files = serve_releases(server, NEW)
    sync()
    nvcc, lock = path_of(files, "cuda_nvcc"), MIRROR / "mirror.json"
    flip_and_keep_time(MIRROR / nvcc)
    document = json.loads(lock.read_bytes())
    for record in document["mirrored"].values():
        del record["mtime_ns"]
    lock.write_text(json.dumps(document))
    assert "1 repaired" in sync().stdout
    assert published(MIRROR) == files


def test_sync_moves_a_content_to_another_path_while_its_path_changes(
    sync: Run, server: FaultServer, run: Run
) -> None:
    files = serve_releases(server, NEW)
    sync()
    nvcc, cudart = path_of(files, "cuda_nvcc"), path_of(files, "cuda_cudart/linux-x86_64")
    changed = json.loads(files[f"{FOLDER}redistrib_{NEW}.json"])
    swapped = {"cuda_nvcc": (nvcc, files[cudart]), "cuda_cudart": (cudart, files[nvcc])}
    for package, (path, data) in swapped.items():
        changed[package]["linux-x86_64"] |= archive(path.removeprefix(FOLDER), data)
        server.files[f"/{path}"] = data
    server.files[f"/{FOLDER}redistrib_{NEW}.json"] = json.dumps(changed).encode()
    expect_output(sync("--replace"), 0)
    assert published(MIRROR)[nvcc] == files[cudart]
    assert published(MIRROR)[cudart] == files[nvcc]
    assert run("mirror", "verify", MIRROR).exit_code == 0


def test_sync_records_manifests_again_after_damage_of_their_lock(
    sync: Run, server: FaultServer, run: Run
) -> None:
    files = serve_releases(server, NEW)
    sync()
    lock = MIRROR / ".mirror" / "lock.json"
    before = lock.read_bytes()
    lock.write_text("{")
    download = ("download-manifests", "--data-dir", MIRROR / ".mirror", "--version", NEW)
    refused = run(*download, "--base-url", server.url)
    assert (refused.exit_code, f"run `rm {lock}`" in refused.stderr) == (5, True)
    result = expect_output(sync(), 0)
    assert f"not a valid lock file ({lock})" in result.stderr
    recorded = json.loads(lock.read_bytes())["redists"]["cuda"]
    assert recorded.keys() == json.loads(before)["redists"]["cuda"].keys()
    assert published(MIRROR) == files
    assert run("mirror", "verify", MIRROR).exit_code == 0


def test_sync_leaves_no_file_after_a_folder_in_place_of_an_archive(
    sync: Run, server: FaultServer
) -> None:
    files = serve_releases(server, NEW)
    folder = MIRROR / path_of(files, "cuda_nvcc")
    sync()
    folder.unlink()
    folder.mkdir()
    result = sync()
    assert result.exit_code == 3
    assert f"move the folder of this name: `ls {folder}`" in result.stderr
    assert list(MIRROR.rglob("*.tmp")) == []
    folder.rmdir()
    expect_output(sync(), 0)
    assert published(MIRROR) == files


def test_sync_refuses_a_folder_with_other_files(sync: Run, server: FaultServer) -> None:
    serve_releases(server, NEW)
    MIRROR.mkdir()
    (MIRROR / "notes.txt").write_text("mine")
    result = sync()
    assert result.exit_code == 2
    assert "mirror is not a mirror: it has no mirror.json" in result.stderr
    assert "hint: select a new or empty folder" in result.stderr
    assert set(mirrored(MIRROR)) == {"notes.txt"}


def test_sync_skips_archives_without_a_hash(sync: Run, server: FaultServer) -> None:
    early = REPOSITORY / "tests/fixtures/manifests/early.json"
    server.add_manifests("cuda", {"11.0.3": early.read_bytes()})
    expect_error(sync(), 3, "the manifest states no SHA-256")


# -- prune


def test_prune_removes_what_no_selected_manifest_names(
    sync: Run, server: FaultServer, run: Run
) -> None:
    files = serve_releases(server)
    sync("--version", "all")
    (MIRROR / "compute/extra.txt").write_text("extra")
    before = mirrored(MIRROR)
    prefix = NEW.rpartition(".")[0]
    only = ("--redist", "cuda", "--version", prefix, "--platform", "linux-x86_64")
    planned = expect_output(run("mirror", "prune", MIRROR, *only, "--check", "--json"), 1)
    assert mirrored(MIRROR) == before
    result = expect_output(run("mirror", "prune", MIRROR, *only, "--json"), 0)
    assert report(result)["removed"] == report(planned)["removed"]
    assert report(result)["releases"] == [f"cuda {NEW}"]
    assert "compute/extra.txt" in report(result)["removed"]
    kept = {path: data for path, data in files.items() if NEW in path and "windows" not in path}
    assert published(MIRROR) == kept
    assert run("mirror", "verify", MIRROR).exit_code == 0
    assert not (MIRROR / FOLDER / "cuda_cudart/windows-x86_64").exists()
    expected = sum(len(data) for path, data in files.items() if path not in kept and data != SAME)
    assert report(result)["freed_bytes"] >= expected


def test_prune_without_a_selection_removes_only_extra_files(
    sync: Run, server: FaultServer, run: Run
) -> None:
    files = serve_releases(server)
    sync("--version", "all")
    (MIRROR / "extra.txt").write_text("extra")
    result = run("mirror", "prune", MIRROR)
    assert "1 file removed, 5 bytes; 10 kept" in result.stdout
    assert published(MIRROR) == files


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--version", "1.0.0"), "the mirror has no manifest 1.0.0"),
        (("--redist", "cudnn"), "the mirror has no manifest cudnn"),
        (("--max-version", "11.0"), "the mirror has no manifest of this selection"),
        (("--package", "cuda_nvc"), "did you mean cuda_nvcc"),
    ],
)
def test_prune_with_an_empty_selection_removes_nothing(
    sync: Run, server: FaultServer, run: Run, options: tuple[str, ...], message: str
) -> None:
    serve_releases(server, NEW)
    sync()
    before = mirrored(MIRROR)
    expect_error(run("mirror", "prune", MIRROR, *options), 2, message)
    assert mirrored(MIRROR) == before


def test_prune_with_a_broken_manifest_removes_nothing(
    sync: Run, server: FaultServer, run: Run
) -> None:
    serve_releases(server)
    sync("--version", "all")
    (MIRROR / f".mirror/manifests/cuda/redistrib_{OLD}.json").write_bytes(b"{")
    before = mirrored(MIRROR)
    expect_error(run("mirror", "prune", MIRROR), 3, f"the manifest cuda {OLD} cannot be read")
    assert mirrored(MIRROR) == before
    expect_error(sync("--version", "all"), 4, "was edited locally")
    assert sync("--version", "all", "--replace").exit_code == 0
    assert run("mirror", "verify", MIRROR).exit_code == 0


@pytest.mark.parametrize("action", ["verify", "prune"])
def test_action_on_a_folder_that_is_not_a_mirror_is_refused(run: Run, action: str) -> None:
    result = run("mirror", action, "nothing")
    assert result.exit_code == 2
    assert "nothing is not a mirror" in result.stderr
    assert "cudaredist mirror sync nothing" in result.stderr
    assert not Path("nothing").exists()


def test_variant_of_a_selection_without_variants_is_refused(sync: Run, server: FaultServer) -> None:
    serve_releases(server)
    result = expect_error(sync("--variant", "cuda12"), 2, "no selected archive has a variant")
    assert "--variant" not in result.stderr.partition("hint:")[2]


def test_variant_selects_the_newest_release_that_has_it(run: Run, server: FaultServer) -> None:
    variants = {"9.1.0": ("cuda11", "cuda12"), "9.2.0": ("cuda12",), "9.3.0": ("cuda12", "cuda13")}
    releases = []
    for label, names in variants.items():
        files: dict[str, dict[str, bytes | str]] = {
            f"linux-x86_64/{name}": {"include/a.h": f"{label} {name}".encode()} for name in names
        }
        releases.append(release(label, {"cudnn": files}, product="cudnn"))
    server.add_releases("cudnn", *releases)

    def mirrored_labels(*options: object) -> list[str]:
        source = ("--base-url", server.url, "--retries", 0, "--redist", "cudnn")
        folder = f"mirror{len(list(Path().iterdir()))}"
        expect_output(run("mirror", "sync", folder, *source, *options), 0)
        paths = Path(folder, "compute/cudnn/redist").glob("redistrib_*.json")
        return sorted(path.stem.removeprefix("redistrib_") for path in paths)

    assert mirrored_labels("--version", "9", "--variant", "cuda11") == ["9.1.0"]
    assert mirrored_labels("--variant", "cuda12") == ["9.3.0"]
    assert mirrored_labels("--variant", "cuda13", "--version", "all") == ["9.3.0"]
    source = ("--base-url", server.url, "--redist", "cudnn", "--variant", "cuda14")
    expect_error(run("mirror", "sync", "other", *source), 2, "no variant is called 'cuda14'")
