"""Reader of pip's configuration: its files, then its environment variables.

Formats, paths and precedence follow pip's documentation. pip itself is only imported to get its
default index.
"""

import configparser
import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import platformdirs

from cudaredist.errors import UsageError
from cudaredist.hints import redacted
from cudaredist.private import ForeignFileError, open_file
from cudaredist.sources.http_client import Access

_SECTIONS = ("global", "download")
_FILE = "pip.ini" if os.name == "nt" else "pip.conf"
_LIMIT = 1 << 20
"""Bytes of a configuration file."""
_HINT = "find the file with `pip config debug`"
_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})


class PipConfig(NamedTuple):
    """The options of pip for connections to package indexes."""

    indexes: tuple[str, ...]
    find_links: tuple[str, ...]
    access: Access
    """Certificates, proxy and trusted hosts, without credentials."""
    timeout: float | None
    keyring: str


def read_pip_config(environ: Mapping[str, str] = os.environ) -> PipConfig:
    """Read pip's configuration, or raise `UsageError` if it is invalid."""
    options = _options(environ)
    indexes: list[str] = []
    if options.get("no-index", "").lower() not in _TRUE:
        indexes = options.get("index-url", "").split() or [_default_index()]
        indexes += options.get("extra-index-url", "").split()
    timeout = options.get("timeout") or options.get("default-timeout")
    try:
        seconds = float(timeout) if timeout else None
    except ValueError as error:
        raise UsageError(f"pip's timeout is not a number: {redacted(str(timeout))!r}") from error
    proxy = options.get("proxy")
    return PipConfig(
        indexes=tuple(indexes),
        find_links=tuple(options.get("find-links", "").split()),
        access=Access(
            trusted_hosts=frozenset(options.get("trusted-host", "").split()),
            cert=options.get("cert"),
            client_cert=options.get("client-cert"),
            proxy=proxy if proxy is None or "://" in proxy else f"http://{proxy}",
        ),
        timeout=seconds,
        keyring=options.get("keyring-provider", "auto"),
    )


def _options(environ: Mapping[str, str]) -> dict[str, str]:
    """Return all options with a value, by their long names."""
    parser = configparser.RawConfigParser()
    try:
        for path in _files(environ):
            text = _text_of(path)
            if text is not None:
                parser.read_string(text)
    except (configparser.Error, UnicodeError) as error:
        # The error message quotes the line, and the line may contain a password.
        message = f"pip's configuration cannot be read: {type(error).__name__}"
        raise UsageError(message, hint=_HINT) from error
    pairs = [pair for name in _SECTIONS if parser.has_section(name) for pair in parser.items(name)]
    pairs += [(name[4:], value) for name, value in environ.items() if name.startswith("PIP_")]
    # An option with an empty value is not set.
    return {
        name.lower().replace("_", "-").removeprefix("--"): value for name, value in pairs if value
    }


def _text_of(path: Path) -> str | None:
    """Return the text of a configuration file, None if it cannot be opened, as for pip.

    Raises `UsageError` for a pipe or a device, which could be read forever, and for a file that is
    too large.
    """
    try:
        with open_file(path, follow=True) as file:
            data = file.read(_LIMIT + 1)
    except ForeignFileError as error:
        if path.is_dir():
            return None
        problem = "is not a regular file"
        raise UsageError(f"pip's configuration {path} {problem}", hint=_HINT) from error
    except OSError:
        return None
    if len(data) > _LIMIT:
        raise UsageError(f"pip's configuration {path} has more than 1 MiB", hint=_HINT)
    return data.decode()


def _files(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the paths of pip's configuration files, lowest precedence first."""
    override = environ.get("PIP_CONFIG_FILE", "")
    if override == os.devnull:
        return
    folders = platformdirs.PlatformDirs("pip", appauthor=False, roaming=True, multipath=True)
    yield from (Path(folder, _FILE) for folder in folders.site_config_dir.split(os.pathsep))
    yield Path("/etc", _FILE)
    if not os.path.lexists(override):
        with contextlib.suppress(RuntimeError):  # a user without a home
            home = Path.home()
            own = folders.user_config_dir
            for folder in (home / ".pip", home / "pip", home / ".config/pip", own):
                yield Path(folder, _FILE)
    yield Path(sys.prefix, _FILE)
    if override:
        yield Path(override)


def _default_index() -> str:
    """Return pip's default index."""
    try:
        from pip._internal.models.index import PyPI  # noqa: PLC0415 - only if none is configured
    except ImportError as error:
        message = "no package index is configured, and pip is not installed to provide its default"
        raise UsageError(message, hint="set PIP_INDEX_URL, or run `pip install pip`") from error
    return str(PyPI.simple_url)
