"""Passwords in malformed addresses are never shown, by any option that takes an address."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from conftest import Run
from support.factory import manifest
from support.runfiles import NAME
from support.running import held

FORMS = (
    *("u:SECRET@h", "u:SECRET@h/x", "//u:SECRET@h", "//u:SECRET@h/x", "/u:SECRET@h/x"),
    *("///u:SECRET@h/", ":SECRET@h", "://u:SECRET@h/", "//SECRET@h/", "https//SECRET@h/"),
    *("https:u:SECRET@h/", "https:/u:SECRET@h/", "https//u:SECRET@h/"),
    *("https:\\\\u:SECRET@h\\", "<https://u:SECRET@h/>", "htps://u:SECRET@h/"),
    *("ftp://u:SECRET@h/", "git+https://u:SECRET@h/", "s3:u:SECRET@h", "file:u:SECRET@h"),
    *("file://u:SECRET@h/x", "FILE://u:SECRET@h/x", "tls://u:SECRET@127.0.0.1:1"),
    *("tcp://u:SECRET@127.0.0.1:1", "ucx://u:SECRET@127.0.0.1:1"),
    *("inproc://u:SECRET@127.0.0.1/1/2", "http://u:SECRET@127.0.0.1:1"),
    *("http://u:SECRET x@h/", "http://u:SECRET\tx@h/", "https://u:x SECRET@h/"),
    *("https://u:SECRET/x@h/", "https://u:SECRET?x@h/", "https://u:SECRET#x@h/"),
    *("https://u:SECRET@x@h:0/", "https://u:SECRET@h:99999/", "https://u:SECRET@[::1/"),
    *("https://u:SECRET@a b/", "https://u:SECRET@/x", "https://u:SECRET%zz@127.0.0.1:1/"),
    *("https://u:SECRET\N{SNOWMAN}@127.0.0.1:1/", "https://u:SECRET@xn--a\N{SNOWMAN}/"),
    *(f"https://u:SECRET@{'h' * 300}:0/", "https://SECRET@127.0.0.1:1/"),
    *(" https://u:SECRET@127.0.0.1:1/", "HTTPS://u:SECRET@127.0.0.1:1/?q#f"),
)
"""Malformed addresses, and some that are valid for other options."""
_LATEST = ("--redist", "cuda", "--retries", "0")
_WHEELS = ("download-manifests", "--channel", "wheels", "-v", *_LATEST)
_CALLS: dict[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "base-url": (("download-manifests", "-vv", "--json", "--base-url", "{}", *_LATEST), {}),
    "CUDAREDIST_BASE_URL": (("download-manifests", *_LATEST), {"CUDAREDIST_BASE_URL": "{}"}),
    "URL": (("download-manifests", "{}", "out", "--retries", "0"), {}),
    "mirror": (("mirror", "sync", "mirror", "--base-url", "{}", *_LATEST), {}),
    "manifest add": (("manifest", "add", "tensorrt", "10.1.0", "--archive", "source={}"), {}),
    "runfile add": (("runfile", "add", "{}"), {}),
    "runfile add folder": (("runfile", "add", f"{{}}/{NAME}", "--retries", "0"), {}),
    "runfile add --url": (("runfile", "add", NAME, "--url", "{}"), {}),
    "wheel-base": (("export", "requirements", "cuda-13.0.0", "--wheel-base", "{}"), {}),
    "PIP_INDEX_URL": (_WHEELS, {"PIP_INDEX_URL": "{}"}),
    "PIP_EXTRA_INDEX_URL": (_WHEELS, {"PIP_EXTRA_INDEX_URL": "{}"}),
    "PIP_FIND_LINKS": (_WHEELS, {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "{}"}),
    "PIP_PROXY": (_WHEELS, {"PIP_PROXY": "{}"}),
    "PIP_TIMEOUT": (_WHEELS, {"PIP_TIMEOUT": "{}"}),
    "pip.conf": (_WHEELS, {"PIP_INDEX_URL": "", "PIP_CONFIG_FILE": "pip.conf"}),
    "HTTPS_PROXY": (
        ("download-manifests", "--base-url", "https://127.0.0.1:1", *_LATEST),
        {"HTTPS_PROXY": "{}"},
    ),
    "scheduler": (
        *(("process-manifests", "--engine", "dask", "--scheduler", "{}", "--base-url", "."),),
        {},
    ),
}
"""Options and variables with addresses: a call, and its environment."""


@pytest.mark.slow
# The usual authorities take long to read.
@pytest.mark.usefixtures("authority")
@pytest.mark.parametrize("option", _CALLS)
def test_password_in_malformed_address_is_never_shown(
    run: Run, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    arguments, variables = _CALLS[option]
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "https://127.0.0.1:1/")
    Path("data/manifests/cuda").mkdir(parents=True)
    held().write_bytes(manifest())
    for form in FORMS:
        Path("pip.conf").write_text(f"[global]\nindex-url = {form}\n", encoding="utf-8")
        for name, value in variables.items():
            monkeypatch.setenv(name, value.format(form))
        result = run(*(argument.format(form) for argument in arguments))
        assert "SECRET" not in result.output, form
        assert "Traceback" not in result.output, form
        assert result.exit_code in {2, 3}, form


ADDRESS = "https://u:SECRET@h.example/x"
_ELSEWHERE = (
    ("download-manifests", ADDRESS),
    ("materialize", ADDRESS),
    ("materialize", "set.json", "--output", "root", "--archives", ADDRESS),
    ("check", "--data-dir", ADDRESS),
    ("build", "--output", ADDRESS),
    ("build", "--cuda", ADDRESS),
    ("mirror", "sync", ADDRESS),
    ("runfile", "add", "13.0.2", f"{ADDRESS}?token=SECRET", "x"),
    ("explain", ADDRESS),
    ("explain", "cuda", ADDRESS),
    ("which", ADDRESS),
    ("which", "--symbol", ADDRESS),
    ("diff", ADDRESS, ADDRESS),
    ("drop", ADDRESS),
    ("audit", ADDRESS),
    ("validate", ADDRESS),
    ("schema", ADDRESS),
    ("export", ADDRESS, "set.json"),
    (ADDRESS,),
    ("check", f"--{ADDRESS}"),
)
"""Calls with an address as a value that is not an address."""


@pytest.mark.parametrize("arguments", _ELSEWHERE, ids=" ".join)
def test_password_in_an_address_at_another_place_is_never_shown(
    run: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    for more in ((), ("--json",)):
        result = run(*arguments, *more)
        assert result.exit_code in {1, 2}, result.output
        assert "SECRET" not in result.output
    assert list(tmp_path.rglob("*SECRET*")) == []
    assert not Path("https:").exists()


@pytest.mark.parametrize(
    "setting",
    [
        f'base-url = "{ADDRESS}"',
        f'base-url = {{a = "{ADDRESS}"}}',
        f'base-url = ["{ADDRESS}"]',
        f'base-url = "https://u:{"x" * 300}SECRET@h.example/"',
        f'channel = "{ADDRESS}"',
        f'data-dir = ["{ADDRESS}"]',
        f'"{ADDRESS}" = 1',
        f'[versions]\nredist = "{ADDRESS}"',
    ],
)
def test_password_in_a_setting_is_never_shown(run: Run, setting: str) -> None:
    Path("cudaredist.toml").write_text(f"{setting}\n")
    for call in (("config",), ("versions", "--json")):
        result = run(*call)
        assert result.exit_code == 2, result.output
        assert "SECRET" not in result.output


def test_password_in_a_traceback_is_never_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError(f"a bug with {ADDRESS}")

    monkeypatch.setattr("cudaredist.cli.session.refuse", fail)
    result = run("versions", "--offline")
    assert result.exit_code == 70
    assert "a bug with https://h.example/x" in result.output
    assert "SECRET" not in result.output
