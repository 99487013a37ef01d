"""process-manifests as a user sees it: what is written, what is fetched, and what goes wrong."""

import gzip
import json
import lzma
import os
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from conftest import Run
from support import binaries
from support import server as faults
from support.releases import Files, Packages, packed, publish, put, release
from support.server import FaultServer
from typer.testing import Result

from cudaredist.archives.open_archive import open_archive
from cudaredist.pipeline import archives as archive_service
from cudaredist.pipeline import facts_cache
from cudaredist.store.cache import Cache

FOLDER = "/compute/cuda/redist/"
CUDART: Mapping[str, Files] = {
    "linux-x86_64": {
        "lib/libcudart.so.12.9.79": binaries.elf(
            soname="libcudart.so.12", needed=("libc.so.6",), glibc="2.17"
        ),
        "lib/libcudart.so.12": "libcudart.so.12.9.79",
        "lib/libcudart.so": "libcudart.so.12",
        "lib/libcudart_static.a": binaries.ar({"a.o": b"object"}),
        "include/cuda_runtime.h": b"#pragma once\n",
        "LICENSE": b"CUDA EULA\n",
    },
    "linux-sbsa": {"include/cuda_runtime.h": b"#pragma once\n", "LICENSE": b"CUDA EULA\n"},
    "windows-x86_64": {"bin/x64/cudart64_12.dll": binaries.pe(name="cudart64_12.dll")},
}
CCCL = {
    "linux-x86_64": {"include/cub/cub.cuh": b"// cub\n"},
    "linux-sbsa": {"include/cub/cub.cuh": b"// cub\n"},
}
PACKAGES: Packages = {"cuda_cudart": CUDART, "cuda_cccl": CCCL}
LINUX = f"{FOLDER}cuda_cudart/linux-x86_64/cuda_cudart-linux-x86_64-12.9.1.5-archive.tar.xz"
SBSA = f"{FOLDER}cuda_cudart/linux-sbsa/cuda_cudart-linux-sbsa-12.9.1.5-archive.tar.xz"
MANIFEST = f"{FOLDER}redistrib_12.9.1.json"
Start = Callable[..., Popen[str]]
FEATURES = Path("data/features/cuda/feature_12.9.1.json")


def part_of(server: FaultServer, tmp_path: Path) -> Path:
    """Return where the archive is put while it is being kept, in a folder that is there."""
    manifest = json.loads(server.files[MANIFEST])
    sha256: str = manifest["cuda_cudart"]["linux-x86_64"]["sha256"]
    part = tmp_path / "cache" / "archives" / sha256[:2] / f"{sha256}.tar.xz.part"
    part.parent.mkdir(parents=True)
    return part


@pytest.fixture
def cuda(server: FaultServer, run: Run) -> FaultServer:
    """A server with one release's archives, whose manifest is held."""
    publish(server, release("12.9.1", PACKAGES))
    return server


@pytest.fixture
def process(run: Run, server: FaultServer) -> Run:
    """Run process-manifests against the server."""
    return lambda *options: run(
        "process-manifests", "--base-url", server.url, "--retries", 1, *options
    )


def features(path: Path = FEATURES) -> Any:
    return json.loads(path.read_bytes())


def entry(package: str, platform: str, path: Path = FEATURES) -> Any:
    archives = features(path)["packages"][package]["archives"]
    return next(archive for archive in archives if archive["platform"] == platform)


def report(result: Result) -> Any:
    return json.loads(result.stdout)


def cached(tmp_path: Path, kind: str = "facts") -> list[Path]:
    """Return what the cache holds of a kind."""
    return [path for path in (tmp_path / "cache" / kind).rglob("*") if path.is_file()]


def archives_read(server: FaultServer) -> int:
    return server.count(".tar.xz") + server.count(".zip")


def withdraw(server: FaultServer, package: str) -> None:
    """Serve a package's archives no more."""
    for path in [path for path in server.files if package in path]:
        del server.files[path]


# -- what is written


def test_tables_that_passed_before_their_headers_came_are_read_again(
    server: FaultServer, run: Run, process: Run
) -> None:
    data = bytearray(binaries.elf(soname="libx.so.1", needed=("liby.so.2",), gap=4 << 20))
    start, size = 64, 56 * int.from_bytes(data[56:58], "little")
    headers = bytes(data[start : start + size])
    # As tools do that lay a library out anew: its program headers stand behind everything.
    data[32:40] = len(data).to_bytes(8, "little")
    files: Files = {"lib/libx.so.1": bytes(data) + headers}
    publish(server, release("12.9.1", {"libx": {"linux-x86_64": files}}))
    assert process("--jobs", 1).exit_code == 0
    (library,) = entry("libx", "linux-x86_64")["libraries"]
    assert (library["soname"], library["needed"]) == ("libx.so.1", ["liby.so.2"])
    assert "unread" not in library
    assert archives_read(server) == 2


def test_writes_what_every_archive_provides(cuda: FaultServer, process: Run) -> None:
    result = process()
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "cuda  12.9.1  written  5 of 5 archives examined\n"
        f"archives: 5 examined; {sum(len(cuda.files[path]) for path in cuda.requests):,} bytes "
        "read\n"
    )
    found = entry("cuda_cudart", "linux-x86_64")
    assert found["status"] == "examined"
    assert found["machine"] == "x86_64"
    assert {name: size["files"] for name, size in found["outputs"].items()} == {
        "include": 1,
        "lib": 1,
        "out": 1,
        "static": 1,
    }
    assert found["libraries"] == [
        {
            "path": "lib/libcudart.so.12.9.79",
            "output": "lib",
            "soname": "libcudart.so.12",
            "links": ["lib/libcudart.so", "lib/libcudart.so.12"],
            "needed": ["libc.so.6"],
            "runpath": [],
            "stub": False,
            "glibc": "2.17",
            "libstdcxx": None,
        }
    ]
    assert entry("cuda_cudart", "windows-x86_64")["libraries"][0]["soname"] == "cudart64_12.dll"


def test_feature_files_are_valid_and_canonical(cuda: FaultServer, process: Run, run: Run) -> None:
    process()
    assert run("validate", FEATURES).exit_code == 0


