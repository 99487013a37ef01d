"""materialize --check: report what a run would install, without downloads."""

import os
from pathlib import Path

from cudaredist.cli.session import Session
from cudaredist.commands.materialize.install import archive_of
from cudaredist.commands.materialize.oci import read_layout
from cudaredist.commands.materialize.options import MaterializeOptions
from cudaredist.commands.materialize.report import PackageSize, ToolkitReport
from cudaredist.commands.materialize.root import is_intact
from cudaredist.commands.materialize.select_toolkit import SelectedToolkit, select_toolkit
from cudaredist.commands.materialize.staging import StagingDirectory
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK
from cudaredist.store.read_data import read_record


def check_root(options: MaterializeOptions, package_set: Path, session: Session) -> ToolkitReport:
    """Report the packages of a root with their sizes, and whether it is current.

    The sizes are those of the package set. The exit code is 1 if a run would write the root.
    """
    selected = select_toolkit(options, package_set, session)
    toolkit, runtime = selected.toolkit, selected.runtime
    is_current = _is_current(options, selected)
    packages = {
        attr: PackageSize(
            unpacked=package.unpacked_size or None,
            archive=archive_of(package).size,
        )
        for attr, package in toolkit.packages.items()
    }
    of_set = toolkit.package_set
    return ToolkitReport(
        root=str(options.root),
        status="unchanged" if is_current else "would-write",
        cuda=of_set.cuda.release,
        platform=of_set.platform.redist_system,
        target=toolkit.target.platform if toolkit.target else None,
        layout=options.layout,
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


def _is_current(options: MaterializeOptions, selected: SelectedToolkit) -> bool:
    """Check if the root has exactly these packages and unchanged files."""
    path = StagingDirectory(options.root).root
    if not os.path.lexists(path):
        return False
    if options.format == "oci":
        stored = read_layout(path)
        return stored is not None and selected.toolkit.is_recorded(stored[0])
    record = read_record(path)
    is_same = record is not None and selected.toolkit.is_recorded(record)
    return is_same and record is not None and is_intact(path, record, is_quick=True)
