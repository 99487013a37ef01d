"""Tests of pip configuration and index credentials, compared with pip itself."""

import json
import logging
import os
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import httpx
import pytest

from cudaredist.errors import UsageError
from cudaredist.sources.credentials import Credentials, Login
from cudaredist.sources.pip_config import read_pip_config

NONE = {"PIP_CONFIG_FILE": os.devnull}


@pytest.mark.parametrize(
    ("environment", "field", "value"),
    [
        ({"PIP_INDEX_URL": "https://a/simple"}, "indexes", ("https://a/simple",)),
        (
            {"PIP_INDEX_URL": "https://a", "PIP_EXTRA_INDEX_URL": "https://b\n https://c"},
            "indexes",
            ("https://a", "https://b", "https://c"),
        ),
        ({"PIP_INDEX_URL": "https://a", "PIP_NO_INDEX": "true"}, "indexes", ()),
        ({"PIP_INDEX_URL": "https://a", "PIP_NO_INDEX": "0"}, "indexes", ("https://a",)),
        ({"PIP_FIND_LINKS": "/x ~/y"}, "find_links", ("/x", "~/y")),
        ({"PIP_TRUSTED_HOST": "a b:8"}, "access.trusted_hosts", {"a", "b:8"}),
        ({"PIP_TIMEOUT": "7.5"}, "timeout", 7.5),
        ({"PIP_DEFAULT_TIMEOUT": "180"}, "timeout", 180),
        ({}, "timeout", None),
        ({"PIP_CERT": "/ca.pem"}, "access.cert", "/ca.pem"),
        ({"PIP_CLIENT_CERT": "/me.pem"}, "access.client_cert", "/me.pem"),
        ({"PIP_PROXY": "http://p:1"}, "access.proxy", "http://p:1"),
        ({"PIP_PROXY": "me:pw@p:1"}, "access.proxy", "http://me:pw@p:1"),
        ({"PIP_KEYRING_PROVIDER": "subprocess"}, "keyring", "subprocess"),
    ],
)
def test_pip_variable_sets_option(environment: dict[str, str], field: str, value: object) -> None:
    assert attrgetter(field)(read_pip_config(NONE | environment)) == value


def test_empty_variable_keeps_option_of_file(tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://internal/simple\n")
    environment = {"PIP_CONFIG_FILE": str(file), "PIP_INDEX_URL": ""}
    assert read_pip_config(environment).indexes == ("https://internal/simple",)


def test_unreachable_configuration_file_is_skipped() -> None:
    environment = {"PIP_CONFIG_FILE": "n" * 300, "PIP_INDEX_URL": "https://a"}
    assert read_pip_config(environment).indexes[0] == "https://a"


@pytest.mark.skipif(os.name == "nt", reason="needs named pipes")
def test_pipe_or_device_as_configuration_file_is_an_error(tmp_path: Path) -> None:
    """Reading it could take forever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(UsageError, match=f"{path} is not a regular file"):
            read_pip_config({"PIP_CONFIG_FILE": str(path)})
    large = tmp_path / "large"
    large.write_bytes(b"#" * (1 << 20) + b"#")
    with pytest.raises(UsageError, match="more than 1 MiB"):
        read_pip_config({"PIP_CONFIG_FILE": str(large)})
    environment = {"PIP_CONFIG_FILE": str(tmp_path), "PIP_INDEX_URL": "https://a"}
    assert read_pip_config(environment).indexes == ("https://a",)


def test_pip_default_index_is_used_if_none_is_configured() -> None:
    extra = {"PIP_EXTRA_INDEX_URL": "https://b"}
    default, other = read_pip_config(NONE | extra).indexes
    assert default.startswith("https://")
    assert other == "https://b"


def test_default_index_without_pip_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip._internal.models.index", None)
    with pytest.raises(UsageError, match="no package index is configured"):
        read_pip_config(NONE)
    assert read_pip_config(NONE | {"PIP_NO_INDEX": "1"}).indexes == ()


@pytest.mark.parametrize("text", ["index-url = https://user:secret@a\n", "[global]\nx\n", "\xff"])
def test_broken_configuration_file_is_an_error_without_credentials(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "pip.conf"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match="pip") as raised:
        read_pip_config({"PIP_CONFIG_FILE": str(path)})
    assert "secret" not in str(raised.value)


def test_invalid_timeout_is_an_error() -> None:
    with pytest.raises(UsageError, match="timeout"):
        read_pip_config(NONE | {"PIP_TIMEOUT": "soon", "PIP_INDEX_URL": "https://a"})


PIP = """
import json
from pip._internal.commands import create_command
values = create_command("download").parser.get_default_values()
print(json.dumps({name: getattr(values, name) for name in (
    "index_url", "extra_index_urls", "find_links", "trusted_hosts", "cert", "client_cert",
    "proxy", "timeout", "keyring_provider",
)}))
"""


@pytest.mark.parametrize("config_name", ["named.conf", "missing.conf", ""])
def test_configuration_files_are_read_like_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config_name: str
) -> None:
    """Files, sections and variables have the same precedence."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    files = {
        ".pip/pip.conf": "[global]\nindex-url = https://legacy\nproxy = http://legacy\n",
        ".config/pip/pip.conf": (
            "[global]\nindex-url = https://user\nfind-links =\n  /one\n  /two\ncert = /ca.pem\n"
            "extra_index_url = https://c\n[download]\ncert = /d.pem\n[install]\ncert = /i.pem\n"
        ),
        "named.conf": "[global]\ntimeout = 9\nextra-index-url = https://%%41/x\n  https://b\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    if config_name:
        monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / config_name))
    monkeypatch.setenv("PIP_TRUSTED_HOST", "a b")
    monkeypatch.setenv("PIP_CLIENT_CERT", "")
    command = [sys.executable, "-c", PIP]
    pip = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    config = read_pip_config()
    assert config.indexes == (pip["index_url"], *pip["extra_index_urls"])
    assert config.find_links == tuple(pip["find_links"])
    assert config.access.trusted_hosts == set(pip["trusted_hosts"])
    assert config.access.cert == pip["cert"]
    assert config.access.client_cert == pip["client_cert"]
    assert config.access.proxy == (pip["proxy"] or None)
    assert config.timeout == (pip["timeout"] if config_name == "named.conf" else None)
    assert config.keyring == pip["keyring_provider"]


