"""Tests of caches with files planted by another user.

Such files are neither written through nor trusted."""

import contextlib
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import SAMPLE, Run
from support.bumps import publish
from support.optional_programs import needs
from support.patching import Patch
from support.running import PROGRAM, completed, expect_output
from support.server import FaultServer

from cudaredist.errors import UsageError
from cudaredist.private import open_private, refuse_shared_folder
from cudaredist.store.cache import Cache

KINDS = {"archives", "facts", "files", "http"}
SHA256 = "a" * 64
OTHER_USER = 65534

Plant = Callable[[Path, bytes], None]

needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, to give files away"
)
posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def commands(server: FaultServer, run: Run) -> Callable[[], None]:
    """Return a function that fills a cache, with a new data folder."""
    publish(server, "cuda", "12.9.1")

    def call() -> None:
        shutil.rmtree("data", ignore_errors=True)
        for command in ("download-manifests", "process-manifests"):
            more = ("--keep-archives",) if command == "process-manifests" else ()
            expect_output(run(command, "--base-url", server.url, "--redist", "cuda", *more), 0)
        for command in ("update-nvcc-compat", "update-gpus"):
            expect_output(run(command, "--base-url", server.url), 0)

    return call


def files(folder: Path) -> Iterator[Path]:
    yield from (path for path in sorted(folder.rglob("*")) if path.is_file() or path.is_symlink())


# -- users without a home


@posix
@pytest.mark.usefixtures("homeless")
def test_user_without_home_has_a_private_cache(
    commands: Callable[[], None], tmp_path: Path
) -> None:
    commands()
    assert {path.name for path in (tmp_path / f"cudaredist-{os.geteuid()}").iterdir()} == KINDS


@needs("unshare")
def test_unknown_user_without_home_uses_reported_cache_folder(tmp_path: Path) -> None:
    user = ["unshare", "--user", "--map-user=54321"]
    if subprocess.run([*user, "true"], check=False).returncode:
        pytest.skip("this system does not permit user namespaces")
    options = ["--base-url", str(SAMPLE), "--redist", "cuda"]
    result = completed(
        *user,
        *PROGRAM,
        "download-manifests",
        *options,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)},
    )
    assert result.returncode == 0, result.stderr
    folder = tmp_path / "cudaredist-54321"
    assert f"no home folder, so the cache is {folder}; --cache-dir selects" in result.stderr


# -- planted links


@posix
def test_cache_files_replaced_by_links_are_not_written_or_read(
    commands: Callable[[], None], cache: Path, tmp_path: Path, server: FaultServer
) -> None:
    commands()
    assert {path.relative_to(cache).parts[0] for path in files(cache)} == KINDS
    good = {path: path.read_bytes() for path in files(cache)}
    archives = [path for path in server.files if path.endswith(".tar.xz")]
    request_count = sum(map(server.count, archives))
    victims = {}
    for number, (path, content) in enumerate(good.items()):
        victim = tmp_path / "victims" / str(number)
        victim.parent.mkdir(exist_ok=True)
        victim.write_bytes(content)
        path.unlink()
        path.symlink_to(victim)
        victims[victim] = content
    commands()
    assert {victim: victim.read_bytes() for victim in victims} == victims
    assert {path: path.read_bytes() for path in files(cache)} == good
    assert not [path for path in files(cache) if path.is_symlink()]
    assert sum(map(server.count, archives)) > request_count, "a link's target is not trusted"


@pytest.mark.slow
@posix
@pytest.mark.parametrize(
    ("suffix", "link", "content"),
    [
        *((end, Path.symlink_to, text) for end in ("", ".part") for text in (None, b"precious")),
        (".part", Path.hardlink_to, b"precious"),
    ],
)
def test_keep_archives_does_not_write_through_planted_link(
    commands: Callable[[], None],
    cache: Path,
    tmp_path: Path,
    suffix: str,
    link: Callable[[Path, Path], None],
    content: bytes | None,
) -> None:
    """Without content, the link is dangling."""
    commands()
    archives = {path: path.read_bytes() for path in files(cache / "archives")}
    shutil.rmtree(cache / "facts")
    victim = tmp_path / "victim"
    if content is not None:
        victim.write_bytes(content)
    for path in archives:
        path.unlink()
        link(path.with_name(path.name + suffix), victim)
    commands()
    assert (victim.read_bytes() if victim.exists() else None) == content
    assert {path: path.read_bytes() for path in files(cache / "archives")} == archives
    assert not [path for path in archives if path.is_symlink()]


def _link(path: Path, content: bytes) -> None:
    target = path.with_name("target")
    target.write_bytes(content)
    path.symlink_to(target)


def _pipe(path: Path, _: bytes) -> None:
    os.mkfifo(path)


