"""materialize: install a package set into a toolkit root.

The root is built in a staging directory from verified archives, then renamed: select the packages,
fetch and unpack their archives, build the root, check what it replaces, swap it in.
"""

from functools import partial
from pathlib import Path

from cudaredist.cli.session import Session
from cudaredist.commands.materialize.build_root import RootBuilder
from cudaredist.commands.materialize.existing_root import ExistingRoot
from cudaredist.commands.materialize.oci import write_layout
from cudaredist.commands.materialize.options import MaterializeOptions
from cudaredist.commands.materialize.report import OciImage, ToolkitReport
from cudaredist.commands.materialize.root import toolkit_report
from cudaredist.commands.materialize.select_toolkit import SelectedToolkit, select_toolkit
from cudaredist.commands.materialize.staging import StagingDirectory, remove_tree
from cudaredist.commands.materialize.toolkit_archives import ToolkitArchives
from cudaredist.errors import ContentError, IntegrityError, UsageError, WriteError
from cudaredist.formats.toolkit_record import ToolkitRecord


def materialize_set(
    options: MaterializeOptions, package_set: Path, session: Session
) -> ToolkitReport:
    """Create or update a root, unless it matches already.

    Raises `UsageError` if the root has other files, or if packages would be removed without
    --replace. Raises the errors of the archives. The root is unchanged then.
    """
    selected = select_toolkit(options, package_set, session)
    staging = StagingDirectory(options.root)
    archives = ToolkitArchives(options, selected.toolkit.package_set, staging, session)
    existing_root = ExistingRoot(options, selected.toolkit, staging.root)
    report = partial(_report, options, selected, archives)
    existing = existing_root.read()
    if existing.record is not None and existing.is_current:
        staging.clear_if_idle()
        return report(existing.record, existing.image, "unchanged")
    archives.require_source()
    with staging.locked():
        # Read again: `locked` may have restored a root, or waited for a run that created it.
        existing = existing_root.read()
        if existing.record is not None and existing.is_current:
            staging.clear()
            return report(existing.record, existing.image, "unchanged")
        try:
            record = RootBuilder(selected, archives, staging).build(existing.record)
        except (ContentError, IntegrityError, WriteError, UsageError):
            # A later run would fail in the same way. Free the disk space.
            staging.clear()
            raise
        existing_root.check_replaceable(existing.record)
        image = _write_image(staging, record) if options.layout == "oci" else None
        try:
            staging.swap_in()
        except WriteError:
            staging.clear()
            raise
    return report(record, image, "written")


def _write_image(staging: StagingDirectory, record: ToolkitRecord) -> OciImage:
    """Replace the new root by an image layout with its files."""
    layout = staging.folder / "oci"
    remove_tree(layout)
    image = write_layout(layout, staging.new, record)
    remove_tree(staging.new)
    layout.rename(staging.new)
    return image


def _report(
    options: MaterializeOptions,
    selected: SelectedToolkit,
    archives: ToolkitArchives,
    record: ToolkitRecord,
    image: OciImage | None,
    status: str,
) -> ToolkitReport:
    about: dict[str, object] = {"fetched_bytes": archives.fetched}
    if selected.runtime is not None:
        packages = selected.toolkit.packages.values()
        about |= {
            "libraries": record.libraries,
            "optional_libraries": selected.runtime.optional,
            "full_size": sum(package.unpacked_size for package in packages),
            "device_code": selected.runtime.code,
            "image": image,
        }
    return toolkit_report(options.root, record, status, **about)
