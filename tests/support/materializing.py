"""A small package set to materialize, and its root."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import Result

from support import binaries
from support.toolkits import MadeSet

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
        outputs=["out", "doc", "dev", "include", "lib", "static"],
        contents={
            "out": {"files": 1, "bytes": 5},
            "doc": {"files": 1, "bytes": 5},
            "dev": {"files": 1, "bytes": len(PC)},
            "include": {"files": 1, "bytes": 10},
            "lib": {"files": 1, "bytes": len(shared("libcublas.so.13"))},
            "static": {"files": 1, "bytes": len(STATIC)},
        },
    )
    made_set.refuse("cuda_gdb", "CUDA 13.0.2 has no cuda_gdb for linux-x86_64")
    return made_set


def record(root: Path = Path("root")) -> Any:
    return json.loads((root / ".cudaredist.json").read_bytes())


def assert_nothing_left(*others: str) -> None:
    """Assert that no root and no staging directory exist."""
    assert {path.name for path in Path().iterdir()} == {"set.json", "source", *others}
