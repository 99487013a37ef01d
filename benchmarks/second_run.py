"""Measure the CPU time of process-manifests if everything is cached.

Usage: second_run.py [FOLDER]. The folder has manifests in the structure of NVIDIA's server. The
default is examples/source. Every archive has cached facts of a typical size. The first run derives
features and writes all feature files. The second run is measured, and must take less than 0.1 s of
CPU time per manifest. It uses no network and decompresses nothing.
"""

import sys
import tempfile
import time
from pathlib import Path

from verdict import check_limit

from cudaredist.binaries.file_facts import Binary
from cudaredist.commands.process.feature_run import FeatureRun
from cudaredist.commands.process.report import ProcessReport
from cudaredist.features.facts import FACTS_SCHEMA, Entry, Facts
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.redists import REDISTS
from cudaredist.sources.chain import open_sources
from cudaredist.sources.protocol import Settings
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_cache import remember_facts
from cudaredist.store.selection import Selection
from cudaredist.store.targets import read_local_manifests, targets_in_store

LIMIT = 0.1
"""CPU seconds per manifest."""
LIBRARIES = 12


def sample_facts(version: int) -> Facts:
    """Return the facts of an archive with libraries, links and headers."""
    members = [Entry(name=f"top/include/{n}.h", kind="file", size=9) for n in range(50)]
    for n in range(LIBRARIES):
        needed = ("libc.so.6", "libm.so.6", "libgcc_s.so.1", f"libother.so.{version}")
        binary = Binary(kind="elf", machine="x86_64", is_shared=True, soname=f"l{n}", needed=needed)
        members.append(Entry(name=f"top/lib/lib{n}.so.1.2", kind="file", size=9, binary=binary))
        members.append(Entry(name=f"top/lib/lib{n}.so", kind="symlink", target=f"lib{n}.so.1.2"))
    return Facts(schema=FACTS_SCHEMA, members=tuple(members))


def process(store: Store, cache: Cache) -> ProcessReport:
    """Process all local manifests."""
    targets = targets_in_store(store, REDISTS.values(), ["/nowhere"])
    sources = open_sources(["/nowhere"], Settings())
    return FeatureRun(
        manifests=read_local_manifests(targets, Selection(versions=("all",))),
        service=ArchiveService(chains={("/nowhere",): sources}, cache=cache),
        cache=cache,
    ).run()


def main() -> None:
    """Measure, print, and exit 1 if the limit is exceeded."""
    sample = Path(__file__).parents[1] / "examples" / "source"
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else sample
    with tempfile.TemporaryDirectory() as folder:
        store, cache = Store(Path(folder) / "data"), Cache(Path(folder) / "cache")
        archives = set()
        for path in source.rglob("redistrib_*.json"):
            redist = path.parent.parent.name if path.parent.name == "redist" else path.parent.name
            data = path.read_bytes()
            copy = store.manifests(redist).path / path.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
            archives |= {archive.sha256 for archive in read_manifest(data).archives}
        for number, sha256 in enumerate(sorted(filter(None, archives))):
            remember_facts(cache, sha256, sample_facts(number))
        first = process(store, cache)
        assert first.fetched_bytes == 0

        def measured() -> float:
            started = time.process_time()
            report = process(store, cache)
            cost = (time.process_time() - started) / len(report.manifests)
            assert {outcome.status for outcome in report.manifests} == {"unchanged"}
            size = sum(path.stat().st_size for path in store.root.rglob("feature_*.json"))
            print(
                f"second run over {len(report.manifests)} manifests, {len(report.archives):,} "
                f"archives, {size / 1e6:.0f} MB of features: {cost:.3f} s CPU each (<= {LIMIT})"
            )
            return cost

        check_limit("CPU seconds of a manifest in a second run", LIMIT, measured)


if __name__ == "__main__":
    main()