def _gift(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    os.chown(path, OTHER_USER, -1)


@posix
@pytest.mark.parametrize("plant", [_link, _pipe, pytest.param(_gift, marks=needs_root)])
def test_cache_entry_of_another_user_is_replaced(cache: Path, plant: Plant) -> None:
    entries = Cache(cache)
    entries.put("facts/1", SHA256, b"known")
    (path,) = files(cache)
    content = path.read_bytes()
    path.unlink()
    plant(path, content)
    assert entries.get("facts/1", SHA256) is None
    entries.put("facts/1", SHA256, b"known")
    assert entries.get("facts/1", SHA256) == b"known"
    assert not path.is_symlink()
    with open_private(path) as file:
        assert file.read() == content


@posix
@pytest.mark.parametrize("name", ["manifests/cuda/redistrib_12.9.1.json", "lock.json"])
def test_data_folder_is_not_written_through_planted_link(
    commands: Callable[[], None], run: Run, server: FaultServer, tmp_path: Path, name: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b'{"schema_version": 1, "redists": {}}\n')
    before = victim.read_bytes()
    path = Path("data", name)
    Path("data/manifests").mkdir(parents=True)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(victim)
    options = ("--base-url", server.url, "--redist", "cuda", "--replace")
    assert run("download-manifests", *options).exit_code == 0
    assert victim.read_bytes() == before
    assert not path.is_symlink()


# -- folders of other users


def snapshot(folder: Path) -> Any:
    return {path: path.lstat().st_mtime_ns for path in (folder, *folder.rglob("*"))}


@posix
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_cache_folder_writable_by_others_is_refused(
    run: Run, server: FaultServer, cache: Path, mode: int
) -> None:
    cache.mkdir()
    cache.chmod(mode)
    before = snapshot(cache)
    result = expect_output(run("download-manifests", "--base-url", server.url), 2)
    message = "".join(result.stderr.split())
    assert "otherscanwritetothecachefolder" in message
    assert f"chmod-Rgo-w{cache}" in message
    assert (snapshot(cache), list(Path().iterdir())) == (before, [])
    assert not server.requests


@needs_root
def test_cache_folder_of_another_user_is_refused(
    run: Run, server: FaultServer, cache: Path, tmp_path: Path
) -> None:
    cache.mkdir()
    os.chown(cache, OTHER_USER, -1)
    (tmp_path / "link").symlink_to(cache)
    for folder in (cache, tmp_path / "link"):
        result = run("download-manifests", "--base-url", server.url, "--cache-dir", folder)
        assert result.exit_code == 2
        message = "".join(result.stderr.split())
        assert f"belongstoanotheruser(uid{OTHER_USER})" in message
        assert f"chown-Rroot{folder}" in message
        assert "--cache-dir" in message
    assert not list(cache.iterdir())


@needs_root
def test_cache_folder_linked_by_another_user_is_refused(cache: Path, tmp_path: Path) -> None:
    cache.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(cache)
    refuse_shared_folder(tmp_path / "link")
    os.chown(tmp_path / "link", OTHER_USER, -1, follow_symlinks=False)
    with pytest.raises(UsageError, match="another user"):
        refuse_shared_folder(tmp_path / "link")


@needs_root
def test_cache_folder_of_root_is_accepted_and_of_another_user_refused(
    cache: Path, patch: Patch
) -> None:
    cache.mkdir(mode=0o755)
    patch(os, "geteuid", lambda: 1000)
    for owner in (0, 1000):
        os.chown(cache, owner, -1)
        refuse_shared_folder(cache)
    os.chown(cache, 1001, -1)
    with pytest.raises(UsageError, match="uid 1001") as error:
        refuse_shared_folder(cache)
    assert error.value.hint == "select another folder: `cudaredist ... --cache-dir cache`"


@posix
def test_cache_folder_below_sticky_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    (tmp_path / "all").chmod(0o1777)
    cache = Cache(tmp_path / "all/cache")
    cache.put("facts/1", SHA256, b"known")
    assert cache.get("facts/1", SHA256) == b"known"


@posix
def test_new_cache_folder_is_private(commands: Callable[[], None], cache: Path) -> None:
    before = os.umask(0)
    try:
        commands()
    finally:
        os.umask(before)
    folders = [cache, *(path for path in cache.rglob("*") if path.is_dir())]
    assert {path.stat().st_mode & 0o7777 for path in folders} == {0o700}
    commands()


@needs_root
def test_other_users_read_cache_of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir(mode=0o755)
    # Other users may not enter the folders above.
    monkeypatch.chdir(tmp_path / "work")
    Cache(Path("cache")).put("facts/1", SHA256, b"known")
    for folder, _, _ in os.walk("cache"):
        Path(folder).chmod(0o755)
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            os.setgid(OTHER_USER)
            os.setuid(OTHER_USER)
            entries = Cache(Path("cache"))
            entries.put("facts/1", "b" * 64, b"other")
            assert entries.get("facts/1", "b" * 64) is None
            assert entries.get("facts/1", SHA256) == b"known"
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(files(Path("cache")))) == 1


# -- concurrent use


def test_sweep_ignores_folders_removed_by_another_run(cache: Path, patch: Patch) -> None:
    for name in ("a", "b"):
        (cache / name).mkdir(parents=True)
        path = cache / name / f"{SHA256}.part"
        path.touch()
        os.utime(path, (0, 0))
    scan = os.scandir

    is_removed = False

    def scan_and_remove_the_other(path: Any) -> Any:
        nonlocal is_removed
        name = "" if isinstance(path, int) else Path(path).name
        if name in {"a", "b"} and not is_removed:
            is_removed = True
            shutil.rmtree(cache / ("b" if name == "a" else "a"))
        return scan(path)

    patch(os, "scandir", scan_and_remove_the_other)
    Cache(cache).sweep()
    assert not any(path.is_file() for path in cache.rglob("*"))


def test_entry_under_the_name_of_another_is_not_read(cache: Path) -> None:
    store = Cache(cache)
    store.put("facts/1", SHA256, b"facts")
    assert store.get("facts/1", SHA256) == b"facts"
    copies = (("facts/1", "b" * 64), ("facts/2", SHA256))
    for kind, sha256 in copies:
        copy = cache / kind / sha256[:2] / sha256
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(cache / "facts/1" / SHA256[:2] / SHA256, copy)
        assert store.get(kind, sha256) is None


def test_entry_of_an_earlier_version_is_read(cache: Path) -> None:
    path = cache / "facts/1" / SHA256[:2] / SHA256
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_bytes(hashlib.sha256(b"facts").hexdigest().encode() + b"\nfacts")
    assert Cache(cache).get("facts/1", SHA256) == b"facts"
