"""Package sets for tests with their archives."""

import contextlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from typer.testing import Result

from cudaredist.archives.open_archive import open_archive
from cudaredist.errors import CudaRedistError
from cudaredist.features.derive import derive
from cudaredist.sets.file_outputs import ORDER
from support import binaries
from support.factory import package_set, set_archive, set_package
from support.facts import gathered
from support.releases import Files, packed, put

FOLDER = "compute/cuda/redist"
"""Folder of the archives on NVIDIA's server."""


class MadeSet:
    """A package set in the form of `build`, with its archives by path."""

    def __init__(
        self, *, cuda: str = "13.0.2", platform: str = "linux-x86_64", channel: str = "redist"
    ) -> None:
        self.cuda, self.platform, self.channel = cuda, platform, channel
        self.packages: dict[str, dict[str, Any]] = {}
        self.archives: dict[str, bytes] = {}

    def add(
        self,
        attr: str,
        files: Files | None = None,
        *,
        data: bytes | None = None,
        suffix: str | None = None,
        depends: Sequence[str] = (),
        normalise: Sequence[Mapping[str, str | None]] = (),
        is_collapsed: bool = False,
        **changes: Any,
    ) -> str:
        """Add a package with an archive of given files or bytes and return its path."""
        suffix = suffix or ("zip" if self.platform.startswith("windows-") else "tar.xz")
        name = f"{attr}-{self.platform}-1.2.3-archive.{suffix}"
        if self.channel == "wheels":
            name = f"nvidia_{attr}-1.2.3-py3-none-manylinux2014_x86_64.whl"
        data = packed(name, files or {}) if data is None else data
        path = f"{attr}/{name}" if self.channel == "wheels" else f"{attr}/{self.platform}/{name}"
        self.archives[path] = data
        contents = _contents(name, data)
        if is_collapsed:
            contents = {
                "out": {k: sum(c[k] for c in contents.values()) for k in ("files", "bytes")}
            }
        self.packages[attr] = self._package(attr) | {
            "archive": self._archive(path, data),
            "outputs": list(contents) or ["out"],
            "collapsed": "so that it is whole" if is_collapsed else None,
            "contents": contents,
            "normalise": [{"to": None, **change} for change in normalise],
            "depends": [{"attr": n, "output": "out", "kind": "runtime"} for n in depends],
            **changes,
        }
        return path

    def refuse(self, attr: str, text: str, status: str = "unsupported") -> None:
        """Add a package that is not available."""
        reason = {"code": "not-in-manifest", "text": text, "subject": attr, "source": "a test"}
        self.packages[attr] = self._package(attr, status=status, reasons=[reason])

    def alias(self, attr: str, to: str) -> None:
        """Add another name of a package."""
        self.packages[attr] = self.packages[to] | {"attr": attr, "alias_of": to}

    def document(self) -> dict[str, Any]:
        """Return the set's document."""
        return package_set(
            self.packages, release=self.cuda, system=self.platform, channel=self.channel
        )

    def write(self, path: Path) -> Path:
        """Write the document and return its path."""
        path.write_text(json.dumps(self.document()))
        return path

    def put_archives(self, root: Path, *, is_flat: bool = False) -> Path:
        """Write the archives like NVIDIA's server, or to one folder, and return the root."""
        for path, data in self.archives.items():
            name = path.rpartition("/")[2] if is_flat else f"{FOLDER}/{path}"
            put(root, {name: data})
        return root

    def put(self) -> None:
        """Write the document to `set.json` and the archives to `source`."""
        self.write(Path("set.json"))
        self.put_archives(Path("source"))

    def _package(self, attr: str, **changes: Any) -> dict[str, Any]:
        usual = {"release": self.cuda, "version": "1.2.3", "platforms": [self.platform]}
        return set_package(attr, **{**usual, **changes})

    def _archive(self, path: str, data: bytes) -> dict[str, Any]:
        # As in manifests of the wheels channel.
        wheel = {"size": None, "format": "whl"} if self.channel == "wheels" else {}
        return set_archive(path, data, md5=None, platform=self.platform, **wheel)


def _contents(name: str, data: bytes) -> dict[str, dict[str, int]]:
    """Return the sizes of an archive's outputs, or no sizes if it is invalid."""
    with contextlib.suppress(CudaRedistError):
        outputs = derive(
            gathered(open_archive(name, io.BytesIO(data)), is_wheel=name.endswith(".whl"))
        ).outputs
        return {
            output: {"files": outputs[output].files, "bytes": outputs[output].bytes}
            for output in ORDER
            if output == "out" or (output in outputs and outputs[output].files)
        }
    return {}


