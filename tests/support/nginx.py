"""nginx with a configuration of the documentation, over a folder."""

import contextlib
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import REPOSITORY

from support.pages import blocks

PROGRAM = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
needs_nginx = pytest.mark.skipif(PROGRAM is None, reason="nginx is not installed")

_FRAME = """daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ }}
http {{
    types {{ text/html html; application/json json; }}
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {servers}
}}
"""


@dataclass
class Nginx:
    """A running nginx."""

    url: str
    log_path: Path

    def log(self) -> str:
        """Return the requests so far."""
        return self.log_path.read_text()


def configurations() -> list[str]:
    """Return the configurations on the page about mirrors."""
    page = REPOSITORY / "docs/mirror.md"
    found = [block for block in blocks(page) if "server_name mirror.example" in block]
    assert len(found) == 2
    return found


@contextlib.contextmanager
def serving_folder(mirror: Path, folder: Path, configuration: str) -> Iterator[Nginx]:
    """Serve a mirror by a configuration of the page, without TLS, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    servers = configuration.replace("/srv/cuda", str(mirror.absolute()))
    servers = re.sub(r"listen [^;]+;", f"listen 127.0.0.1:{port};", servers)
    folder.mkdir()
    (folder / "nginx.conf").write_text(_FRAME.format(folder=folder, servers=servers))
    assert PROGRAM is not None
    process = subprocess.Popen(
        [PROGRAM, "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"]
    )
    try:
        while process.poll() is None:
            with contextlib.suppress(ConnectionRefusedError), socket.socket() as probe:
                probe.connect(("127.0.0.1", port))
                break
            time.sleep(0.01)
        assert process.poll() is None, (folder / "error.log").read_text()
        yield Nginx(f"http://127.0.0.1:{port}", folder / "access.log")
    finally:
        process.terminate()
        process.wait()
