"""update-nvcc-compat."""

from functools import partial

from cudaredist.cli.options import safety_option
from cudaredist.cli.session import Session, command
from cudaredist.cli.update_gpus import REFUSED, TableOptions, update_table


class NvccCompatOptions(TableOptions):
    """The options of update-nvcc-compat."""

    accept_changed: bool = safety_option(
        "Take bounds that go down from one release to the next, or changed for a release "
        "that the table has."
    )


@command(NvccCompatOptions, REFUSED)
def update_nvcc_compat(options: NvccCompatOptions, session: Session) -> int:
    """Derive from NVIDIA's own header which host compilers each CUDA release accepts.

    Of every CUDA release held, the smallest archive with include/crt/host_config.h is fetched,
    proved and read; nothing is unpacked or executed, and no archive is read twice. The result is
    DATA/nvcc_compat.json, and what changes in it is shown. A release whose bounds are lower than
    those of the release before it, or others than the table has, is written with --accept-changed
    only (else exit 1).

    Examples that need the network:

        cudaredist download-manifests --redist cuda

        cudaredist update-nvcc-compat

        cudaredist update-nvcc-compat --min-version 12.8

        cudaredist update-nvcc-compat --check --json
    """
    from cudaredist.pipeline.tables.table_registry import NVCC_TABLE
    from cudaredist.pipeline.tables.update import update_nvcc_table

    update = partial(update_nvcc_table, accept_changed=options.accept_changed)
    return update_table(options, session, NVCC_TABLE, update)
