"""update-nvcc-compat: update the table of host compilers.

The update itself is shared with update-gpus.
"""

from functools import partial

from cudaredist.cli.options import safety_option
from cudaredist.cli.session import Session, command
from cudaredist.commands.update.table_command import TableOptions, update_table


class NvccCompatOptions(TableOptions):
    """Options of update-nvcc-compat."""

    typical = ("channel", "version", "check", "data_dir", "replace")

    replace: bool = safety_option("Accept lower or changed bounds.")


@command(NvccCompatOptions)
def update_nvcc_compat(options: NvccCompatOptions, session: Session) -> int:
    """Read the host compilers of CUDA releases from NVIDIA's header.

    Examples:

        cudaredist download-manifests --redist cuda --min-version 12.8  # needs network
        cudaredist update-nvcc-compat --min-version 12.8  # needs network
        cudaredist update-nvcc-compat --check --json  # needs data/

    For every local CUDA release, the smallest archive with include/crt/host_config.h is downloaded,
    verified and read. Nothing is executed, files are unpacked only to an unnamed temporary file,
    and no archive is read twice. The result is DATA/nvcc_compat.json. Its changes are shown.

    If a release's bounds are lower than the previous release's, or differ from the table, the
    release is skipped and the exit code is 1. Use --replace to write it.
    """
    from cudaredist.commands.update.table_run import update_nvcc_table

    update = partial(update_nvcc_table, accept_changed=options.replace)
    return update_table(options, session, update)
