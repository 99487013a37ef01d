"""Laying out one archive against `xz -dc | tar x` on the same archive to the same disk, in one run.

Usage: materialize.py [ARCHIVE.tar.xz ...]; without one, an archive of this interpreter's own
binaries is made (about 100 MB unpacked). Ours proves the archive's hash, hashes and examines every
file, and writes the record. Five pairs each, medians count; our side is measured inside the
process. Beside that, the peak memory of a process that does nothing else.
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
from verdict import hold

from cudaredist.pipeline.archives import ArchiveService
from cudaredist.pipeline.toolkit.install import Toolkit
from cudaredist.pipeline.toolkit.materialize_set import Materialization, read_package_set
from cudaredist.source.chain import open_sources
from cudaredist.source.protocol import Settings

LIMIT = 1.4
MEMORY_LIMIT = 200
"""MB that laying out one archive may take."""
PAIRS = 5


def write_set(archive: Path, folder: Path) -> Path:
    """Write a package set whose one package is the archive, which need not be read for it."""
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


def lay_out(set_path: Path, archives: Path, root: Path) -> None:
    """Lay out a set as the command does with one job."""
    package_set, sha256 = read_package_set(set_path)
    sources = open_sources([str(archives)], Settings())
    toolkit = Toolkit(
        package_set=package_set,
        set_sha256=sha256,
        packages=package_set.packages,
        layout="merged",
        with_static=True,
    )
    report = Materialization(
        toolkit=toolkit,
        required=(),
        root=root,
        sources=None,
        archives=archives,
        at_hand=ArchiveService(chains={(): sources}),
    ).run()
    assert report.status == "written"
    assert report.files > 1


def unpack_only(archive: Path, folder: Path) -> None:
    """Unpack with xz and tar, which prove and remember nothing."""
    folder.mkdir()
    command = f"xz -T1 -dc {shlex.quote(str(archive))} | tar -x -C {shlex.quote(str(folder))}"
    subprocess.run(["sh", "-c", command], check=True)


def peak_memory(set_path: Path, archives: Path, root: Path) -> float:
    """Return the MB that a process of its own takes to lay out a set."""
    code = (
        "import re, sys; from pathlib import Path; sys.path.insert(0, sys.argv[4]);"
        "from materialize import lay_out; lay_out(*map(Path, sys.argv[1:4]));"
        "text = Path('/proc/self/status').read_text();"
        "print(int(re.search(r'VmHWM:\\s*(\\d+)', text)[1]) / 1024)"
    )
    words = [set_path, archives, root, Path(__file__).parent]
    command = [sys.executable, "-c", code, *map(str, words)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(archive: Path, folder: Path) -> None:
    """Measure everything about one archive; exits 1 beyond a limit."""
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.0f} MB")
    set_path = write_set(archive, folder)
    root, other = folder / "root", folder / "tar"

    def ours() -> float:
        shutil.rmtree(root, ignore_errors=True)
        return timed(lambda: lay_out(set_path, archive.parent, root))

    def theirs() -> float:
        shutil.rmtree(other, ignore_errors=True)
        return timed(lambda: unpack_only(archive, other))

    def ratio() -> float:
        pairs = [(theirs(), ours()) for _ in range(PAIRS)]
        found = median(own / peer for peer, own in pairs)
        seconds = (median(pair[1] for pair in pairs), median(pair[0] for pair in pairs))
        shown = f"{found:.2f} ({seconds[0]:.2f} s, {seconds[1]:.2f} s)"
        print(f"  lay out / xz | tar (<= {LIMIT}): {shown}")
        return found

    hold(LIMIT, ratio)
    files = json.loads((root / ".cudaredist.json").read_bytes())["files"].values()
    print(f"  {sum(file['size'] for file in files) / 1e6:.0f} MB in {len(files):,} files")
    shutil.rmtree(root)
    memory = peak_memory(set_path, archive.parent, root)
    print(f"  peak memory: {memory:.0f} MB (<= {MEMORY_LIMIT})")
    hold(MEMORY_LIMIT, lambda: memory)


def main() -> None:
    """Measure the archives named, or one made here."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archives = [Path(word).resolve() for word in sys.argv[1:]]
        for archive in archives or [sample(folder)]:
            measure(archive, folder)


if __name__ == "__main__":
    main()