def test_check_finds_nothing_missing_afterwards(cuda: FaultServer, process: Run, run: Run) -> None:
    process()
    kinds = {f["kind"] for f in report(run("check", "--offline", "--json"))["findings"]}
    assert "no-features" not in kinds
    assert "stale-features" not in kinds


def test_a_second_run_asks_for_nothing_and_unpacks_nothing(
    cuda: FaultServer, process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    process()
    before, asked = FEATURES.stat(), cuda.requests.copy()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("an archive was opened")

    monkeypatch.setattr(archive_service, "open_archive", refuse)
    result = process()
    assert "unchanged  5 of 5" in result.stdout
    assert "archives: 5 known; 0 bytes read" in result.stdout
    assert cuda.requests == asked
    assert FEATURES.stat().st_mtime_ns == before.st_mtime_ns


def test_without_a_cache_the_feature_file_itself_is_what_is_known(
    cuda: FaultServer, process: Run, tmp_path: Path
) -> None:
    process()
    asked = cuda.requests.copy()
    before = FEATURES.read_bytes()
    result = process("--cache-dir", tmp_path / "other")
    assert "unchanged" in result.stdout
    assert cuda.requests == asked
    assert FEATURES.read_bytes() == before


def test_a_cache_is_filled_though_the_feature_file_knows_all(
    cuda: FaultServer, process: Run, run: Run
) -> None:
    process()
    before = FEATURES.read_bytes()
    other = ("--cache-dir", "other")

    def is_found() -> bool:
        return run("which", "cub/cub.cuh", *other).exit_code == 0

    fill = ("--fill-cache", "--package", "cuda_cccl", *other)
    assert process(*fill, "--check").exit_code == 1
    assert not is_found()
    result = process(*fill)
    assert "archives: 2 examined, 3 known" in result.stdout
    assert archives_read(cuda) == 7
    assert is_found()
    assert process(*fill).exit_code == 0
    assert archives_read(cuda) == 7
    assert FEATURES.read_bytes() == before


def test_a_cache_that_cannot_be_filled_costs_no_features(cuda: FaultServer, process: Run) -> None:
    process()
    before = FEATURES.read_bytes()
    withdraw(cuda, "cuda_cccl")
    assert process("--fill-cache", "--cache-dir", "other").exit_code == 3
    assert FEATURES.read_bytes() == before


def test_a_feature_file_by_other_rules_is_made_anew_from_facts(
    cuda: FaultServer, process: Run, tmp_path: Path
) -> None:
    process()
    good, asked = FEATURES.read_bytes(), cuda.requests.copy()
    document = json.loads(good)
    document["rules"] += 1
    document["packages"] = {}
    FEATURES.write_text(json.dumps(document))
    shutil.rmtree(tmp_path / "cache" / "features")
    assert process().exit_code == 0
    assert FEATURES.read_bytes() == good
    assert cuda.requests == asked


@pytest.mark.parametrize("junk", [b"", b"{", b"[1]", b'{"machine": null}'])
def test_broken_cache_entries_count_as_missing(
    cuda: FaultServer, process: Run, tmp_path: Path, junk: bytes
) -> None:
    process()
    good = FEATURES.read_bytes()
    FEATURES.unlink()
    for path in (tmp_path / "cache").rglob("*"):
        if path.is_file():
            path.write_bytes(junk)
    assert process().exit_code == 0
    assert FEATURES.read_bytes() == good


@pytest.mark.parametrize("content", [b'{"machine": 5}', b'{"notes": null}'])
def test_edited_cache_entries_count_as_missing(
    cuda: FaultServer, process: Run, tmp_path: Path, content: bytes
) -> None:
    process()
    good = FEATURES.read_bytes()
    FEATURES.unlink()
    for path in cached(tmp_path, "features"):
        path.write_bytes(path.read_bytes().partition(b"\n")[0] + b"\n" + content)
    asked = cuda.requests.copy()
    assert process().exit_code == 0
    assert FEATURES.read_bytes() == good
    assert cuda.requests == asked


def test_what_killed_runs_left_is_removed(cuda: FaultServer, process: Run, tmp_path: Path) -> None:
    left = [
        Path("data/features/cuda/.feature_12.9.1.json.0123.tmp"),
        tmp_path / "cache/facts/1/ab/.x.0123.tmp",
        tmp_path / "cache/archives/ab/x.tar.xz.part",
    ]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
        os.utime(path, (0, 0))
    assert process().exit_code == 0
    assert not any(path.exists() for path in left)


def test_one_archive_under_two_paths_is_looked_for_under_both(
    server: FaultServer, process: Run
) -> None:
    files = release("12.9.0", {"cuda_cccl": {"linux-x86_64": CCCL["linux-x86_64"]}})
    document = json.loads(files["redistrib_12.9.0.json"])
    document["release_label"] = "12.9.1"
    about = document["cuda_cccl"]["linux-x86_64"]
    old, about["relative_path"] = about["relative_path"], "moved/cccl.tar.xz"
    about["size"] = "1"
    files["redistrib_12.9.1.json"] = json.dumps(document).encode()
    files["moved/cccl.tar.xz"] = files.pop(old)
    publish(server, files)
    assert process().exit_code == 0


def test_paths_that_lead_to_the_pool(server: FaultServer, run: Run) -> None:
    files = release("12.9.1", {"libx": {"linux-x86_64": {"LICENSE": b"x"}}})
    document = json.loads(files["redistrib_12.9.1.json"])
    about = document["libx"]["linux-x86_64"]
    old, about["relative_path"] = about["relative_path"], "../../../pool/x/libx.tar.xz"
    server.files["/pool/x/libx.tar.xz"] = files.pop(old)
    put(Path("m"), {"redistrib_12.9.1.json": json.dumps(document).encode()})
    put(Path("data/manifests/cuda"), {"redistrib_12.9.1.json": json.dumps(document).encode()})
    assert run("process-manifests", "--base-url", server.url).exit_code == 0
    result = run("process-manifests", f"{server.url}/compute/cuda/redist/", "m")
    assert result.exit_code == 0
    Path("m/feature_12.9.1.json").unlink()
    result = run("process-manifests", "--cache-dir", "c", f"{server.url}/elsewhere", "m")
    assert result.exit_code == 3
    assert "leads out of the source" in result.stderr


def test_releases_that_share_an_archive_read_it_once(server: FaultServer, process: Run) -> None:
    one = release("12.9.0", {"cuda_cccl": {"linux-x86_64": CCCL["linux-x86_64"]}})
    document = json.loads(one["redistrib_12.9.0.json"])
    document["release_label"] = "12.9.1"
    two = one | {"redistrib_12.9.1.json": json.dumps(document).encode()}
    publish(server, two)
    assert process().exit_code == 0
    assert archives_read(server) == 1
    assert FEATURES.exists()
    assert FEATURES.with_name("feature_12.9.0.json").exists()


def test_nested_archives_have_their_variant(server: FaultServer, process: Run) -> None:
    files = {"include/cudnn.h": b"//\n"}
    packages = {"cudnn": {"linux-x86_64/cuda11": files, "linux-x86_64/cuda12": files}}
    publish(server, release("9.1.0", packages, product="cudnn"), "cudnn")
    assert process().exit_code == 0
    archives = features(Path("data/features/cudnn/feature_9.1.0.json"))["packages"]["cudnn"]
    assert [archive["variant"] for archive in archives["archives"]] == ["cuda11", "cuda12"]


def test_a_machine_that_does_not_fit_the_platform_is_noted(
    server: FaultServer, process: Run
) -> None:
    files = {"lib/libx.so": binaries.elf(machine="aarch64", soname="libx.so")}
    publish(server, release("12.9.1", {"libx": {"linux-x86_64": files}}))
    process()
    note = "binaries for aarch64, which linux-x86_64 archives do not hold"
    assert entry("libx", "linux-x86_64")["notes"] == [note]
    process()
    assert entry("libx", "linux-x86_64")["notes"] == [note]


# -- what is chosen


@pytest.mark.parametrize(
    ("options", "examined"),
    [
        (["--platform", "linux-sbsa"], 2),
        (["--package", "cuda_cccl"], 2),
        (["--package", "cuda_cccl", "--platform", "linux-sbsa"], 1),
    ],
)
def test_a_filtered_run_adds_and_leaves_the_rest(
    cuda: FaultServer, process: Run, options: list[str], examined: int
) -> None:
    result = process(*options, "--json")
    assert result.exit_code == 0
    assert report(result)["manifests"][0]["examined"] == examined
    assert archives_read(cuda) == examined
    left_out = entry("cuda_cudart", "linux-x86_64")
    assert left_out["status"] == "not-examined"
    assert left_out["reason"] == f"excluded by {options[0]}"
    assert process().exit_code == 0
    full = FEATURES.read_bytes()
    assert archives_read(cuda) == 5
    process(*options)
    assert FEATURES.read_bytes() == full


def test_what_the_cache_knows_is_taken_even_if_it_was_not_asked_for(
    cuda: FaultServer, process: Run
) -> None:
    process()
    full = FEATURES.read_bytes()
    for broken in (full[:-3], b"", full.replace(b'"rules": 1', b'"rules": 0')):
        FEATURES.write_bytes(broken)
        assert process("--package", "cuda_cccl").exit_code == 0
        assert FEATURES.read_bytes() == full


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ((b'"packages"', b'"package"'), 5, "not a valid feature file"),
        ((b'"rules": 1', b'"rules": 99'), 5, "made by newer rules"),
        ((b'"rules": 1', b'"rules": 0'), 5, "rules"),
    ],
)
def test_a_filtered_run_does_not_throw_away_what_it_cannot_read(
    cuda: FaultServer, process: Run, change: tuple[bytes, bytes], code: int, words: str
) -> None:
    process()
    changed = FEATURES.read_bytes().replace(*change)
    FEATURES.write_bytes(changed)
    result = process("--package", "cuda_cccl", "--cache-dir", "other")
    assert result.exit_code == code
    assert words in result.stderr
    assert FEATURES.read_bytes() == changed
    assert process("--cache-dir", "third").exit_code == 0


