"""Tests of releases by NVIDIA channel: `channels.json`, `releases.json` and hashed manifests."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from support.nvidia_channels import (
    NVIDIA_CHANNELS,
    RELEASES,
    ROOT,
    change_entry,
    nvidia_channel_release,
    serve_nvidia_channels,
)
from support.releases import EARLY, early_release, put, release
from support.running import expect_error, expect_output
from support.server import FaultServer, redirect, status, two_gigabytes

from cudaredist.sources.http import HttpSource
from cudaredist.sources.protocol import Settings

CLASSIC = f"{ROOT}/compute/cuda/redist/"
LOCAL = Path("data/manifests/cuda")


def serve_classic(server: FaultServer, *labels: str, packages: Any = None) -> None:
    """Serve releases at the usual place, instead of the earlier ones."""
    for label in labels:
        files = release(label, packages or {"libx": {"linux-x86_64": {"lib/x": b"y"}}})
        server.files |= {f"{CLASSIC}{path}": data for path, data in files.items()}
    links = "".join(f"<a href='redistrib_{label}.json'></a>" for label in labels)
    server.files[CLASSIC] = f"<pre>{links}</pre>".encode()


@pytest.fixture
def source(server: FaultServer) -> tuple[str, ...]:
    """Serve CUDA 13.3.1 at the usual place, and two NVIDIA channels. Return the options."""
    serve_classic(server, "13.3.1")
    serve_nvidia_channels(server, {"preview": ["13.4.0"], "archive": ["13.2.0", "13.2.1"]})
    return "--redist", "cuda", "--base-url", server.url + ROOT


def local_labels() -> list[str]:
    """Return the labels of the local manifests."""
    return sorted(path.stem.removeprefix("redistrib_") for path in LOCAL.glob("redistrib_*"))


def locked(label: str) -> dict[str, Any]:
    """Return the lock's entry of a CUDA release."""
    lock = json.loads(Path("data/lock.json").read_text())
    entry: dict[str, Any] = lock["redists"]["cuda"][label]
    return entry


def test_nvidia_channel_is_read_only_with_pre(
    source: tuple[str, ...], server: FaultServer, run: Run
) -> None:
    expect_output(run("download-manifests", *source, "--version", "all"), 0)
    assert local_labels() == ["13.3.1"]
    assert not any("/release/" in path for path in server.requests)
    result = run("download-manifests", *source, "--version", "all", "--pre")
    expect_output(result, 0, "channel archive has 13.2.0, 13.2.1")
    assert local_labels() == ["13.3.1", "13.4.0"]
    _, entry = nvidia_channel_release("13.4.0")
    assert locked("13.4.0") == {
        "address": f"release/cuda/{entry['manifest']}",
        "nvidia_channel": "preview",
        "sha256": entry["sha256"],
        "size": int(entry["size"]),
    }
    assert set(locked("13.3.1")) == {"sha256", "size"}
    assert server.requests[NVIDIA_CHANNELS] == server.requests[RELEASES] == 1
    assert not server.count("release/cuda/redist/")


def test_nvidia_channel_with_unknown_name_is_selected_only_by_name(
    source: tuple[str, ...], run: Run
) -> None:
    download = ("download-manifests", *source, "--version", "all")
    expect_output(run(*download, "--nvidia-channel", "archive"), 0)
    assert local_labels() == ["13.2.0", "13.2.1", "13.3.1"]
    assert locked("13.2.1")["nvidia_channel"] == "archive"
    result = run(*download, "--nvidia-channel", "archiv")
    expect_error(result, 3, "no selected redistributable has the channel archiv", "preview")
    expect_error(run(*download, "--nvidia-channel", "a/b"), 2, "not the name of a channel")


def test_manifest_with_known_hash_is_not_requested_again(
    source: tuple[str, ...], server: FaultServer, run: Run
) -> None:
    download = ("download-manifests", *source, "--pre")
    expect_output(run(*download), 0)
    path = f"{ROOT}/{locked('13.4.0')['address']}"
    expect_output(run(*download), 0, "unchanged")
    expect_output(run(*download, "--strict", "--replace"), 0, "unchanged")
    assert server.requests[path] == 1


