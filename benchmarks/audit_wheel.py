"""Compare `audit` of a wheel of 3 GB with reading it.

The peer is a plain loop that reads every member with zipfile. Both are processes of their own, and
their CPU times are compared: the ratio (median of three pairs) must not exceed 1.3, and the peak
memory of `audit` must stay below 96 MB.

Usage: audit_wheel.py [WHEEL ...]. By default, a wheel is made from this machine's code: libraries
with 30,000 symbols and device code, and 5,000 small files. Half of the device code cannot be
compressed.
"""

import random
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from process_archives import binaries_of_machine
from support.binaries import Symbol, elf, fatbin
from verdict import check_limit, measure_files

from cudaredist.errors import EXIT_FINDINGS

LIMIT = 1.3
MEMORY_LIMIT = 96
PAIRS = 3
LIBRARY_SIZE = 256 << 20
COPIES = 6
"""Copies of each of the two libraries in the wheel."""
SMALL_FILES = 5000
CODE_SIZE = 32 << 20
SYMBOLS = 30_000
_IMAGE = 512 << 10
_PLAIN_LOOP = """
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    for member in archive.infolist():
        with archive.open(member) as content:
            while content.read(1 << 20):
                pass
"""
_MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL).returncode
if code not in {0, int(sys.argv[1])}:
    sys.exit(f"exit code {code}")
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
"""


class Usage(NamedTuple):
    """The CPU time and peak memory of a process."""

    seconds: float
    megabytes: float


def usage_of(*command: object, result: int = 0) -> Usage:
    """Run a command and measure it. Its exit code must be 0 or `result`.

    A small process starts the command, because the peak memory of a command includes that of the
    process that forks it.
    """
    words = [sys.executable, "-c", _MEASURE, str(result), *map(str, command)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return Usage(*map(float, done.stdout.split()))


def library(code: bytes, device_code: bytes, soname: str) -> bytes:
    """Return a library whose symbol tables precede its dynamic section."""
    names = (
        f"_ZN2at6native{n}launch_kernelIfLi{n % 7}EEvRNS_18TensorIteratorBaseE"
        for n in range(SYMBOLS)
    )
    symbols = [Symbol(name, is_defined=False) for name in ("cudaMalloc", "cudaFree")]
    symbols += [Symbol(name) for name in names]
    rest = LIBRARY_SIZE - len(device_code)
    sections = {".text": (code * (rest // len(code) + 1))[:rest], ".nv_fatbin": device_code}
    return elf(
        soname=soname,
        needed=("libcudart.so.12", "libstdc++.so.6", "libc.so.6"),
        glibc="2.17",
        symbols=symbols,
        sections=sections,
        strings="front",
    )


def device_code(code: bytes, size: int) -> Iterator[bytes]:
    """Yield containers of device code, every second one with random bytes."""
    source = random.Random(0)  # noqa: S311 - every wheel should be the same
    for number in range(size // (2 * _IMAGE)):
        start = number * _IMAGE % (len(code) - _IMAGE)
        payload = source.randbytes(_IMAGE) if number % 2 else code[start : start + _IMAGE]
        yield fatbin([("sm", 80, ""), ("sm", 90, "")], payload=payload)


def sample(folder: Path) -> Path:
    """Write a wheel of 3 GB. Libraries with equal content are compressed once."""
    wheel_path = folder / "example-1-py3-none-manylinux_2_17_x86_64.whl"
    code = b"".join(path.read_bytes() for path in binaries_of_machine(CODE_SIZE))[:CODE_SIZE]
    with zipfile.ZipFile(wheel_path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for number, share in enumerate((0.2, 0.8)):
            images = b"".join(device_code(code, int(LIBRARY_SIZE * share)))
            content = library(code, images, f"libexample{number}.so")
            packer = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
            packed = packer.compress(content) + packer.flush()
            for copy in range(COPIES):
                add_packed(wheel, f"example/{copy}/libexample{number}.so", content, packed)
        for number in range(SMALL_FILES):
            text = code[number * 1000 : number * 1000 + 1000].hex()
            wheel.writestr(f"example/modules/file_{number}.py", text)
    return wheel_path


def add_packed(wheel: zipfile.ZipFile, name: str, content: bytes, packed: bytes) -> None:
    """Add a member that is compressed already."""
    assert wheel.fp is not None
    info = zipfile.ZipInfo(name)
    info.compress_type, info.CRC = zipfile.ZIP_DEFLATED, zlib.crc32(content)
    info.file_size, info.compress_size = len(content), len(packed)
    info.header_offset = wheel.fp.tell()
    wheel.fp.write(info.FileHeader())
    wheel.fp.write(packed)
    wheel.filelist.append(info)
    wheel.NameToInfo[name] = info
    wheel.start_dir = wheel.fp.tell()


def measure(wheel: Path) -> None:
    """Measure one wheel."""
    with zipfile.ZipFile(wheel) as archive:
        unpacked = sum(info.file_size for info in archive.infolist())
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:,.0f} MB, {unpacked / 1e6:,.0f} MB unpacked")
    audit = ("-m", "cudaredist", "audit", wheel, "--json", "--data-dir", ROOT / "data")
    # The first call makes the index of the data, which takes more memory.
    usage_of(sys.executable, "-m", "cudaredist", "which", "libcudart.so.13", *audit[-2:])
    peaks: list[float] = []

    def ratio() -> float:
        pairs = [
            (
                usage_of(sys.executable, "-c", _PLAIN_LOOP, wheel),
                usage_of(sys.executable, *audit, result=EXIT_FINDINGS),
            )
            for _ in range(PAIRS)
        ]
        peaks.extend(ours.megabytes for _, ours in pairs)
        result = median(ours.seconds / plain.seconds for plain, ours in pairs)
        seconds = [median(pair[side].seconds for pair in pairs) for side in (1, 0)]
        label = f"audit / plain loop (<= {LIMIT})"
        print(f"  {label}: {result:.2f} ({seconds[0]:.2f} s, {seconds[1]:.2f} s)")
        return result

    check_limit("audit / plain loop", LIMIT, ratio)
    print(f"  peak memory: {max(peaks):.0f} MB (<= {MEMORY_LIMIT})")
    check_limit("MB of audit", MEMORY_LIMIT, lambda: max(peaks))


if __name__ == "__main__":
    measure_files(measure, sample)