def test_a_file_by_older_rules_is_processed_whole(
    cuda: FaultServer, process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    process()
    old = FEATURES.read_bytes()
    for module in (
        "cudaredist.pipeline.features.feature_file",
        "cudaredist.pipeline.file_findings",
    ):
        monkeypatch.setattr(f"{module}.RULES", 2)
    monkeypatch.setattr("cudaredist.pipeline.facts_cache.FEATURES_KIND", "features/1.2")
    monkeypatch.setattr("cudaredist.pipeline.features.process.FILES_KIND", "files/1.2")
    result = process("--package", "cuda_cccl", "--cache-dir", "other")
    assert result.exit_code == 3
    assert "made by older rules" in result.stderr
    assert FEATURES.read_bytes() == old
    asked = cuda.requests.copy()
    assert process().exit_code == 0
    assert cuda.requests == asked
    assert features()["rules"] == 2


def test_a_manifest_that_a_filter_leaves_out_gets_no_file(
    cuda: FaultServer, process: Run, run: Run
) -> None:
    publish(cuda, release("9.1.0", {"cudnn": {"linux-x86_64": {"LICENSE": b"x"}}}), "cudnn")
    assert process("--package", "cuda_cccl").exit_code == 0
    assert not Path("data/features/cudnn").exists()
    kinds = [f["kind"] for f in report(run("check", "--offline", "--json"))["findings"]]
    assert kinds.count("no-features") == 1


def test_reports_tell_excluded_archives_from_those_of_the_same_hash(
    server: FaultServer, process: Run
) -> None:
    files: Files = {"include/x.h": b"//"}
    one = release("12.9.0", {"cuda_cccl": {"linux-x86_64": files}})
    document = json.loads(one["redistrib_12.9.0.json"])
    document["release_label"] = "12.9.1"
    document["cccl"] = document.pop("cuda_cccl")
    publish(server, one | {"redistrib_12.9.1.json": json.dumps(document).encode()})
    result = report(process("--package", "cccl", "--json"))
    assert [(a["package"], a["status"]) for a in result["archives"]] == [
        ("cuda_cccl", "skipped"),
        ("cccl", "examined"),
    ]
    assert result["fetched_bytes"] == sum(len(d) for p, d in one.items() if p.endswith(".xz"))


def test_the_feature_file_is_what_counts_as_examined(cuda: FaultServer, process: Run) -> None:
    process()
    assert "unchanged  5 of 5" in process("--package", "cuda_cccl").stdout


def test_variants_can_be_chosen(server: FaultServer, process: Run) -> None:
    files: Files = {"include/cudnn.h": b"//\n"}
    packages = {
        "cudnn": {
            "linux-x86_64/cuda11": files,
            "linux-x86_64/cuda12": {**files, "LICENSE": b"EULA"},
        }
    }
    publish(server, release("9.1.0", packages, product="cudnn"), "cudnn")
    assert process("--variant", "cuda12").exit_code == 0
    assert archives_read(server) == 1


@pytest.mark.parametrize(
    ("option", "name", "hint"),
    [
        ("--package", "cuda_cudrt", "cuda_cudart"),
        ("--platform", "linux-x86-64", "linux-x86_64"),
        ("--variant", "cuda12", "known"),
    ],
)
def test_unknown_names_are_usage_errors_with_a_suggestion(
    cuda: FaultServer, process: Run, option: str, name: str, hint: str
) -> None:
    result = process(option, name)
    assert result.exit_code == 2
    assert hint in result.stderr
    assert not FEATURES.exists()


def test_max_download_takes_the_smallest_and_is_incomplete(cuda: FaultServer, process: Run) -> None:
    sizes = sorted(len(data) for path, data in cuda.files.items() if not path.endswith(".json"))
    result = process("--max-download", sum(sizes[:2]), "--json")
    assert result.exit_code == 3
    assert archives_read(cuda) == 2
    reasons = {a["reason"] for a in report(result)["archives"]}
    assert reasons == {None, "beyond --max-download"}
    printed = process("--max-download", 1).stdout
    assert printed.splitlines()[-1].startswith("left out: ")
    assert printed.endswith(" beyond --max-download\n")


@pytest.mark.parametrize("text", ["", "5 apples", "-1", "1e9", "GB"])
def test_sizes_that_are_none_are_usage_errors(cuda: FaultServer, process: Run, text: str) -> None:
    assert process("--max-download", text).exit_code == 2


def test_the_size_is_said_before(cuda: FaultServer, process: Run) -> None:
    total = sum(len(data) for path, data in cuda.files.items() if not path.endswith(".json"))
    assert process().stderr == f"5 archives to read, {total / 1000:.1f} kB; 0 bytes known already\n"
    assert process().stderr == (
        f"0 archives to read, 0 bytes; {total / 1000:.1f} kB known already\n"
    )


@pytest.mark.parametrize(
    "options",
    [
        ["--check", "--dry-run"],
        ["--legacy"],
        ["https://localhost/x"],
        ["https://localhost/x", "dir", "--redist", "cuda"],
        ["--version", "1.2.3"],
    ],
)
def test_calls_that_make_no_sense(cuda: FaultServer, run: Run, options: list[str]) -> None:
    assert run("process-manifests", *options).exit_code == 2


def test_nothing_held_is_said(run: Run) -> None:
    result = run("process-manifests")
    assert result.exit_code == 2
    assert "no such folder" in result.stderr
    assert not Path("data").exists()
    Path("data/manifests").mkdir(parents=True)
    result = run("process-manifests")
    assert result.exit_code == 2
    assert "cudaredist download-manifests" in result.stderr


@pytest.mark.parametrize("options", [["--data-dir", "typo"], ["https://localhost/x", "typo"]])
def test_folders_that_are_not_there_are_not_made(run: Run, options: list[str]) -> None:
    result = run("process-manifests", *options)
    assert result.exit_code == 2
    assert "typo: no such folder" in result.stderr
    assert not Path("typo").exists()


def test_a_broken_manifest_is_a_failure_and_the_others_go_on(
    cuda: FaultServer, process: Run
) -> None:
    put(Path("data/manifests/cuda"), {"redistrib_12.9.0.json": b"{broken"})
    for options in ((), ("--package", "cuda_cccl"), ("--peek",)):
        assert process(*options).exit_code == 5
    assert FEATURES.exists()


def test_strict_refuses_manifests_with_warnings(cuda: FaultServer, process: Run) -> None:
    path = Path("data/manifests/cuda/redistrib_12.9.1.json")
    document = json.loads(path.read_bytes())
    document["cuda_cccl"]["odd"] = "unknown"
    path.write_text(json.dumps(document))
    result = process("--check")
    assert "warning: cuda 12.9.1: cuda_cccl.odd" in result.stderr
    assert process("--strict").exit_code == 5


# -- without writing


def test_check_and_dry_run_read_no_archive(cuda: FaultServer, process: Run) -> None:
    for options, code in ((["--check"], 1), (["--dry-run"], 0)):
        result = process(*options, "--json")
        assert result.exit_code == code
        assert report(result)["manifests"][0]["status"] == "would-write"
        assert {a["status"] for a in report(result)["archives"]} == {"would-examine"}
    assert archives_read(cuda) == 0
    assert not FEATURES.exists()
    process()
    assert process("--check").exit_code == 0
    FEATURES.write_bytes(FEATURES.read_bytes() + b"\n")
    assert process("--check").exit_code == 1


# -- peeking


def test_peek_lists_outputs_of_zips_by_one_request(cuda: FaultServer, process: Run) -> None:
    result = process("--peek")
    assert result.exit_code == 0, result.output
    zipped = next(path for path in cuda.files if path.endswith(".zip"))
    size = f"{len(cuda.files[zipped]):,}"
    assert result.stdout == (
        f"cuda  12.9.1  cuda_cudart  windows-x86_64  bin out  {size} of {size} bytes\n"
        "unverified; 4 archives are no zip and were left out\n"
    )
    assert cuda.headers == [(zipped, cuda.headers[0][1])]
    assert cuda.headers[0][1]["Range"] == "bytes=-65536"
    assert not FEATURES.exists()


def test_peek_fetches_a_larger_directory_in_a_second_request(
    server: FaultServer, process: Run
) -> None:
    files: Files = {f"include/{n:04}.h": bytes(200) for n in range(1500)}
    publish(server, release("12.9.1", {"libx": {"windows-x86_64": files}}))
    result = process("--peek", "--json")
    assert report(result)["archives"][0]["outputs"]["include"]["files"] == 1500
    assert report(result)["archives"][0]["verified"] is False
    assert len(server.headers) == 2
    assert "If-Range" in server.headers[1][1]


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        pytest.param(faults.status(404), 3, id="404"),
        pytest.param(faults.body(b"whole"), 3, id="no ranges"),
        pytest.param(faults.breaking_after(10), 3, id="breaks"),
        pytest.param(
            lambda handler, _: handler.answer(206, b"x" * 9, Content_Range="bytes 0-8/9"),
            5,
            id="no zip",
        ),
        pytest.param(
            lambda handler, _: handler.answer(206, b"x", Content_Range="nonsense"), 3, id="no range"
        ),
    ],
)
def test_peek_says_what_it_cannot_know(
    cuda: FaultServer, process: Run, behaviour: Any, code: int
) -> None:
    cuda.misbehave(next(path for path in cuda.files if path.endswith(".zip")), behaviour)
    result = process("--peek", "--retries", 0)
    assert result.exit_code == code, result.output
    assert "not known" in result.stdout