def test_check_needs_one_more_request(
    source: tuple[str, ...], server: FaultServer, run: Run
) -> None:
    expect_output(run("download-manifests", *source, "--version", "all", "--pre"), 0)
    server.requests.clear()
    assert run("check", *source).exit_code == 1  # without features
    requests = {path: n for path, n in server.requests.items() if "/release/" in path}
    assert requests == {RELEASES: 1}


def test_archives_are_read_relative_to_the_address_of_the_manifest(
    server: FaultServer, run: Run
) -> None:
    files, entry = nvidia_channel_release("13.4.0")
    manifest = files[f"release/cuda/{entry['manifest']}"]
    entry["manifest"] = "../../pool/manifests/sha256/13.json"
    for path, data in files.items():
        server.files[f"{ROOT}/{path.removeprefix('release/cuda/redist/')}"] = data
    server.files[f"{ROOT}/pool/manifests/sha256/13.json"] = manifest
    server.files[RELEASES] = json.dumps({"preview": [entry]}).encode()
    source = ("--base-url", server.url + ROOT)
    expect_output(run("download-manifests", "--redist", "cuda", *source, "--pre"), 0)
    assert locked("13.4.0")["address"] == "pool/manifests/sha256/13.json"
    expect_output(run("process-manifests", *source, "--pre"), 0)


def test_archives_outside_the_root_are_refused(server: FaultServer, run: Run) -> None:
    serve_nvidia_channels(server, {"preview": ["13.4.0"]})
    _, entry = nvidia_channel_release("13.4.0")
    path = f"{ROOT}/release/cuda/{entry['manifest']}"
    server.files[f"{ROOT}/release/cuda/m.json"] = server.files[path]
    change_entry(server, manifest="m.json")
    source = ("--redist", "cuda", "--base-url", server.url + ROOT, "--pre")
    result = run("download-manifests", *source)
    expect_error(result, 5, "leads above the root", "release/cuda/m.json")
    assert not local_labels()


def test_mirror_sync_and_processing_of_nvidia_channel(
    source: tuple[str, ...], server: FaultServer, run: Run
) -> None:
    expect_output(run("download-manifests", *source, "--version", "all", "--pre"), 0)
    expect_output(run("process-manifests", *source[2:], "--pre"), 0)
    assert Path("data/features/cuda/feature_13.4.0.json").is_file()
    of_set = ("--platform", "linux-x86_64", "--allow-hollow", "--output", "set.json")
    expect_output(run("build", "--cuda", "13.4.0", *of_set), 0)
    document = json.loads(Path("set.json").read_text())
    assert document["cuda"]["early_access"] is True
    address = document["packages"]["libx"]["archive"]["url"]
    assert address.startswith("https://packages.nvidia.com/bin-archive/pool/linux-x86_64/5B5154")
    expect_output(run("materialize", "set.json", "--output", "root", *source[2:]), 0)
    assert Path("root/lib/x").read_bytes() == b"x"


# -- releases that move, and releases on both servers


def test_release_that_left_preview_is_reported_and_selected(
    source: tuple[str, ...], server: FaultServer, run: Run
) -> None:
    expect_output(run("download-manifests", *source, "--version", "all", "--pre"), 0)
    expect_error(run("process-manifests", *source[2:], "--version", "13.9"), 2)
    serve_nvidia_channels(server, {"release": ["13.4.0"]})
    result = run("check", *source)
    assert result.exit_code == 1
    assert "13.4.0 left preview (now in release)" in result.stdout
    (command,) = re.findall("`cudaredist (download-manifests [^`]*)` to record", result.stdout)
    assert "--pre" not in command
    assert locked("13.4.0")["nvidia_channel"] == "preview"
    result = run("bump", *source, "--no-process", "--check")
    expect_output(result, 1, "13.4.0 left preview")
    result = run("bump", *source, "--no-process")
    expect_output(result, 0, "13.4.0 left preview")
    assert locked("13.4.0")["nvidia_channel"] == "release"
    expect_output(run("process-manifests", *source[2:], "--version", "latest"), 0)
    assert Path("data/features/cuda/feature_13.4.0.json").is_file()
    assert "left preview" not in run("bump", *source, "--no-process").stdout


