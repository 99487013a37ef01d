"""What each command does, without a terminal: sources, a store and options in, a report out.

Nothing here prints or exits; an item that fails becomes an outcome
with its error, and the others go on.
"""

from cudaredist.pipeline.build import build_one, build_sets, requests_for, set_bytes
from cudaredist.pipeline.bump import Bump
from cudaredist.pipeline.check import check_data
from cudaredist.pipeline.cluster import dask_engine
from cudaredist.pipeline.diff import diff
from cudaredist.pipeline.download import Destination, ManifestDownload, into_folder, into_store
from cudaredist.pipeline.materialize import (
    Materialization,
    read_component_policy,
    read_package_set,
    selected,
)
from cudaredist.pipeline.peek import peek
from cudaredist.pipeline.plan import FeatureTarget, Filter, in_folder, in_store
from cudaredist.pipeline.process import FeatureRun
from cudaredist.pipeline.roots import remove_root, verify_root
from cudaredist.pipeline.selection import ALL, LATEST, Selection
from cudaredist.pipeline.set_data import read_set_data
from cudaredist.pipeline.summary import summarize
from cudaredist.pipeline.tables import (
    read_gpu_policy,
    read_gpus,
    read_nvcc_compat,
    read_nvcc_policy,
    update_gpus,
    update_nvcc_compat,
)
from cudaredist.pipeline.validate import validate_files
from cudaredist.pipeline.versions import read_versions
from cudaredist.pipeline.which import which

__all__ = [
    "ALL",
    "LATEST",
    "Bump",
    "Destination",
    "FeatureRun",
    "FeatureTarget",
    "Filter",
    "ManifestDownload",
    "Materialization",
    "Selection",
    "build_one",
    "build_sets",
    "check_data",
    "dask_engine",
    "diff",
    "in_folder",
    "in_store",
    "into_folder",
    "into_store",
    "peek",
    "read_component_policy",
    "read_gpu_policy",
    "read_gpus",
    "read_nvcc_compat",
    "read_nvcc_policy",
    "read_package_set",
    "read_set_data",
    "read_versions",
    "remove_root",
    "requests_for",
    "selected",
    "set_bytes",
    "summarize",
    "update_gpus",
    "update_nvcc_compat",
    "validate_files",
    "verify_root",
    "which",
]
