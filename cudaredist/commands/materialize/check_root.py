"""materialize --check: report what a run would install, without downloads."""

from pathlib import Path

from cudaredist.cli.options import parse_size
from cudaredist.cli.session import Session
from cudaredist.commands.materialize.existing_root import ExistingRoot
from cudaredist.commands.materialize.install import archive_of
from cudaredist.commands.materialize.options import MaterializeOptions
from cudaredist.commands.materialize.report import PackageSize, ToolkitReport
from cudaredist.commands.materialize.select_toolkit import select_toolkit
from cudaredist.commands.materialize.staging import StagingDirectory
from cudaredist.commands.materialize.toolkit_archives import refuse_large_download
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK


def check_root(options: MaterializeOptions, package_set: Path, session: Session) -> ToolkitReport:
    """Report the packages of a root with their sizes, and whether it is current.

    The sizes are those of the package set. The exit code is 1 if a run would write the root. Raises
    `UsageError` as a run does: if the root cannot be replaced, or if the download is too large.
    """
    selected = select_toolkit(options, package_set, session)
    toolkit, runtime = selected.toolkit, selected.runtime
    path = StagingDirectory(options.root).root
    is_current = ExistingRoot(options, toolkit, path).read().is_current
    packages = {
        attr: PackageSize(
            unpacked=package.unpacked_size or None,
            archive=archive_of(package).size,
        )
        for attr, package in toolkit.packages.items()
    }
    if not is_current:
        known = sum(size.archive or 0 for size in packages.values())
        refuse_large_download(known, parse_size(options.max_download))
    of_set = toolkit.package_set
    return ToolkitReport(
        root=str(options.root),
        status="unchanged" if is_current else "would-write",
        cuda=of_set.cuda.release,
        platform=of_set.platform.redist_system,
        target=toolkit.target.platform if toolkit.target else None,
        layout=options.tree,
        packages=tuple(packages),
        files=sum(part.files for x in toolkit.packages.values() for part in x.contents.values()),
        size=sum(size.unpacked or 0 for size in packages.values()),
        sizes=packages,
        libraries=tuple(sorted(runtime.names)) if runtime else (),
        optional_libraries=runtime.optional if runtime else (),
        device_code=runtime.code if runtime else None,
        fetched_bytes=0,
        problems=(),
        foreign=(),
        exit_code=EXIT_OK if is_current else EXIT_FINDINGS,
    )