# -- credentials


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("NETRC", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


INDEXES = (
    "https://host/simple",
    "https://alice:one@host/private/simple/",
    "https://bob@named/simple",
    "https://open:8443/simple",
    "https://carl:four@deep/simple",
    "https://dora:five@deep/simple/team",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "login"),
    [
        ("https://host/private/simple/x/", ("alice", "one")),
        ("https://host/private/files/x.whl", ("alice", "one")),
        ("https://host/simple/x/", None),
        ("https://host:444/private/simple/x/", None),
        ("http://host/private/simple/x/", None),
        ("https://elsewhere/private/simple/x/", None),
        ("https://named/simple/x/", ("bob", "")),
        ("https://deep/simple", ("carl", "four")),
        ("https://deep/simple/team/x.whl", ("dora", "five")),
        ("https://known/x.whl", ("carol", "three")),
    ],
)
def test_credentials_of_index_are_sent_to_its_server_only(
    home: Path, address: str, login: Login | None
) -> None:
    (home / ".netrc").write_text("machine known login carol password three\n")
    (home / ".netrc").chmod(0o600)
    credentials = Credentials(map(httpx.URL, INDEXES), "auto")
    url = httpx.URL(address)
    assert credentials.find(url, is_refused=False) == login
    assert credentials.find(url, is_refused=True) is None


def test_broken_netrc_is_a_warning(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # A command in the same process may have configured logging.
    monkeypatch.setattr(logging.getLogger("cudaredist"), "propagate", True)
    caplog.set_level(logging.WARNING, logger="cudaredist")
    (home / ".netrc").write_text("machine host password secret nonsense")
    assert Credentials((), "auto").find(httpx.URL("https://host/x"), is_refused=False) is None
    assert "is skipped" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.skipif(os.name == "nt", reason="needs named pipes")
@pytest.mark.parametrize("file", ["pipe", "/dev/zero"])
def test_pipe_or_device_as_netrc_is_a_warning(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, file: str
) -> None:
    monkeypatch.setattr(logging.getLogger("cudaredist"), "propagate", True)
    caplog.set_level(logging.WARNING, logger="cudaredist")
    os.mkfifo(home / "pipe")
    monkeypatch.setenv("NETRC", str(home / file))
    assert Credentials((), "auto").find(httpx.URL("https://host/x"), is_refused=False) is None
    assert "is skipped" in caplog.text


KEYRING = """#!/bin/sh
echo "$*" >> {log}
case "$*" in
  *"get https://open:8443/simple/") echo '{{"username": "dave", "password": "four"}}' ;;
  *"get named bob") echo '{{"username": "bob", "password": "five"}}' ;;
  *) exit 1 ;;
esac
"""


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
@pytest.mark.parametrize(
    ("provider", "address", "login", "calls"),
    [
        ("auto", "https://open:8443/simple/x/", ("dave", "four"), 1),
        ("subprocess", "https://named/simple/x/", ("bob", "five"), 2),
        ("subprocess", "https://elsewhere/x/", None, 2),
        ("disabled", "https://open:8443/simple/x/", None, 0),
        ("import", "https://open:8443/simple/x/", None, 0),
    ],
)
def test_keyring_is_called_once_after_refusal(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    provider: str,
    address: str,
    login: Login | None,
    calls: int,
) -> None:
    # The package keyring may be installed, because twine requires it.
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    log, program = home / "log", home / "bin/keyring"
    program.parent.mkdir()
    program.write_text(KEYRING.format(log=log))
    program.chmod(0o700)
    log.touch()
    credentials = Credentials(map(httpx.URL, INDEXES), provider)
    url = httpx.URL(address)
    assert credentials.find(url, is_refused=False) != login or login is None
    assert not log.read_text()
    for _ in range(2):
        assert credentials.find(url, is_refused=True) == login
    assert len(log.read_text().splitlines()) == calls
    if login is not None:
        assert credentials.find(url, is_refused=False) == login
