"""Repair a root with the archives of altered files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cudaredist.pipeline.toolkit.unpack import Unpacked
from cudaredist.schema.toolkit_record import ToolkitRecord
from cudaredist.toolkit.merge import VERSION_NAME, Plan, PlannedFile


@dataclass(slots=True)
class RestoredFiles:
    """Contents of files, from a root or from archives."""

    hashes: dict[int, str] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    _paths: dict[int, Path] = field(default_factory=dict)
    _numbers: dict[Path, int] = field(default_factory=dict)

    def content(self, origin: int) -> Path:
        """Return the path of a file's content."""
        return self._paths[origin]

    def add(self, path: Path, sha256: str, size: int) -> int:
        """Add a file's content and return its number."""
        number = self._numbers.setdefault(path, len(self._numbers))
        self._paths[number], self.hashes[number], self.sizes[number] = path, sha256, size
        return number


def altered_packages(record: ToolkitRecord, altered: frozenset[str]) -> frozenset[str]:
    """Return the packages of altered files."""
    files = altered & record.files.keys() - {VERSION_NAME}
    return frozenset(record.files[path].package for path in files)


def plan_repair(
    root: Path,
    record: ToolkitRecord,
    altered: frozenset[str],
    plan: Plan,
    unpacked: Mapping[str, Unpacked],
) -> tuple[Plan, RestoredFiles] | None:
    """Return the plan of the whole root and its contents.

    `plan` and `unpacked` belong to the altered packages. Returns None if these packages lack an
    altered file.
    """
    contents = RestoredFiles()
    whole = Plan(
        links={path: link.target for path, link in record.links.items()},
        link_owners={path: link.package for path, link in record.links.items()},
    )
    for path, file in record.files.items():
        if path == VERSION_NAME:
            continue
        if path not in altered:
            number = contents.add(root / path, file.sha256, file.size)
        else:
            planned = plan.files.get(path)
            if planned is None:
                return None
            archive, origin = unpacked[planned.package], planned.origin
            source = archive.content(origin)
            number = contents.add(source, archive.hashes[origin], archive.sizes[origin])
        whole.files[path] = PlannedFile(file.package, number, file.executable)
    return whole, contents
