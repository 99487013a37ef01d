"""Build a new root in the staging directory, from archives or from an existing root."""

import posixpath
from collections.abc import Mapping

from cudaredist.commands.materialize.components import without_programs
from cudaredist.commands.materialize.install import archive_of, create_root, plan_repair
from cudaredist.commands.materialize.merge import VERSION_NAME, Plan, make_plan
from cudaredist.commands.materialize.missing_run_paths import missing_run_paths
from cudaredist.commands.materialize.root import altered_paths
from cudaredist.commands.materialize.select_toolkit import SelectedToolkit
from cudaredist.commands.materialize.staging import StagingDirectory
from cudaredist.commands.materialize.toolkit_archives import ToolkitArchives
from cudaredist.commands.materialize.unpack import Unpacked
from cudaredist.formats.toolkit_record import ToolkitRecord
from cudaredist.primitives import Platform
from cudaredist.sets.package_tree import make_tree


class RootBuilder:
    """Builds the root of a toolkit."""

    def __init__(
        self, selected: SelectedToolkit, archives: ToolkitArchives, staging: StagingDirectory
    ) -> None:
        self._toolkit, self._runtime = selected.toolkit, selected.runtime
        self._required = selected.required
        self._archives, self._staging = archives, staging

    def build(self, record: ToolkitRecord | None) -> ToolkitRecord:
        """Build the root, from as few archives as possible if `record` is that of an old root."""
        repaired = None if record is None else self._repair(record)
        return repaired or self._create()

    def _create(self) -> ToolkitRecord:
        """Create the root from the archives of all packages."""
        plan = self._plan(self._archives.unpack(self._toolkit.packages))
        self._check_programs(plan)
        return create_root(self._staging.new, self._toolkit, plan)

    def _repair(self, record: ToolkitRecord) -> ToolkitRecord | None:
        """Create the root from its intact files and some archives.

        Reads only the archives of altered files, and of files whose run paths are to be removed.
        Returns None if the selection differs from the record, or if the archives lack a file.
        """
        is_unknown = record.missing_run_paths is None and not record.run_paths
        if not self._toolkit.has_same_packages(record) or (is_unknown and self._toolkit.patchelf):
            return None
        altered = altered_paths(self._staging.root, record)
        if self._toolkit.patchelf is None:
            altered |= record.changed_files.keys()
        files = altered & record.files.keys() - {VERSION_NAME}
        names = {record.files[path].package for path in files}
        if not names <= self._toolkit.packages.keys():
            return None
        unpacked = self._archives.unpack(
            {name: self._toolkit.packages[name] for name in sorted(names)}
        )
        plan = plan_repair(self._staging.root, record, altered, self._plan(unpacked))
        return None if plan is None else create_root(self._staging.new, self._toolkit, plan)

    def _plan(self, unpacked: Mapping[str, Unpacked]) -> Plan:
        trees = {}
        is_split = self._toolkit.layout == "split"
        for attr, content in unpacked.items():
            package = self._toolkit.packages[attr]
            name = posixpath.basename(archive_of(package).relative_path)
            tree = make_tree(name, content.members, package, is_split=is_split)
            if self._runtime is not None:
                tree = self._runtime.tree(attr, tree)
            trees[attr] = tree
        plan = make_plan(
            trees,
            {attr: content.contents for attr, content in unpacked.items()},
            layout=self._toolkit.layout,
            with_static=self._toolkit.with_static,
            platform=Platform(self._toolkit.package_set.platform.redist_system),
            target=self._toolkit.target,
        )
        if self._runtime is not None:
            plan.links.pop("lib64", None)
        plan.missing_run_paths = missing_run_paths(plan)
        return plan

    def _check_programs(self, plan: Plan) -> None:
        names = {
            posixpath.basename(path).removesuffix(".exe")
            for path in plan.files
            if "bin" in path.split("/")[:-1]
        }
        for component in self._required:
            missing = [name for name in component.programs if name not in names]
            if missing:
                raise without_programs(missing, self._toolkit.package_set)
