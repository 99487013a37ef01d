"""Package sets: one CUDA release on one platform, computed from the data files and explained.

Everything here is pure: values in, values out, the same for the same. `assemble` is the order of
the work; each other module is one of its questions.
"""

from cudaredist.packagesets.assemble import (
    ESSENTIAL,
    Request,
    build_set,
    check_platform,
    resolve_platform,
)
from cudaredist.packagesets.inputs import (
    CUDA,
    HeldFeatures,
    HeldManifest,
    KnownName,
    Policies,
    SetData,
)
from cudaredist.packagesets.invariants import (
    NEED_FEATURES,
    RUN_INVARIANTS,
    SET_INVARIANTS,
    Broken,
    Invariant,
    Violation,
    available_entries,
    check_run,
    check_set,
    is_further_version,
)
from cudaredist.packagesets.platforms import UNSUPPORTED, platform_of_system
from cudaredist.packagesets.version_choice import find_cuda, find_release, newest_patches

__all__ = [
    "CUDA",
    "ESSENTIAL",
    "NEED_FEATURES",
    "RUN_INVARIANTS",
    "SET_INVARIANTS",
    "UNSUPPORTED",
    "Broken",
    "HeldFeatures",
    "HeldManifest",
    "Invariant",
    "KnownName",
    "Policies",
    "Request",
    "SetData",
    "Violation",
    "available_entries",
    "build_set",
    "check_platform",
    "check_run",
    "check_set",
    "find_cuda",
    "find_release",
    "is_further_version",
    "newest_patches",
    "platform_of_system",
    "resolve_platform",
]
