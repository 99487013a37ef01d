"""Model of the coverage of GPUs by device code.

It is a module of its own, because the models of package sets take long to import.
"""

from typing import Literal

from cudaredist.formats.base import OwnModel, optional
from cudaredist.formats.field_types import Count

CoverageValue = Literal["native", "ptx", "lto", "partial", "none", "host-only", "unknown"]


class Coverage(OwnModel):
    """The share of a package's device code that runs on a capability's GPUs."""

    value: CoverageValue
    files: Count = optional("Files with code that runs in any form", 0)
    all_files: Count = optional("Files with device code", 0)
    native: Count = optional("Modules that run unchanged", 0)
    ptx: Count = optional("Modules that the driver must compile from PTX", 0)
    lto: Count = optional("Modules that a linker must compile, in files without other code", 0)
    modules: Count = optional("Maximum number of modules that a GPU uses, over all files", 0)
    by_desktop_code: bool = optional(
        "Whether a Tegra part without code of its own runs code for other GPUs, or may run it if "
        "the value is `unknown`",
        default=False,
    )