def test_release_that_moved_to_the_usual_server_is_read_from_there(
    source: tuple[str, ...], server: FaultServer, run: Run
) -> None:
    expect_output(run("download-manifests", *source, "--version", "all", "--pre"), 0)
    serve_nvidia_channels(server, {"preview": []})
    serve_classic(server, "13.3.1", "13.4.0", packages=EARLY)
    assert "13.4.0 left preview (now on the usual server)" in run("check", *source).stdout
    # 13.3.1 has other archives now, which is an error.
    expect_output(run("bump", *source, "--no-process"), 0, "13.4.0 left preview")
    assert set(locked("13.4.0")) == {"sha256", "size"}
    assert b"../" not in (LOCAL / "redistrib_13.4.0.json").read_bytes()


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("is_equal", [False, True])
def test_release_on_both_servers(
    source: tuple[str, ...], server: FaultServer, run: Run, *, is_equal: bool, is_recorded: bool
) -> None:
    download = ("download-manifests", *source, "--version", "13.4.0", "--pre")
    if is_recorded:
        expect_output(run(*download), 0)
    other = {"libx": {"linux-x86_64": {"lib/x": b"z"}}}
    serve_classic(server, "13.3.1", "13.4.0", packages=EARLY if is_equal else other)
    result = run(*download)
    expect_output(result, 0)
    is_of_nvidia_channel = is_recorded and not is_equal
    assert ("nvidia_channel" in locked("13.4.0")) is is_of_nvidia_channel
    assert ("archives differ in the channel preview" in result.stderr) is not is_equal


def test_outage_does_not_make_the_usual_release_a_change_of_the_recorded_one(
    source: tuple[str, ...], server: FaultServer, run: Run
) -> None:
    download = ("download-manifests", *source, "--version", "13.4.0", "--pre")
    expect_output(run(*download), 0)
    (LOCAL / "redistrib_13.4.0.json").unlink()
    serve_classic(server, "13.4.0", packages={"libx": {"linux-x86_64": {"lib/x": b"z"}}})
    server.misbehave(f"{ROOT}/{locked('13.4.0')['address']}", status(500))
    result = run(*download)
    expect_error(result, 3, "500")
    assert "--replace" not in result.stderr
    assert not local_labels()


def test_release_of_nvidia_channel_has_no_warning_about_the_pool(
    source: tuple[str, ...], run: Run
) -> None:
    result = run("download-manifests", *source, "--version", "13.4.0", "--pre", "--strict")
    expect_output(result, 0)
    assert "warning" not in result.stderr


def test_lock_without_nvidia_channels_stays_valid(server: FaultServer, run: Run) -> None:
    files = early_release("13.4.0")
    put(Path("earlier"), files)
    of_folder = ("--redist", "cuda", "--base-url", "earlier", "--pre")
    expect_output(run("download-manifests", *of_folder), 0)
    assert set(locked("13.4.0")) == {"sha256", "size"}
    source = ("--base-url", server.url + ROOT)
    expect_error(run("process-manifests", "--base-url", "earlier"), 2, "only early-access")
    serve_nvidia_channels(server, {"preview": ["13.4.0"]})
    expect_output(run("download-manifests", "--redist", "cuda", *source, "--pre"), 0)
    assert locked("13.4.0")["nvidia_channel"] == "preview"


def test_versions_show_all_nvidia_channels(source: tuple[str, ...], run: Run) -> None:
    document = json.loads(run("versions", *source, "--pre", "--json").stdout)
    assert document["channels"] == {
        "cuda": {"archive": ["13.2.0", "13.2.1"], "preview": ["13.4.0"]}
    }
    assert document["releases"] == {"cuda": ["13.3.1", "13.4.0"]}
    assert "channels" not in run("versions", *source).stdout
    result = run("versions", *source, "--nvidia-channel", "archive", "--json")
    assert json.loads(result.stdout)["releases"] == {"cuda": ["13.2.0", "13.2.1", "13.3.1"]}


def test_bump_adds_release_of_nvidia_channel(source: tuple[str, ...], run: Run) -> None:
    expect_output(run("download-manifests", *source), 0)
    expect_output(run("bump", *source, "--no-process"), 0, "nothing is new")
    expect_output(run("bump", *source, "--no-process", "--pre"), 0, "13.3.1 -> 13.4.0")
    assert locked("13.4.0")["nvidia_channel"] == "preview"


# -- a second server with faults

