"""Credentials for package indexes, from addresses, netrc and the keyring."""

import importlib.util
import logging
import netrc
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

import httpx

from cudaredist.jsontext import load_json
from cudaredist.private import open_file
from cudaredist.sources.http_client import origin_of

_log = logging.getLogger(__name__)

Login = tuple[str, str]


class Credentials:
    """The credentials of several indexes, in pip's order: address, netrc, keyring."""

    def __init__(self, indexes: Iterable[httpx.URL], keyring: str) -> None:
        self._indexes = tuple(indexes)
        self._keyring = _keyring_command(keyring)
        self._mutex = threading.Lock()
        self._known: dict[str, Login | None] = {}

    def find(self, url: httpx.URL, is_refused: bool) -> Login | None:  # noqa: FBT001 - the client's callback
        """Return the credentials for an address.

        The keyring is used only if the server refused the other credentials.
        """
        index = self._index_of(url)
        if index.password:
            return None if is_refused else (index.username, index.password)
        service = str(index.copy_with(userinfo=b"", query=None, fragment=None)).rstrip("/") + "/"
        with self._mutex:
            if is_refused and service not in self._known:
                services = (service, index.netloc.decode("ascii"))
                logins = (self._from_keyring(name, index.username) for name in services)
                self._known[service] = next(filter(None, logins), None)
        known = self._known.get(service)
        if is_refused or known is not None:
            return known
        login = _from_netrc(url.host)
        if login is None and index.username:
            return index.username, ""
        return login

    def _index_of(self, url: httpx.URL) -> httpx.URL:
        """Return the closest index on the same server.

        If there is none, return the server's root.
        """
        bare = url.copy_with(raw_path=b"/")
        on_server = [index for index in self._indexes if origin_of(index) == origin_of(url)]
        return max(on_server or [bare], key=lambda index: _shared_parts(index.path, url.path))

    def _from_keyring(self, service: str, name: str) -> Login | None:
        if not self._keyring:
            return None
        command = [*self._keyring, "--mode=creds", "--output=json", "get", service]
        if name:
            command.append(name)
        process = subprocess.run(  # noqa: S603 - the user's own keyring
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        with suppress(ValueError, KeyError, TypeError):
            answer = load_json(process.stdout)
            return str(answer["username"]), str(answer["password"])
        return None


def _shared_parts(folder: str, path: str) -> int:
    """Return the number of leading parts that a folder and a path share."""
    pairs = zip(folder.rstrip("/").split("/"), path.split("/"), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _keyring_command(provider: str) -> tuple[str, ...]:
    """Return the keyring command for a value of pip's option `keyring-provider`."""
    if provider in {"auto", "import"} and importlib.util.find_spec("keyring"):
        return (sys.executable, "-m", "keyring")
    program = shutil.which("keyring") if provider in {"auto", "subprocess"} else None
    return (program,) if program else ()


def _from_netrc(host: str) -> Login | None:
    path = Path(os.environ.get("NETRC") or "~/.netrc")
    try:
        file = path.expanduser()
        if file.exists():
            open_file(file, follow=True).close()  # a pipe or a device would be read forever
        login = netrc.netrc(file).authenticators(host)
    except (FileNotFoundError, RuntimeError):  # a user without a home
        return None
    except (OSError, netrc.NetrcParseError, UnicodeError) as error:
        _log.warning("%s cannot be read and is skipped: %s", path, type(error).__name__)
        return None
    return None if login is None else (login[0], login[2])
