"""Small releases on a server with the layout of NVIDIA's, for the examples of pages."""

import hashlib
import re

from cudaredist.redists import NVIDIA_BASE, REDISTS
from support.archives import gz, tar_member, tar_of
from support.bumps import cuda, publish
from support.pages import WRITTEN_PAGES
from support.releases import early_release
from support.runfiles import NAME, runfile
from support.server import FaultServer

RELEASES = {
    "cuda": ("12.9.1", "13.0.2"),
    "cudnn": ("9.9.0", "9.10.2"),
    "cutensor": ("2.2.0", "2.3.0"),
}
EARLY = "13.4.0"


def imitate_nvidia(server: FaultServer) -> dict[str, str]:
    """Serve the files that pages and help texts name. Return the replacements of addresses."""
    for redist, labels in RELEASES.items():
        publish(server, redist, *labels)
    early = early_release(EARLY, cuda(EARLY))
    server.files |= {f"/{path}": data for path, data in early.items()}
    server.files["/release/cuda/redist/"] = (
        f"<pre><a href='redistrib_{EARLY}.json'></a></pre>".encode()
    )
    file = runfile(b"archive")
    runfiles = "/compute/cuda/12.9.1"
    server.files[f"{runfiles}/local_installers/{NAME}"] = file
    sums = f"{hashlib.md5(file, usedforsecurity=False).hexdigest()}  {NAME}\n"
    server.files[f"{runfiles}/docs/sidebar/md5sum.txt"] = sums.encode()
    base = str(REDISTS["tensorrt"].archive_base)
    pages = "".join(page.read_text() for page in WRITTEN_PAGES)
    (path,) = set(re.findall(rf"{re.escape(base)}(\S+\.gz)", pages))
    server.files[path] = gz(tar_of(tar_member("TensorRT-10.16.1.11/lib/libnvinfer.so.10")))
    return {
        NVIDIA_BASE: server.url,
        base: server.url,
        " URL ": f" {server.url}/compute/cuda/redist ",
        " URL/": f" {server.url}{runfiles}/local_installers/",
        "=URL": f"={server.url}{path}",
    }