_HTML = b"<!DOCTYPE html><html><body>Log in to the network</body></html>"


def _document(server: FaultServer) -> Any:
    return json.loads(server.files[RELEASES])


def _twice(server: FaultServer) -> None:
    document = _document(server)
    (entry,) = document["preview"]
    document["preview"].append({**entry, "sha256": "0" * 64})
    server.files[RELEASES] = json.dumps(document).encode()


def _serve(path: str, data: bytes) -> Callable[[FaultServer], None]:
    return lambda server: server.files.update({path: data})


def _change(**changes: object) -> Callable[[FaultServer], None]:
    return lambda server: change_entry(server, **changes)


def _misbehave(path: str, behaviour: Any) -> Callable[[FaultServer], None]:
    return lambda server: server.misbehave(path, behaviour)


def _change_manifest(server: FaultServer) -> None:
    (entry,) = _document(server)["preview"]
    path = f"{ROOT}/release/cuda/{entry['manifest']}"
    server.files[path] = server.files[path].replace(b"13", b"31")


def _grow_manifest(server: FaultServer) -> None:
    (entry,) = _document(server)["preview"]
    server.misbehave(f"{ROOT}/release/cuda/{entry['manifest']}", two_gigabytes(with_length=False))


FAULTS: dict[str, tuple[Callable[[FaultServer], None], int, str]] = {
    "channels not JSON": (_serve(NVIDIA_CHANNELS, b"{"), 5, "channels.json"),
    "channels not UTF-8": (_serve(NVIDIA_CHANNELS, b'{"preview\xff": []}'), 5, "channels.json"),
    "channels a list": (_serve(NVIDIA_CHANNELS, b"[]"), 5, "channels.json"),
    "channels of text": (_serve(NVIDIA_CHANNELS, b'{"preview": "cuda"}'), 5, "channels.json"),
    "channels without product": (
        _serve(NVIDIA_CHANNELS, b'{"preview": [{}]}'),
        5,
        "product: is missing",
    ),
    "channels with wrong product": (
        _serve(NVIDIA_CHANNELS, b'{"preview": [{"product": 1}]}'),
        5,
        "text",
    ),
    "channels a portal": (_serve(NVIDIA_CHANNELS, _HTML), 5, "channels.json"),
    "channels too large": (
        _misbehave(NVIDIA_CHANNELS, two_gigabytes(with_length=False)),
        5,
        "larger",
    ),
    "channels with length": (
        _misbehave(NVIDIA_CHANNELS, two_gigabytes(with_length=True)),
        5,
        "larger",
    ),
    "channels broken": (_misbehave(NVIDIA_CHANNELS, status(500)), 3, "500"),
    "channels denied": (_misbehave(NVIDIA_CHANNELS, status(401)), 3, "401"),
    "releases not JSON": (_serve(RELEASES, b""), 5, "releases.json"),
    "releases null": (_serve(RELEASES, b"null"), 5, "expected an object"),
    "releases of objects": (_serve(RELEASES, b'{"preview": {}}'), 5, "expected a list"),
    "releases of text": (_serve(RELEASES, b'{"preview": ["13.4.0"]}'), 5, "expected an object"),
    "releases deep": (_serve(RELEASES, b'{"preview": ' + b"[" * 10**5 + b"}"), 5, "deep"),
    "releases with odd channel": (_serve(RELEASES, b'{"../x": []}'), 5, "name of a channel"),
    "releases a portal": (_serve(RELEASES, _HTML), 5, "releases.json"),
    "releases too large": (_misbehave(RELEASES, two_gigabytes(with_length=False)), 5, "larger"),
    "releases broken": (_misbehave(RELEASES, status(503)), 3, "503"),
    "releases redirected": (_misbehave(RELEASES, redirect("http://192.0.2.1/")), 3, "encrypted"),
    "entry without version": (_change(version=None), 5, "version: is missing"),
    "entry with number as version": (_change(version=13.4), 5, "expected a text"),
    "entry with odd version": (_change(version="13.4.0-rc1"), 5, "13.4.0-rc1"),
    "entry without manifest": (_change(manifest=None), 5, "manifest: is missing"),
    "entry without hash": (_change(sha256=None), 5, "sha256: is missing"),
    "entry with short hash": (_change(sha256="ab"), 5, "64 lower-case hex digits"),
    "entry without size": (_change(size=None), 5, "size: is missing"),
    "entry with negative size": (_change(size=-1), 5, "size: expected the bytes"),
    "entry with true as size": (_change(size=True), 5, "size: expected the bytes"),
    "entry with fraction as size": (_change(size=1.5), 5, "size: expected the bytes"),
    "entry with unit in size": (_change(size="1 kB"), 5, "size: expected the bytes"),
    "entry of 4 GB": (_change(size=4 << 30), 5, "size: expected the bytes"),
    "two manifests": (_twice, 5, "2 different manifests of 13.4.0"),
    "manifest above the root": (_change(manifest="../../../x.json"), 5, "not a relative path"),
    "manifest with dots inside": (_change(manifest="a/../../x.json"), 5, "not a relative path"),
    "manifest with escapes": (_change(manifest="%2e%2e/x.json"), 5, "not a relative path"),
    "manifest elsewhere": (_change(manifest="../../compute/x.json"), 5, "not a relative path"),
    "manifest of another host": (_change(manifest="https://x.org/x"), 5, "not a relative path"),
    "manifest of a host": (_change(manifest="//x.org/x.json"), 5, "not a relative path"),
    "manifest with credentials": (_change(manifest="//u:p@x.org/x"), 5, "not a relative path"),
    "manifest absolute": (_change(manifest="/release/x.json"), 5, "not a relative path"),
    "manifest with backslash": (_change(manifest="..\\x.json"), 5, "not a relative path"),
    "manifest with query": (_change(manifest="redist/x.json?a=b"), 5, "not a relative path"),
    "manifest missing": (_change(manifest="redist/x.json"), 3, "redist/x.json"),
    "manifest of another hash": (_change(sha256="0" * 64), 4, "releases.json states 00000"),
    "manifest of another size": (_change(size=12), 4, "releases.json states 12"),
    "manifest changed": (_change_manifest, 4, "SHA-256 is"),
    "manifest of 2 GB": (_grow_manifest, 4, "size is more than"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_of_second_server_keeps_the_usual_one(
    source: tuple[str, ...], server: FaultServer, run: Run, name: str
) -> None:
    serve_nvidia_channels(server, {"preview": ["13.4.0"]})
    make, code, text = FAULTS[name]
    make(server)
    expect_error(run("download-manifests", *source, "--pre", "--version", "all"), code, text)
    assert local_labels() == ["13.3.1"]
    assert set(locked("13.3.1")) == {"sha256", "size"}
    assert '"gone"' not in Path("data/lock.json").read_text()


def test_entry_with_a_problem_hides_no_other_release(
    source: tuple[str, ...], server: FaultServer, run: Run
) -> None:
    """NVIDIA's labels have had suffixes."""
    serve_nvidia_channels(server, {"preview": ["13.4.0", "13.4.1"]})
    change_entry(server, version="13.5.0-rc1")
    result = run("download-manifests", *source, "--pre", "--version", "all")
    expect_error(result, 5, "preview[0].version", "13.5.0-rc1")
    assert local_labels() == ["13.3.1", "13.4.1"]
    assert run("versions", *source, "--pre").exit_code == 5
    change_entry(server, version="13.4.0", sha256="0")
    expect_error(run("download-manifests", *source, "--pre", "--version", "13.4.1"), 5)


def test_release_with_other_archives_after_a_move_keeps_the_recorded_one(
    source: tuple[str, ...], server: FaultServer, run: Run
) -> None:
    expect_output(run("download-manifests", *source, "--version", "13.4.0", "--pre"), 0)
    recorded = (LOCAL / "redistrib_13.4.0.json").read_bytes()
    files, entry = nvidia_channel_release("13.4.0", {"libx": {"linux-x86_64": {"lib/x": b"z"}}})
    server.files |= {f"{ROOT}/{path}": data for path, data in files.items()}
    server.files[RELEASES] = json.dumps({"release": [entry]}).encode()
    download = ("download-manifests", *source, "--version", "13.4.0")
    expect_error(run(*download), 4, "sha256")
    assert (LOCAL / "redistrib_13.4.0.json").read_bytes() == recorded
    assert locked("13.4.0")["nvidia_channel"] == "preview"
    expect_output(run(*download, "--replace"), 0)
    assert locked("13.4.0")["nvidia_channel"] == "release"


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("download-manifests --channel wheels --nvidia-channel x", "download-manifests --channel"),
        ("versions --channel wheels --nvidia-channel x", "versions --channel wheels"),
        ("check --channel wheels --nvidia-channel x", "check --channel wheels"),
        ("mirror sync m --channel wheels --nvidia-channel x", "mirror sync m --channel wheels"),
        (
            "download-manifests https://host/compute/cuda/redist m --nvidia-channel x",
            "download-manifests https://host/compute/cuda/redist m`",
        ),
    ],
)
def test_nvidia_channels_are_of_the_servers_only(run: Run, call: str, hint: str) -> None:
    result = run(*call.split())
    expect_error(result, 2, "cannot be combined with", "--nvidia-channel", f"`cudaredist {hint}")


