"""Compare materialize of one archive with `xz -dc | tar x`.

Usage: materialize.py [ARCHIVE.tar.xz ...]. The default is an archive of this interpreter's binaries
(about 100 MB unpacked). cudaredist also verifies the archive's hash, hashes and inspects every
file, and writes the record. The result is the median of five pairs. The time of cudaredist is
measured inside the process. Also measures the peak memory of a separate process.
"""

import hashlib
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from process_archives import sample, timed
from support.toolkits import MadeSet
from verdict import check_limit

from cudaredist.cli.options import Network
from cudaredist.cli.session import Session
from cudaredist.commands.materialize.materialize_set import materialize_set
from cudaredist.commands.materialize.options import MaterializeOptions

LIMIT = 1.4
MEMORY_LIMIT = 200
"""Largest memory for one archive, in MB."""
PAIRS = 5


def write_set(archive: Path, folder: Path) -> Path:
    """Write a package set with the archive as its only package.

    The archive is not read.
    """
    made = MadeSet()
    path = made.add("sample", {})
    with archive.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    made.packages["sample"]["contents"] = {}
    made.packages["sample"]["archive"] |= {
        "relative_path": path.replace(Path(path).name, archive.name),
        "sha256": sha256,
        "size": archive.stat().st_size,
    }
    return made.write(folder / "set.json")


def create_toolkit(set_path: Path, archives: Path, root: Path) -> None:
    """Create a toolkit root, like the command with one job."""
    network = Network(offline=True)
    options = MaterializeOptions(root=root, archives=archives, network=network, jobs=1)
    with Session(options) as session:
        report = materialize_set(options, set_path, session)
    assert report.status == "written"
    assert report.files > 1


def unpack_only(archive: Path, folder: Path) -> None:
    """Unpack with xz and tar, without verification."""
    folder.mkdir()
    command = f"xz -T1 -dc {shlex.quote(str(archive))} | tar -x -C {shlex.quote(str(folder))}"
    subprocess.run(["sh", "-c", command], check=True)


def peak_memory(set_path: Path, archives: Path, root: Path) -> float:
    """Return the peak memory of a separate process, in MB."""
    code = (
        "import re, sys; from pathlib import Path; sys.path.insert(0, sys.argv[4]);"
        "from materialize import create_toolkit; create_toolkit(*map(Path, sys.argv[1:4]));"
        "text = Path('/proc/self/status').read_text();"
        "print(int(re.search(r'VmHWM:\\s*(\\d+)', text)[1]) / 1024)"
    )
    words = [set_path, archives, root, Path(__file__).parent]
    command = [sys.executable, "-c", code, *map(str, words)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(archive: Path, folder: Path) -> None:
    """Measure one archive."""
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.0f} MB")
    set_path = write_set(archive, folder)
    root, other = folder / "root", folder / "tar"

    def ours() -> float:
        shutil.rmtree(root, ignore_errors=True)
        return timed(lambda: create_toolkit(set_path, archive.parent, root))

    def theirs() -> float:
        shutil.rmtree(other, ignore_errors=True)
        return timed(lambda: unpack_only(archive, other))

    def ratio() -> float:
        pairs = [(theirs(), ours()) for _ in range(PAIRS)]
        result = median(own / peer for peer, own in pairs)
        seconds = (median(pair[1] for pair in pairs), median(pair[0] for pair in pairs))
        text = f"{result:.2f} ({seconds[0]:.2f} s, {seconds[1]:.2f} s)"
        print(f"  materialize / xz | tar (<= {LIMIT}): {text}")
        return result

    check_limit("materialize / xz and tar", LIMIT, ratio)
    files = json.loads((root / ".cudaredist.json").read_bytes())["files"].values()
    print(f"  {sum(file['size'] for file in files) / 1e6:.0f} MB in {len(files):,} files")
    shutil.rmtree(root)
    memory = peak_memory(set_path, archive.parent, root)
    print(f"  peak memory: {memory:.0f} MB (<= {MEMORY_LIMIT})")
    check_limit("MB of materialize", MEMORY_LIMIT, lambda: memory)


def main() -> None:
    """Measure the given archives, or a sample."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archives = [Path(word).resolve() for word in sys.argv[1:]]
        for archive in archives or [sample(folder)]:
            measure(archive, folder)


if __name__ == "__main__":
    main()
