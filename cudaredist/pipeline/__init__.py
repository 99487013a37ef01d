"""What each command does, without a terminal: sources, a store and options in, a report out.

Nothing here prints or exits; an item that fails becomes an outcome
with its error, and the others go on.
"""

from cudaredist.pipeline.archives import ArchiveService
from cudaredist.pipeline.bump_data import Bump
from cudaredist.pipeline.check_data import check_data
from cudaredist.pipeline.diff_releases import diff
from cudaredist.pipeline.features.dask import dask_engine
from cudaredist.pipeline.features.peek import peek
from cudaredist.pipeline.features.process import FeatureRun
from cudaredist.pipeline.features.targets import (
    FeatureTarget,
    Filter,
    read_local_manifests,
    targets_in_folder,
    targets_in_store,
)
from cudaredist.pipeline.find_providers import which
from cudaredist.pipeline.manifests.download import (
    Destination,
    ManifestDownload,
    into_folder,
    into_store,
)
from cudaredist.pipeline.manifests.list_versions import read_versions
from cudaredist.pipeline.selection import ALL, LATEST, Selection
from cudaredist.pipeline.sets.build_sets import (
    build_one,
    make_sets,
    set_bytes,
    specs_for,
    write_sets,
)
from cudaredist.pipeline.sets.load import read_set_data
from cudaredist.pipeline.sets.summarize import summarize
from cudaredist.pipeline.tables.update import (
    TableRun,
    read_gpu_policy,
    read_gpus,
    read_nvcc_compat,
    read_nvcc_policy,
    update_gpus,
    update_nvcc_compat,
)
from cudaredist.pipeline.toolkit.materialize_set import (
    Materialization,
    read_component_policy,
    read_package_set,
    selected,
)
from cudaredist.pipeline.toolkit.root import remove_root, verify_root
from cudaredist.pipeline.validate_files import validate_files

__all__ = [
    "ALL",
    "LATEST",
    "ArchiveService",
    "Bump",
    "Destination",
    "FeatureRun",
    "FeatureTarget",
    "Filter",
    "ManifestDownload",
    "Materialization",
    "Selection",
    "TableRun",
    "build_one",
    "check_data",
    "dask_engine",
    "diff",
    "into_folder",
    "into_store",
    "make_sets",
    "peek",
    "read_component_policy",
    "read_gpu_policy",
    "read_gpus",
    "read_local_manifests",
    "read_nvcc_compat",
    "read_nvcc_policy",
    "read_package_set",
    "read_set_data",
    "read_versions",
    "remove_root",
    "selected",
    "set_bytes",
    "specs_for",
    "summarize",
    "targets_in_folder",
    "targets_in_store",
    "update_gpus",
    "update_nvcc_compat",
    "validate_files",
    "verify_root",
    "which",
    "write_sets",
]