def test_peek_works_on_folders(cuda: FaultServer, run: Run, tmp_path: Path) -> None:
    put(tmp_path / "mirror", {path.lstrip("/"): data for path, data in cuda.files.items()})
    result = run("process-manifests", "--peek", "--base-url", tmp_path / "mirror", "--offline")
    assert "bin out" in result.stdout


# -- as in the nixpkgs manual


def test_the_positional_form_writes_beside_the_manifests(cuda: FaultServer, run: Run) -> None:
    result = run(
        "process-manifests",
        *("--log-level", "DEBUG", "--version", "12.9.1", "--no-parallel", "--no-cleanup"),
        f"{cuda.url}/compute/cuda/redist",
        "data/manifests/cuda",
    )
    assert result.exit_code == 0, result.output
    assert entry("cuda_cccl", "linux-sbsa", Path("data/manifests/cuda/feature_12.9.1.json"))


def test_legacy_has_six_booleans(cuda: FaultServer, run: Run) -> None:
    url = f"{cuda.url}/compute/cuda/redist"
    assert run("process-manifests", "--legacy", url, "data/manifests/cuda").exit_code == 0
    result = run("process-manifests", "--legacy", url, "data/manifests/cuda")
    assert result.exit_code == 0
    assert "unchanged" in result.stdout
    written = Path("data/manifests/cuda/feature_12.9.1.json").read_text()
    assert written.startswith(
        '{\n  "cuda_cccl": {\n    "linux-sbsa": {\n      "outputs": {\n'
        '        "bin": false,\n        "dev": true,\n        "doc": false,\n'
        '        "lib": false,\n        "sample": false,\n        "static": false\n      }\n'
    )
    assert written.endswith("}\n")
    outputs = json.loads(written)["cuda_cudart"]["linux-x86_64"]["outputs"]
    assert {name for name, is_there in outputs.items() if is_there} == {"dev", "lib", "static"}


