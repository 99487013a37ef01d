"""Package sets: one CUDA release on one platform, computed from the data files and explained.

Everything here is pure: values in, values out, the same for the same. `assemble` is the order of
the work; each other module is one of its questions.
"""

from cudaredist.packagesets.assemble import ESSENTIAL, Request, build_set, resolve_platform
from cudaredist.packagesets.data import (
    CUDA,
    HeldFeatures,
    HeldManifest,
    KnownName,
    Policies,
    SetData,
)
from cudaredist.packagesets.platforms import UNSUPPORTED, platform_of_system
from cudaredist.packagesets.versions import find_cuda, newest_patches

__all__ = [
    "CUDA",
    "ESSENTIAL",
    "UNSUPPORTED",
    "HeldFeatures",
    "HeldManifest",
    "KnownName",
    "Policies",
    "Request",
    "SetData",
    "build_set",
    "find_cuda",
    "newest_patches",
    "platform_of_system",
    "resolve_platform",
]