def listing(root: Path) -> dict[str, str | bytes]:
    """Return the contents of files and the targets of links in a folder."""
    return {
        path.relative_to(root).as_posix(): path.readlink().as_posix()
        if path.is_symlink()
        else path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or not path.is_dir()
    }


def modes(root: Path) -> dict[str, int]:
    """Return the permission bits of files in a folder."""
    return {
        path.relative_to(root).as_posix(): path.stat().st_mode & 0o7777
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def modes_of_all(root: Path) -> set[int]:
    """Return the permission bits of a folder, and of all files and folders in it."""
    paths = [root, *(path for path in root.rglob("*") if not path.is_symlink())]
    return {path.stat().st_mode & 0o7777 for path in paths}


# -- a set to materialize

PROGRAM = binaries.elf(kind="program", needed=("libc.so.6",))
STATIC = binaries.ar({"a.o": b"object"})
PC = b"cudaroot=/usr/local/cuda-13.0\nlibdir=${cudaroot}/targets/x86_64-linux/lib\n"
PC += b"includedir=${cudaroot}/targets/x86_64-linux/include\n\nName: cublas\nDescription: x\n"
PC += b"Version: 13.0\nLibs: -L${libdir} -lcublas\nCflags: -I${includedir}\n"

Materialize = Callable[..., Result]


def shared(name: str) -> bytes:
    return binaries.elf(soname=name, needed=("libc.so.6",))


def put_packages(made_set: MadeSet) -> MadeSet:
    """Add the smallest packages that cover every case to a set."""
    made_set.add(
        "cuda_nvcc",
        {
            "LICENSE": b"EULA of nvcc\n",
            "bin/nvcc": PROGRAM,
            "bin/ptxas": PROGRAM + b"ptxas",
            "bin/fatbinary": PROGRAM + b"fatbinary",
            "bin/crt/link.stub": b"// stub\n",
            "nvvm/bin/cicc": PROGRAM + b"cicc",
            "nvvm/lib64/libnvvm.so.4": shared("libnvvm.so.4"),
            "include/crt/host.h": b"// same\n",
        },
        depends=["cuda_crt"],
        is_collapsed=True,
    )
    made_set.add("cuda_crt", {"LICENSE": b"EULA\n", "include/crt/host.h": b"// same\n"})
    made_set.add(
        "cuda_cudart",
        {
            "LICENSE": b"EULA\n",
            "lib/libcudart.so.13.0.96": shared("libcudart.so.13"),
            "lib/libcudart.so.13": "libcudart.so.13.0.96",
            "lib/libcudart.so": "libcudart.so.13",
            "lib/libcudart_static.a": STATIC,
            "lib/stubs/libcuda.so": shared("libcuda.so.1"),
            "lib64": "lib",
            "include/cuda.h": b"// cuda\n",
        },
        is_collapsed=True,
    )
    sizes = {"out": 5, "doc": 5, "dev": len(PC), "include": 10}
    sizes |= {"lib": len(shared("libcublas.so.13")), "static": len(STATIC)}
    made_set.add(
        "libcublas",
        {
            "LICENSE": b"EULA\n",
            "docs/README": b"read\n",
            "lib/11/libcublas.so.11": shared("libcublas.so.11"),
            "lib/13/libcublas.so.13": shared("libcublas.so.13"),
            "lib/13/libcublas.so": "libcublas.so.13",
            "lib/13/libcublas_static.a": STATIC,
            "include/cublas.h": b"// cublas\n",
            "pkg-config/cublas-13.0.pc": PC,
        },
        depends=["cuda_cudart"],
        normalise=[{"op": "lift", "from": "lib/13", "to": "lib"}],
        outputs=list(sizes),
        contents={name: {"files": 1, "bytes": size} for name, size in sizes.items()},
    )
    made_set.refuse("cuda_gdb", "CUDA 13.0.2 has no cuda_gdb for linux-x86_64")
    return made_set


def record(root: Path = Path("root")) -> Any:
    return json.loads((root / ".cudaredist.json").read_bytes())


def assert_nothing_left(*others: str) -> None:
    """Assert that no root and no staging directory exist."""
    assert {path.name for path in Path().iterdir()} == {"set.json", "source", *others}