def test_legacy_files_keep_what_a_run_says_nothing_of(cuda: FaultServer, run: Run) -> None:
    url = f"{cuda.url}/compute/cuda/redist"
    call = ("process-manifests", "--legacy", "--retries", 0, url, "data/manifests/cuda")
    path = Path("data/manifests/cuda/feature_12.9.1.json")
    assert run(*call).exit_code == 0
    whole = path.read_bytes()
    assert run(*call, "--package", "cuda_cccl", "--cache-dir", "other").exit_code == 0
    assert path.read_bytes() == whole
    for gone in [path for path in cuda.files if "cuda_cudart" in path]:
        del cuda.files[gone]
    assert run(*call, "--cache-dir", "third").exit_code == 3
    assert path.read_bytes() == whole
    for broken in (b"{", b"[]", b'{"x": 1}', b'{"schema_version": 1}'):
        path.write_bytes(broken)
        assert run(*call).exit_code == 0
        assert path.read_bytes() == whole


def test_legacy_nests_variants_as_the_manifest_does(server: FaultServer, run: Run) -> None:
    files: Files = {"include/cudnn.h": b"//\n"}
    packages = {"cudnn": {"linux-x86_64/cuda11": files, "linux-x86_64/cuda12": files}}
    publish(server, release("9.1.0", packages, product="cudnn"), "cudnn")
    url = f"{server.url}/compute/cudnn/redist"
    assert run("process-manifests", "--legacy", url, "data/manifests/cudnn").exit_code == 0
    written = json.loads(Path("data/manifests/cudnn/feature_9.1.0.json").read_bytes())
    assert list(written["cudnn"]["linux-x86_64"]) == ["cuda11", "cuda12"]


# -- archives that are kept


def test_two_runs_at_once_keep_one_archive_and_both_finish(
    cuda: FaultServer, start: Start, tmp_path: Path
) -> None:
    only = ("--package", "cuda_cudart", "--platform", "linux-x86_64", "--keep-archives")
    for name in ("one", "two"):
        put(tmp_path / name / "manifests/cuda", {"redistrib_12.9.1.json": cuda.files[MANIFEST]})
    cuda.delay = 1.0
    runs = [
        start("process-manifests", "--base-url", cuda.url, "--data-dir", name, *only)
        for name in ("one", "two")
    ]
    for process in runs:
        _, stderr = process.communicate()
        assert process.returncode == 0, stderr
    assert cuda.count(".tar.xz") == 1
    kept = next((tmp_path / "cache/archives").rglob("*.tar.xz"))
    assert kept.read_bytes() == cuda.files[LINUX]


