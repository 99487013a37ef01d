"""update-gpus: the compute capabilities of each release."""

from cudaredist.cli.session import Session, command
from cudaredist.commands.update.table_command import TableOptions, update_table


@command(TableOptions)
def update_gpus(options: TableOptions, session: Session) -> int:
    """Read the compute capabilities of CUDA releases from ptxas.

    Examples:

        cudaredist download-manifests --redist cuda  # needs network
        cudaredist update-gpus  # needs network
        cudaredist update-gpus --check --json  # needs data/

    For every local CUDA release, the smallest archive with bin/ptxas is downloaded, verified and
    searched for the names of capabilities. Nothing is executed, files are unpacked only to an
    unnamed temporary file, and no archive is read twice. Policy adds facts that no file contains.
    The result is DATA/gpus.json. Its changes are shown.
    """
    from cudaredist.commands.update.table_run import update_gpu_table

    return update_table(options, session, update_gpu_table)