@pytest.mark.parametrize("size", [str, int])
def test_size_is_number_or_digits(
    source: tuple[str, ...], server: FaultServer, run: Run, size: type
) -> None:
    serve_nvidia_channels(server, {"preview": ["13.4.0"]})
    _, entry = nvidia_channel_release("13.4.0")
    change_entry(server, size=size(entry["size"]))
    expect_output(run("download-manifests", *source, "--pre"), 0)
    assert locked("13.4.0")["size"] == int(entry["size"])


def test_release_without_recorded_one_is_not_lost_during_an_outage(
    source: tuple[str, ...], server: FaultServer, run: Run
) -> None:
    expect_output(run("download-manifests", *source, "--version", "all", "--pre"), 0)
    lock = Path("data/lock.json").read_bytes()
    server.misbehave(RELEASES, status(500))
    for command in ("download-manifests", "versions", "check"):
        assert run(command, *source).exit_code == 3, command
    assert run("bump", *source, "--no-process").exit_code == 3
    assert Path("data/lock.json").read_bytes() == lock


def test_server_without_releases_json_lists_folder(
    source: tuple[str, ...], server: FaultServer, run: Run
) -> None:
    del server.files[RELEASES]
    server.files |= {f"{ROOT}/{path}": data for path, data in early_release("13.5.0").items()}
    server.files[f"{ROOT}/release/cuda/redist/"] = (
        b"<pre><a href='redistrib_13.5.0.json'></a></pre>"
    )
    expect_output(run("download-manifests", *source, "--pre"), 0)
    assert local_labels() == ["13.5.0"]
    assert set(locked("13.5.0")) == {"sha256", "size"}