def test_a_whole_part_is_not_fetched_again(cuda: FaultServer, process: Run, tmp_path: Path) -> None:
    only = ("--package", "cuda_cudart", "--platform", "linux-x86_64", "--keep-archives")
    part = part_of(cuda, tmp_path)
    part.write_bytes(cuda.files[LINUX])
    assert process(*only).exit_code == 0
    assert archives_read(cuda) == 0
    assert part.with_suffix("").exists()


def test_a_kept_archive_costs_no_download(cuda: FaultServer, process: Run, tmp_path: Path) -> None:
    process("--keep-archives")
    shutil.rmtree(tmp_path / "cache/facts")
    shutil.rmtree(tmp_path / "cache/features")
    FEATURES.unlink()
    result = process("--max-download", "0", "--json")
    assert result.exit_code == 0
    assert report(result)["fetched_bytes"] == 0


def test_a_full_cache_disk_fails_the_archive_and_says_so(
    cuda: FaultServer, process: Run, tmp_path: Path
) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/archives").write_bytes(b"a file where a folder should be")
    result = process("--keep-archives")
    assert result.exit_code == 3
    assert "--cache-dir" in result.stderr


def test_kept_archives_are_read_again_without_network(
    cuda: FaultServer, process: Run, tmp_path: Path
) -> None:
    process("--keep-archives")
    kept = sorted((tmp_path / "cache" / "archives").rglob("*.*"))
    assert len(kept) == 5
    good, asked = FEATURES.read_bytes(), cuda.requests.copy()
    shutil.rmtree(tmp_path / "cache" / "facts")
    shutil.rmtree(tmp_path / "cache" / "features")
    FEATURES.unlink()
    assert process().exit_code == 0
    assert cuda.requests == asked
    assert FEATURES.read_bytes() == good


def test_a_kept_archive_that_is_broken_is_fetched_again(
    cuda: FaultServer, process: Run, tmp_path: Path
) -> None:
    process("--keep-archives", "--package", "cuda_cccl", "--platform", "linux-sbsa")
    kept = next((tmp_path / "cache" / "archives").rglob("*.tar.xz"))
    good = kept.read_bytes()
    kept.write_bytes(b"broken")
    shutil.rmtree(tmp_path / "cache" / "facts")
    shutil.rmtree(tmp_path / "cache" / "features")
    FEATURES.unlink()
    assert process("--package", "cuda_cccl", "--platform", "linux-sbsa").exit_code == 0
    assert kept.read_bytes() == good


def test_a_partly_kept_archive_is_gone_on_with(
    cuda: FaultServer, process: Run, tmp_path: Path
) -> None:
    data = cuda.files[LINUX]
    part = part_of(cuda, tmp_path)
    part.write_bytes(data[:200])
    only = ("--package", "cuda_cudart", "--platform", "linux-x86_64", "--keep-archives")
    assert process(*only).exit_code == 0
    assert cuda.headers[-1][1]["Range"] == "bytes=200-"
    assert part.with_suffix("").read_bytes() == data
    assert not part.exists()


@pytest.mark.parametrize("left", [b"x" * 200, b"x" * 100_000])
def test_a_wrong_part_is_begun_again(
    cuda: FaultServer, process: Run, tmp_path: Path, left: bytes
) -> None:
    part = part_of(cuda, tmp_path)
    part.write_bytes(left)
    only = ("--package", "cuda_cudart", "--platform", "linux-x86_64", "--keep-archives")
    assert process(*only).exit_code == 0
    assert part.with_suffix("").read_bytes() == cuda.files[LINUX]


# -- what goes wrong


def test_half_of_the_archives_missing_upstream(cuda: FaultServer, process: Run) -> None:
    good = process("--json")
    assert good.exit_code == 0
    whole = FEATURES.read_bytes()
    shutil.rmtree("data/features")
    gone = [path for path in cuda.files if "cuda_cudart" in path]
    for path in gone:
        del cuda.files[path]
    result = process("--cache-dir", "other")
    assert result.exit_code == 3
    assert "2 of 5 archives examined  3 failed" in result.stdout
    assert result.stderr.count("404 Not Found") == 3
    lost = entry("cuda_cudart", "linux-x86_64")
    assert (lost["status"], lost["reason"]) == ("not-examined", "failed: not-found")
    assert process().exit_code == 0
    assert FEATURES.read_bytes() == whole


WRONG = packed("other.tar.xz", {"LICENSE": b"other"})


@pytest.mark.parametrize(
    ("data", "code", "kind"),
    [
        pytest.param(lambda good: bytes(len(good)), 4, "archive-mismatch", id="wrong bytes"),
        pytest.param(lambda good: good + b"x", 4, "archive-mismatch", id="too long"),
        pytest.param(lambda good: good[:-1], 4, "archive-mismatch", id="too short"),
        pytest.param(
            lambda good: WRONG + bytes(len(good) - len(WRONG)),
            4,
            "archive-mismatch",
            id="another archive",
        ),
    ],
)
def test_bytes_that_are_not_the_stated_ones_are_not_believed(
    cuda: FaultServer, process: Run, tmp_path: Path, data: Any, code: int, kind: str
) -> None:
    cuda.files[LINUX] = data(cuda.files[LINUX])
    result = process("--json")
    assert result.exit_code == code
    failed = [a for a in report(result)["archives"] if a["status"] == "failed"]
    assert [a["error"]["kind"] for a in failed] == [kind]
    assert entry("cuda_cudart", "linux-x86_64")["status"] == "not-examined"
    assert entry("cuda_cudart", "linux-sbsa")["status"] == "examined"
    assert len(cached(tmp_path)) == 4


