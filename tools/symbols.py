"""Compare the symbols of whole releases with readelf and pefile, and tables with the facts.

By hand: `python -m tools.symbols DATA CACHE REDIST@LABEL...` reads every wheel of the releases
again and compares each ELF file and each DLL with the facts in the cache. Without a release, it
compares the columns of the tables in DATA/symbols with the facts of every archive in the cache.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from cudaredist.archives.members import Members
from cudaredist.binaries.file_facts import Binary
from cudaredist.features.library_symbols import LibraryBinary, libraries_of
from cudaredist.redists import find_redist
from cudaredist.sources.chain import open_sources
from cudaredist.sources.protocol import WHEELS, Settings
from cudaredist.store.archive_service import ArchiveService
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_cache import known_facts
from cudaredist.store.selection import Selection
from cudaredist.store.symbol_folder import SymbolFolder
from cudaredist.store.targets import read_local_manifests, targets_in_store
from cudaredist.tables.symbols.symbol_table import SymbolColumns
from tools.symbol_oracles import elf_symbols, pe_symbols, pefile_symbols, readelf_symbols

_BLOCK = 1 << 20


class Comparison:
    """Numbers of files and symbols that agree, and all differences."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.differences: list[str] = []

    def release(self, store: Store, cache: Cache, name: str) -> None:
        """Compare every archive of a release."""
        redist, _, label = name.partition("@")
        targets = targets_in_store(store, [find_redist(redist)], (WHEELS,))
        sources = open_sources([WHEELS], Settings())
        service = ArchiveService(chains={targets[0].bases: sources})
        for manifest in read_local_manifests(targets, Selection(versions=(label,))).readable:
            for archive in manifest.manifest.archives:
                facts = known_facts(cache, archive.sha256)
                assert facts is not None, archive.relative_path
                binaries = [entry.binary for entry in facts.members]
                self.counts["archives"] += 1

                def compare(
                    members: Members,
                    binaries: list[Binary | None] = binaries,
                    name: str = archive.relative_path,
                ) -> None:
                    for binary, (member, content) in zip(binaries, members, strict=True):
                        if member.kind == "file":
                            self.member(f"{name} {member.name}", binary, content)

                service.read(manifest.request(archive), compare)
        sources.close()

    def member(self, name: str, binary: Binary | None, content: Iterator[bytes]) -> None:
        """Compare one file of an archive."""
        if binary is None or binary.kind not in {"elf", "pe"}:
            for _ in content:
                pass
            return
        with tempfile.NamedTemporaryFile() as file:
            for chunk in content:
                file.write(chunk)
            file.flush()
            path = Path(file.name)
            elf = binary.kind == "elf"
            theirs = (readelf_symbols(path) if elf else pefile_symbols(path)) or Counter()
        ours = elf_symbols(binary) if elf else pe_symbols(binary)
        what = "readelf" if elf else "pefile"
        self.counts[f"{what}: files"] += 1
        self.counts[f"{what}: symbols"] += sum(ours.values())
        if theirs != ours or "symbols" in binary.unread:
            self.differences.append(f"{name}: {list(theirs - ours)[:3]} {list(ours - theirs)[:3]}")

    def tables(self, store: Store, cache: Cache) -> None:
        """Compare the columns of the tables with the facts of all archives in the cache."""
        folder = SymbolFolder(store.symbol_path)
        documents = ((soname, folder.document(soname)) for soname in folder.names())
        tables = {soname: SymbolColumns.of(document) for soname, document in documents if document}
        for redist in store.redists():
            target = targets_in_store(store, [find_redist(redist)], (WHEELS,))
            for manifest in read_local_manifests(target, Selection(versions=("all",))).readable:
                for archive in manifest.manifest.archives:
                    facts = known_facts(cache, archive.sha256)
                    self.counts["tables: archives" if facts else "tables: unknown archives"] += 1
                    for library in libraries_of(facts) if facts else ():
                        self.column(tables.get(library.soname), library, str(archive.sha256))

    def column(self, table: SymbolColumns | None, library: LibraryBinary, sha256: str) -> None:
        """Compare the symbols of one library in one archive."""
        if not library.has_symbols:
            self.counts["tables: libraries with symbols that are unread"] += 1
            return
        self.counts["tables: columns"] += 1
        release = table.in_archive(sha256) if table else None
        if release is None:
            self.differences.append(f"{library.soname} {sha256}: not in its table")
            return
        ours, theirs = set(release.exports()), set(library.exports())
        self.counts["tables: exports"] += len(theirs)
        if ours != theirs:
            self.differences.append(f"{library.soname} {sha256}: {sorted(ours ^ theirs)[:5]}")
        wanted = {(one.name, one.version) for one in library.imports()}
        imports = {(one.name, one.version) for one in release.imports()}
        self.counts["tables: imports"] += len(imports)
        if not imports <= wanted:
            self.differences.append(f"{library.soname} {sha256}: {sorted(imports - wanted)[:5]}")


def main() -> None:
    """Print the numbers and all differences; exit 1 if there are any."""
    data, cache, *releases = sys.argv[1:]
    comparison, store = Comparison(), Store(Path(data), "wheels")
    for name in releases:
        comparison.release(store, Cache(Path(cache)), name)
    if not releases:
        comparison.tables(store, Cache(Path(cache)))
    for what, count in sorted(comparison.counts.items()):
        print(f"{what}: {count:,}")
    print(f"differences: {len(comparison.differences):,}")
    for line in comparison.differences:
        print(f"  {line}")
    sys.exit(bool(comparison.differences))


if __name__ == "__main__":
    main()
