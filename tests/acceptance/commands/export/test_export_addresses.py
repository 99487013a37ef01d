"""Tests of `export --resolve`: wheel addresses, sizes and hashes from an index."""

import json
import os
import tomllib
from pathlib import Path

import pytest
from conftest import Run
from support.package_sets import archive, example_set, package
from support.running import expect_error, expect_output

from cudaredist.primitives import sha256_of

NAME = "nvidia_cublas-13.1.0.3-py3-none-manylinux_2_27_x86_64.whl"
WHEEL = b"a wheel"
RESOLVE = ("export", "pylock", "set.json", "--resolve")


@pytest.fixture
def index(run: Run, short_pauses: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Configure pip for one index page and write a set of one wheel."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    page = tmp_path / "page.html"
    monkeypatch.setenv("PIP_FIND_LINKS", str(page))
    write_page(page, f"https://files.example/{NAME}", sha256_of(WHEEL))
    wheel = {"url": None, "md5": None, "size": None, "format": "whl", "strip_prefix": None}
    entry = archive(f"nvidia-cublas/{NAME}") | wheel | {"sha256": sha256_of(WHEEL)}
    package_set = example_set(channel="wheels", packages={"libcublas": package("x", archive=entry)})
    Path("set.json").write_bytes(package_set.canonical())
    return page


def write_page(page: Path, url: str, sha256: str) -> None:
    page.write_text(f"<html><body><a href='{url}#sha256={sha256}'>x</a></body></html>")


def write_wheel(page: Path, data: bytes) -> Path:
    """Write a wheel next to a page that lists it."""
    path = page.parent / NAME
    path.write_bytes(data)
    write_page(page, path.as_uri(), sha256_of(data))
    return path


def test_resolve_uses_address_of_index(run: Run, index: Path) -> None:
    path = write_wheel(index, WHEEL)
    result = expect_output(run(*RESOLVE), 0)
    (package,) = tomllib.loads(result.stdout)["packages"]
    (wheel,) = package["wheels"]
    assert wheel == {
        "name": NAME,
        "url": path.as_uri(),
        "size": len(WHEEL),
        "hashes": {"sha256": sha256_of(WHEEL)},
    }


def test_resolve_records_no_credentials(run: Run, index: Path) -> None:
    write_page(index, f"https://user:SECRET@127.0.0.1:9/{NAME}", sha256_of(WHEEL))
    made = expect_output(run(*RESOLVE), 0)
    assert "SECRET" not in made.output
    assert f'url = "https://127.0.0.1:9/{NAME}"' in made.stdout


def test_resolve_of_address_with_query_is_refused(run: Run, index: Path) -> None:
    write_page(index, f"https://127.0.0.1:9/{NAME}?token=SECRET", sha256_of(WHEEL))
    made = run(*RESOLVE, "-o", "lock.toml")
    expect_error(made, 2, "may contain a token", "--wheel-base")
    assert "SECRET" not in made.output
    assert not Path("lock.toml").exists()


@pytest.mark.parametrize(
    "base", ["https://user:SECRET@w.example", "https://w.example/?t=SECRET", "https://u:SECRET@w x"]
)
@pytest.mark.usefixtures("index")
def test_wheel_base_with_a_secret_is_refused(run: Run, base: str) -> None:
    made = expect_output(run("export", "pylock", "set.json", "--wheel-base", base), 2)
    assert "SECRET" not in made.output


def test_resolve_requests_only_exported_wheels(run: Run, index: Path) -> None:
    write_wheel(index, WHEEL)
    document = json.loads(Path("set.json").read_bytes())
    entry = document["packages"]["libcublas"]
    gone = entry["archive"] | {"relative_path": f"nvidia-cublas/{NAME}".replace("cublas", "gone")}
    withheld = {"attr": "gone", "status": "withheld", "archive": gone}
    document["packages"]["gone"] = entry | withheld
    Path("set.json").write_text(json.dumps(document))
    expect_output(run(*RESOLVE), 0)


def test_resolve_of_missing_wheel_exits_3(run: Run, index: Path) -> None:
    write_page(index, "https://files.example/x-1-py3-none-any.whl", sha256_of(WHEEL))
    result = run(*RESOLVE, "-o", "lock.toml")
    expect_error(result, 3, NAME, "cudaredist download-manifests")
    assert not Path("lock.toml").exists()


def test_resolve_of_wheel_with_other_hash_exits_4(run: Run, index: Path) -> None:
    write_wheel(index, b"another wheel")
    made = expect_output(run(*RESOLVE, "-o", "lock.toml", "--json"), 4)
    error = json.loads(made.stdout)["error"]
    assert sha256_of(WHEEL) in error["message"]
    assert "--base-url" not in error["hint"]
    assert not Path("lock.toml").exists()