def test_an_archive_that_is_as_stated_and_no_archive_is_not_understood(
    server: FaultServer, process: Run
) -> None:
    files = release("12.9.1", PACKAGES)
    path = LINUX.removeprefix(FOLDER)
    document = json.loads(files["redistrib_12.9.1.json"])
    about = document["cuda_cudart"]["linux-x86_64"]
    about["size"] = "5"
    about["sha256"] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    files |= {path: b"hello", "redistrib_12.9.1.json": json.dumps(document).encode()}
    publish(server, files)
    result = process()
    assert result.exit_code == 5
    assert entry("cuda_cudart", "linux-x86_64")["reason"] == "failed: invalid-archive"
    assert entry("cuda_cudart", "linux-sbsa")["status"] == "examined"


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(faults.reset_in_the_middle, id="reset"),
        pytest.param(faults.truncated, id="truncated"),
        pytest.param(faults.status(503), id="503"),
        pytest.param(faults.status(429, Retry_After="0"), id="429"),
        pytest.param(faults.breaking_after(100), id="breaks once"),
        pytest.param(faults.breaking_after(100, resumable=False), id="breaks, no ranges"),
        pytest.param(faults.stalling_after(100), id="stalls"),
        pytest.param(faults.silent, id="silent"),
        pytest.param(faults.header_byte_by_byte, id="header byte by byte"),
        pytest.param(faults.chunk_extension_for_ever, id="chunk extension for ever"),
        pytest.param(faults.never_ending_of_right_length, id="byte by byte"),
    ],
)
def test_failures_that_pass(cuda: FaultServer, process: Run, behaviour: Any) -> None:
    cuda.misbehave(LINUX, behaviour, times=1)
    # Under a short limit good answers may come too late, but not twenty times in a row.
    result = process("--timeout", 0.5, "--retries", 20)
    assert result.exit_code == 0, result.output
    assert entry("cuda_cudart", "linux-x86_64")["status"] == "examined"


BIG = f"{FOLDER}libx/linux-x86_64/libx-linux-x86_64-12.9.1.5-archive.tar.xz"


@pytest.fixture
def big(server: FaultServer, run: Run) -> FaultServer:
    """A server with one archive of some 400 kB."""
    files: Files = {"lib/noise": random.Random(1).randbytes(400_000)}
    publish(server, release("12.9.1", {"libx": {"linux-x86_64": files}}))
    return server


def test_a_download_that_breaks_again_and_again_is_gone_on_with(
    big: FaultServer, process: Run
) -> None:
    big.misbehave(BIG, faults.breaking_after(70_000))
    size = len(big.files[BIG])
    assert process("--retries", 1).exit_code == 0
    asked = [headers.get("Range") for path, headers in big.headers if path == BIG]
    assert asked == [None, *(f"bytes={start}-" for start in range(70_000, size, 70_000))]


def test_a_download_that_brings_next_to_nothing_is_given_up(big: FaultServer, process: Run) -> None:
    big.misbehave(BIG, faults.breaking_after(1000))
    assert process("--retries", 2).exit_code == 3
    assert big.count(".tar.xz") == 3


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(faults.another_part, id="another part"),
        pytest.param(faults.status(416), id="416"),
        pytest.param(faults.body(b"whole"), id="as a whole"),
    ],
)
def test_an_answer_that_does_not_continue_is_begun_again(
    big: FaultServer, process: Run, again: Any
) -> None:
    answers = iter([faults.breaking_after(70_000), again])

    def behave(handler: faults.Handler, data: bytes) -> None:
        next(answers)(handler, data)

    big.misbehave(BIG, behave, times=2)
    assert process("--retries", 2).exit_code == 0


def test_without_a_validator_a_broken_download_is_begun_again(
    big: FaultServer, process: Run
) -> None:
    good = big.files[BIG]

    def wrong_then_right(handler: faults.Handler, data: bytes) -> None:
        big.files[BIG] = good
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(good)))
        handler.end_headers()
        handler.wfile.write(bytes(100_000))
        handler.close_connection = True

    big.misbehave(BIG, wrong_then_right, times=1)
    assert process("--retries", 2).exit_code == 0
    assert [headers.get("Range") for _, headers in big.headers] == [None, None]


def test_a_failure_keeps_what_an_earlier_run_examined(cuda: FaultServer, process: Run) -> None:
    process()
    good = FEATURES.read_bytes()
    withdraw(cuda, "cuda_cudart")
    document = json.loads(good)
    document["packages"]["cuda_cccl"]["archives"][0] |= {"notes": ["edited"]}
    FEATURES.write_text(json.dumps(document))
    result = process("--cache-dir", "other", "--retries", 0)
    assert result.exit_code == 0
    assert archives_read(cuda) == 5


def test_the_last_archives_get_threads_to_spare(
    cuda: FaultServer, process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def opened(*args: Any, jobs: int, **more: Any) -> Any:
        threads.append(jobs)
        return open_archive(*args, jobs=jobs, **more)

    monkeypatch.setattr(archive_service, "open_archive", opened)
    process("--jobs", 4, "--package", "cuda_cccl", "--platform", "linux-sbsa")
    assert threads == [4]


def test_a_file_that_changes_while_it_is_resumed_is_begun_again(
    cuda: FaultServer, process: Run
) -> None:
    good = cuda.files[LINUX]

    def change(handler: faults.Handler, data: bytes) -> None:
        cuda.files[LINUX] = bytes(len(good)) if data == good else good
        faults.breaking_after(100)(handler, data)

    cuda.misbehave(LINUX, change, times=2)
    assert process("--retries", 3).exit_code == 0
    assert entry("cuda_cudart", "linux-x86_64")["status"] == "examined"


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        pytest.param(faults.status(404), 3, id="404"),
        pytest.param(faults.status(403), 3, id="403"),
        pytest.param(faults.status(500), 3, id="500"),
        pytest.param(faults.truncated, 3, id="always truncated"),
        pytest.param(faults.truncated_with_matching_length, 4, id="truncated, length says so"),
        pytest.param(faults.gzipped, 3, id="encoded"),
        pytest.param(faults.never_ending, 4, id="a megabyte promised"),
        pytest.param(faults.two_gigabytes(with_length=False), 4, id="2 GB without a length"),
        pytest.param(faults.redirect("http://nonsense.invalid/"), 3, id="redirect to http"),
        pytest.param(faults.body(b"<html>hello</html>"), 4, id="HTML"),
    ],
)
def test_failures_that_stay(cuda: FaultServer, process: Run, behaviour: Any, code: int) -> None:
    cuda.misbehave(LINUX, behaviour)
    result = process("--retries", 0)
    assert result.exit_code == code, result.output
    assert entry("cuda_cudart", "linux-x86_64")["status"] == "not-examined"
    assert entry("cuda_cudart", "linux-sbsa")["status"] == "examined"


