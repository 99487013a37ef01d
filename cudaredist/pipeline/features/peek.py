"""process-manifests --peek: derive outputs from a zip's file names.

A zip's directory is at its end, in most of NVIDIA's archives within the last 64 KiB, so that range
requests are enough. It cannot be verified without the whole archive. So nothing is cached or
written.
"""

import stat
import zipfile
from collections.abc import Callable
from functools import partial

from cudaredist.archives.members import MemberKind
from cudaredist.errors import CudaRedistError, InvalidArchiveError, worst_exit_code
from cudaredist.features.derive import derive
from cudaredist.features.facts import FACTS_SCHEMA, Entry, Facts
from cudaredist.manifests.manifest_values import Archive
from cudaredist.pipeline.archives import ArchiveService
from cudaredist.pipeline.features.targets import Filter, LocalManifest, LocalManifests
from cudaredist.pipeline.tasks import run_tasks
from cudaredist.reports.archive_reports import PeekedArchive, PeekReport
from cudaredist.reports.report import ErrorReport, OutputFiles
from cudaredist.schema.base import OutputName
from cudaredist.source.protocol import Part
from cudaredist.source.ranged_file import RangedFile


def peek(manifests: LocalManifests, filter_: Filter, service: ArchiveService) -> PeekReport:
    """Return the outputs of the selected zip archives, in manifest order."""
    results: dict[int, PeekedArchive] = {}
    selection, other_count = [], 0
    for manifest in manifests.readable:
        for archive in manifest.manifest.archives:
            if filter_.excluding(archive) is not None:
                continue
            if archive.relative_path.endswith((".zip", ".whl")):
                selection.append((manifest, archive))
            else:
                other_count += 1

    def work(position: int, manifest: LocalManifest, archive: Archive) -> None:
        results[position] = _peeked(service, manifest, archive)

    tasks = [partial(work, n, manifest, archive) for n, (manifest, archive) in enumerate(selection)]
    run_tasks(tasks, service.jobs, service.stop)
    archives = tuple(results[position] for position in sorted(results))
    errors = [*(o.error for o in manifests.broken), *(archive.error for archive in archives)]
    codes = [error.exit_code for error in errors if error is not None]
    return PeekReport(
        manifests=manifests.broken,
        archives=archives,
        left_out=other_count,
        exit_code=worst_exit_code(codes),
    )


def _peeked(service: ArchiveService, manifest: LocalManifest, archive: Archive) -> PeekedArchive:
    (request,) = service.sized([manifest.request(archive)])
    outputs: dict[OutputName, OutputFiles] | None = None
    fetched, undecided, error = 0, 0, None

    def use(read: Callable[[int | None, int, str | None], Part]) -> None:
        nonlocal outputs, fetched, undecided
        file = RangedFile(read)
        try:
            with zipfile.ZipFile(file) as directory:
                members = tuple(map(_entry, directory.infolist()))
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as failure:
            raise InvalidArchiveError(request.name, str(failure)) from failure
        finally:
            fetched += file.fetched
        outputs = OutputFiles.by_output(derive(Facts(schema=FACTS_SCHEMA, members=members)).outputs)
        # Without its contents, an import library looks like a static library.
        undecided = sum(entry.name.lower().endswith(".lib") for entry in members)

    try:
        service.chains[request.bases].read_parts(request.paths, use)
    except CudaRedistError as failure:
        error = ErrorReport.of(failure)
    return PeekedArchive.of(
        manifest.target.redist.name,
        manifest.label,
        archive,
        size=request.size,
        fetched=fetched,
        outputs=outputs,
        undecided_libraries=undecided,
        error=error,
    )


def _entry(info: zipfile.ZipInfo) -> Entry:
    mode = info.external_attr >> 16
    if info.is_dir():
        return Entry(name=info.filename, kind="directory")
    # A link's target is its contents, which are not read.
    kind: MemberKind = "other" if stat.S_ISLNK(mode) else "file"
    return Entry(name=info.filename, kind=kind, mode=stat.S_IMODE(mode), size=info.file_size)
