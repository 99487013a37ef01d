"""mirror verify: compare a mirror with its lock, offline."""

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TypeAlias

from cudaredist.commands.mirror.mirror_folder import MirrorFolder, mode_for_all_users
from cudaredist.commands.mirror.mirror_pages import generated_files
from cudaredist.commands.mirror.mirror_paths import (
    archive_path_in,
    mirrored_manifests,
    published_path,
)
from cudaredist.commands.mirror.report import DefectKind, MirrorDefect, MirrorVerifyReport
from cudaredist.errors import ReadingFrom, worst_exit_code
from cudaredist.formats.mirror_lock import METADATA_SUFFIX, MIRROR_LOCK, MirrorFile
from cudaredist.formats.names import Channel
from cudaredist.grouping import grouped
from cudaredist.hints import command_line, quoted
from cudaredist.primitives import Sha256, parse_label, sha256_of
from cudaredist.progress import Progress
from cudaredist.store.data_folder import Store
from cudaredist.store.files import has_bytes, read_file

_Inode: TypeAlias = tuple[int, int]


@dataclass
class MirrorVerification:
    """One run of mirror verify."""

    mirror: MirrorFolder
    jobs: int
    progress: Progress
    _files: dict[str, MirrorFile] = field(default_factory=dict)
    _inodes: dict[str, _Inode] = field(default_factory=dict)
    """Each recorded regular file's inode."""
    _hashes: dict[_Inode, Sha256 | None] = field(default_factory=dict)

    def run(self) -> MirrorVerifyReport:
        """Read each distinct content once, and report all defects.

        Raises `UsageError` if the folder is not a mirror, and `InvalidFileError` if its lock is
        invalid.
        """
        self._files = self.mirror.records()
        self._read_contents()
        defects = [*self._altered(), *self._unlinked()]
        pages = generated_files(self._files)
        defects += [*self._pages(pages), *self._manifests("redist"), *self._manifests("wheels")]
        known = {*self._files, *pages, MIRROR_LOCK}
        strays = set(self.mirror.served(known)) - known
        defects += (self._defect("extra", path, f"is not in {MIRROR_LOCK}") for path in strays)
        defects += self._unshared(known)
        sizes = {file.sha256: file.size for file in self._files.values()}
        return MirrorVerifyReport(
            folder=str(self.mirror.root),
            files=len(self._files),
            contents=len(sizes),
            size=sum(sizes.values()),
            defects=tuple(sorted(defects, key=lambda defect: (defect.path, defect.kind))),
            exit_code=worst_exit_code(defect.exit_code for defect in defects),
        )

    def _defect(self, kind: DefectKind, path: str, message: str) -> MirrorDefect:
        root = quoted(str(self.mirror.root))
        hint = f"run `{command_line('mirror sync', root)}` with the selection of the mirror"
        if kind == "extra":
            hint = f"run `cudaredist mirror prune {root}`"
        elif kind in {"altered", "wrong-link"}:
            file = quoted(str(self.mirror.path(path)))
            hint = f"run `rm {file}`, then {hint.removeprefix('run ')}"
        elif kind == "mode":
            hint = f"run `chmod a+rX {quoted(str(self.mirror.path(path)))}`"
        return MirrorDefect.of(kind, message, path=path, hint=hint)

    # -- recorded files

    def _read_contents(self) -> None:
        """Hash each inode of a recorded file once."""
        first: dict[_Inode, str] = {}
        for path in self._files:
            file = self.mirror.path(path)
            with ReadingFrom(file), suppress(FileNotFoundError, NotADirectoryError):
                about = file.lstat()
                if stat.S_ISREG(about.st_mode):
                    self._inodes[path] = about.st_dev, about.st_ino
                    first.setdefault(self._inodes[path], path)
        self.progress.expect(len(first), sum(self._files[path].size for path in first.values()))

        def read(path: str) -> Sha256 | None:
            sha256 = self.mirror.hash_at(path)
            self.progress.done(self._files[path].size)
            return sha256

        with ThreadPoolExecutor(self.jobs) as pool:
            self._hashes = dict(zip(first, pool.map(read, first.values()), strict=True))

    def _altered(self) -> Iterator[MirrorDefect]:
        """Report recorded files that are missing or have other bytes."""
        linked = grouped((inode, path) for path, inode in self._inodes.items())
        for path, file in self._files.items():
            if path not in self._inodes:
                is_there = os.path.lexists(self.mirror.path(path))
                kind: DefectKind = "altered" if is_there else "missing"
                message = "is not a regular file" if is_there else f"is in {MIRROR_LOCK} only"
                yield self._defect(kind, path, message)
                continue
            inode = self._inodes[path]
            sha256 = self._hashes[inode]
            if sha256 == file.sha256:
                continue
            other = next((x for x in linked[inode] if self._files[x].sha256 == sha256), None)
            if other is not None:
                yield self._defect("wrong-link", path, f"is a hard link to {other}")
            else:
                message = f"SHA-256 is {sha256}, and {MIRROR_LOCK} states {file.sha256}"
                yield self._defect("altered", path, message)

    def _unlinked(self) -> Iterator[MirrorDefect]:
        """Report intact files that are copies instead of hard links.

        Metadata is written for each wheel. Wheels for several platforms can have the same.
        """
        first: dict[tuple[Sha256, int], str] = {}
        archives = (path for path in self._inodes if not path.endswith(METADATA_SUFFIX))
        for path in archives:
            inode, sha256 = self._inodes[path], self._files[path].sha256
            if self._hashes[inode] == sha256:
                # Hard links to another disk are impossible.
                other = first.setdefault((sha256, inode[0]), path)
                if self._inodes[other] != inode:
                    message = f"is a copy of {other} instead of a hard link"
                    yield self._defect("not-linked", path, message)

    def _unshared(self, known: Iterable[str]) -> Iterator[MirrorDefect]:
        """Report files and folders that not all users can read, so that a web server may not."""
        paths = {PurePosixPath(path) for path in known}
        folders = {folder for path in paths for folder in path.parents[:-1]}
        for path in sorted(paths | folders):
            file = self.mirror.path(str(path))
            if mode_for_all_users(file) is not None:
                mode = stat.S_IMODE(file.stat().st_mode)
                message = f"not all users can read it (mode {mode:04o})"
                yield self._defect("mode", str(path), message)

    # -- the lock and the files made from it

    def _pages(self, pages: Mapping[str, bytes]) -> Iterator[MirrorDefect]:
        """Report generated files that do not agree with the lock."""
        for path, expected in pages.items():
            file = self.mirror.path(path)
            if not os.path.lexists(file):
                yield self._defect("missing", path, f"is not generated from {MIRROR_LOCK} yet")
            elif not has_bytes(file, expected):
                yield self._defect("lock", path, f"does not agree with {MIRROR_LOCK}")

    def _manifests(self, channel: Channel) -> Iterator[MirrorDefect]:
        """Report manifests that are changed, and records that contradict a manifest."""
        store = self.mirror.store(channel)
        yield from self._fetched_manifests(store)
        # Two manifests may state one path with different contents: upstream has one of them.
        stated: dict[str, dict[Sha256, str]] = defaultdict(dict)
        for manifest in mirrored_manifests(store).readable:
            if channel == "redist":
                stated[published_path(manifest)][manifest.sha256] = manifest.name
            for archive in manifest.manifest.archives:
                path = archive_path_in(manifest, archive, channel)
                if path is not None and archive.sha256 is not None:
                    stated[path][archive.sha256] = manifest.name
        for path, names in stated.items():
            file = self._files.get(path)
            if file is not None and file.sha256 not in names:
                sha256, name = next(iter(names.items()))
                message = (
                    f"{MIRROR_LOCK} states SHA-256 {file.sha256}, and the manifest {name} {sha256}"
                )
                yield self._defect("lock", path, message)

    def _fetched_manifests(self, store: Store) -> Iterator[MirrorDefect]:
        """Compare the manifests as fetched with their own lock."""
        for redist, labels in store.lock().redists.items():
            for text, entry in labels.items():
                place = store.manifests(redist).path_of(parse_label(text))
                path = self.mirror.name_of(place)
                data = read_file(place)
                if data is None:
                    yield self._defect("missing", path, "is recorded in the lock of manifests only")
                elif (sha256 := sha256_of(data)) != entry.sha256:
                    message = f"SHA-256 is {sha256}, but the lock states {entry.sha256}"
                    yield self._defect("altered", path, message)