def test_a_second_source_is_tried_where_the_first_serves_wrong_bytes(
    cuda: FaultServer, run: Run, tmp_path: Path
) -> None:
    mirror = tmp_path / "mirror"
    put(mirror, {path.lstrip("/"): data for path, data in cuda.files.items()})
    cuda.files[LINUX] = bytes(len(cuda.files[LINUX]))
    result = run("process-manifests", "--base-url", cuda.url, "--base-url", mirror)
    assert result.exit_code == 0
    assert entry("cuda_cudart", "linux-x86_64")["status"] == "examined"


def test_a_source_that_is_down_is_not_asked_for_every_archive(run: Run) -> None:
    packages: Packages = {
        f"package_{n}": {"linux-x86_64": {"LICENSE": b"%d" % n}} for n in range(40)
    }
    files = release("12.9.1", packages)
    put(Path("data/manifests/cuda"), {"redistrib_12.9.1.json": files["redistrib_12.9.1.json"]})
    options = ("--base-url", "http://127.0.0.1:1", "--retries", 1, "--jobs", 2)
    result = run("process-manifests", *options)
    assert result.exit_code == 3
    assert "cannot connect" in result.stderr
    assert "more: not asked any more, after 4 archives in vain" in result.stderr


def test_fail_fast_stops_and_keeps_what_was_finished(cuda: FaultServer, process: Run) -> None:
    largest = max(
        (p for p in cuda.files if not p.endswith(".json")), key=lambda p: len(cuda.files[p])
    )
    cuda.misbehave(largest, faults.status(404))
    result = process("--fail-fast", "--jobs", 1, "--json")
    assert result.exit_code == 3
    statuses = [a["status"] for a in report(result)["archives"]]
    assert statuses == ["failed"] * 5
    assert not FEATURES.exists()


def test_archive_whose_features_no_file_may_hold_fails_alone(
    cuda: FaultServer, process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(facts_cache, "_ENTRY_LIMIT", 400)  # only the archive with a library has more
        result = process("--json")
    assert result.exit_code == 5
    failed = [a for a in report(result)["archives"] if a["status"] == "failed"]
    assert [(a["package"], a["platform"]) for a in failed] == [("cuda_cudart", "linux-x86_64")]
    assert "not a valid feature entry" in failed[0]["error"]["message"]
    assert entry("cuda_cudart", "linux-x86_64")["reason"] == "failed: invalid"
    assert entry("cuda_cudart", "linux-sbsa")["status"] == "examined"
    assert entry("cuda_cccl", "linux-x86_64")["status"] == "examined"

    assert process().exit_code == 0
    assert entry("cuda_cudart", "linux-x86_64")["status"] == "examined"


def test_cached_features_with_a_control_character_count_as_missing(
    cuda: FaultServer, process: Run, tmp_path: Path
) -> None:
    assert process().exit_code == 0
    made = FEATURES.read_bytes()
    cache = Cache(tmp_path / "cache")
    sha256 = entry("cuda_cudart", "linux-x86_64")["sha256"]
    kept = json.loads(cache.get(facts_cache.FEATURES_KIND, sha256) or b"")
    bad = json.dumps(kept | {"notes": ["only in RECORD: a\x01"]}).encode()
    cache.put(facts_cache.FEATURES_KIND, sha256, bad)
    FEATURES.unlink()
    assert process().exit_code == 0
    assert FEATURES.read_bytes() == made


def test_nothing_at_all_to_be_had_writes_no_file(cuda: FaultServer, process: Run) -> None:
    for path in list(cuda.files):
        if not path.endswith(".json"):
            del cuda.files[path]
    result = process()
    assert result.exit_code == 3
    assert not FEATURES.exists()


def test_a_full_disk_is_said_and_leaves_nothing_half_written(
    cuda: FaultServer, process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = process()
    assert result.exit_code == 3
    assert "No space left on device" in result.stderr
    assert [path for path in Path("data").rglob("*") if path.is_file()] == [
        Path("data/manifests/cuda/redistrib_12.9.1.json")
    ]


def test_offline_reads_folders_only(cuda: FaultServer, run: Run, tmp_path: Path) -> None:
    assert run("process-manifests", "--base-url", cuda.url, "--offline").exit_code == 2
    put(tmp_path / "mirror", {path.lstrip("/"): data for path, data in cuda.files.items()})
    result = run("process-manifests", "--base-url", tmp_path / "mirror", "--offline")
    assert result.exit_code == 0


# -- early manifests


EARLY = {
    "release_date": "2020-07-07",
    "fabricmanager": {
        "450.51.05": {"linux-x86_64": "fm/linux-x86_64/fm-450.51.05.tar.gz"},
    },
}


def test_early_manifests_need_leave_and_are_marked(
    server: FaultServer, process: Run, tmp_path: Path
) -> None:
    tar = lzma.decompress(packed("fm.tar.xz", {"LICENSE": b"x"}))
    publish(
        server,
        {
            "redistrib_11.0.3.json": json.dumps(EARLY).encode(),
            "fm/linux-x86_64/fm-450.51.05.tar.gz": gzip.compress(tar, mtime=0),
        },
    )
    path = Path("data/features/cuda/feature_11.0.3.json")
    result = process("--json")
    assert result.exit_code == 3
    assert report(result)["archives"][0]["reason"] == "the manifest states no hash"
    assert not path.exists()
    assert process("--allow-unverified", "--max-download", "1kB").exit_code == 3
    assert archives_read(server) == 0
    result = process("--allow-unverified")
    assert result.exit_code == 0, result.output
    found = entry("fabricmanager", "linux-x86_64", path)
    assert found["status"] == "examined"
    assert found["verified"] is False
    assert found["sha256"] is None
    assert not (tmp_path / "cache" / "facts").exists()
    asked = server.requests.copy()
    for options in ((), ("--allow-unverified",), ("--check",), ("--fill-cache", "--check")):
        assert process(*options).exit_code == 0
    assert server.requests == asked