def test_redirect_to_another_host_gets_no_credentials(
    source: tuple[str, ...], server: FaultServer, run: Run
) -> None:
    with FaultServer() as other:
        other.files["/x"] = server.files[RELEASES]
        server.misbehave(RELEASES, redirect(f"{other.url}/x"))
        url = source[-1].replace("http://", "http://user:secret@")
        result = run("download-manifests", *source[:2], "--base-url", url, "--pre")
    expect_output(result, 0)
    assert all(headers.get("Authorization") is None for _, headers in other.headers)
    assert "secret" not in result.output + Path("data/lock.json").read_text()


def test_nvidia_channels_over_tls(secure: FaultServer, run: Run) -> None:
    serve_classic(secure, "13.3.1")
    serve_nvidia_channels(secure, {"preview": ["13.4.0"]})
    source = ("--redist", "cuda", "--base-url", secure.url + ROOT, "--pre")
    expect_output(run("download-manifests", *source, "--version", "all"), 0)
    assert local_labels() == ["13.3.1", "13.4.0"]
    expect_output(run("process-manifests", *source[2:]), 0)
    with FaultServer() as plain:
        plain.files["/x"] = secure.files[RELEASES]
        secure.misbehave(RELEASES, redirect(f"{plain.url}/x"))
        result = run("download-manifests", *source)
    expect_error(result, 3, "which is not encrypted")
    assert not plain.requests


def test_nvidia_source_reads_nvidia_channels_from_second_server() -> None:
    place = HttpSource("https://developer.download.nvidia.com", Settings()).place_of
    root = "https://packages.nvidia.com/bin-archive"
    assert place("release/channels.json") == f"{root}/release/channels.json"
    assert place("pool/manifests/x.json") == f"{root}/pool/manifests/x.json"
