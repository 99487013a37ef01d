"""runfile: records of the runfile installers of CUDA."""

import re
from typing import Literal

from cudaredist.cli.options import (
    RecordOptions,
    argument,
    output_option,
    safety_option,
)
from cudaredist.cli.session import Refusal, Session, command
from cudaredist.errors import EXIT_OK

_is_release = re.compile(r"[1-9][0-9]{0,5}(\.(0|[1-9][0-9]{0,5})){2}").fullmatch


class RunfileOptions(RecordOptions):
    """Options of runfile."""

    typical = ("url", "replace", "data_dir")

    action: Literal["add"] = argument("Add a record.", metavar="add", default=...)
    location: str = argument(
        "Release, or a runfile: an address or a file.", metavar="RELEASE|URL|FILE", default=...
    )
    url: str | None = output_option("Address to record for a local file.", metavar="URL")
    replace: bool = safety_option("Replace a record that has other bytes.")


REFUSED: tuple[Refusal[RunfileOptions], ...] = (
    (
        lambda o: (
            o.url is not None
            and (o.location.lower().startswith(("http:", "https:")) or _is_release(o.location))
        ),
        "--url requires a local file",
        ["--url"],
    ),
)


@command(RunfileOptions, REFUSED)
def runfile(options: RunfileOptions, session: Session) -> int:
    """Record a runfile installer of CUDA.

    Examples:

        cudaredist runfile add 12.9.1  # needs 10 GB of downloads
        cudaredist runfile add ./cuda_12.9.1_575.57.08_linux.run  # needs the file
        cudaredist runfile add URL/cuda_12.9.1_575.57.08_linux.run  # needs network

    The address of a RELEASE follows from its manifest. Each of its platforms gets a record. The
    runfile is read once and verified: its script states the size and MD5 of the files inside.
    Nothing is executed, unpacked or kept. If the release already has a record of other bytes, the
    exit code is 4 and the record is kept, unless --replace is used. DATA/runfiles.json gets
    its address, size, hashes, release, driver and platform. Package sets and `export nix` use the
    record, and `check` compares it with NVIDIA's page of MD5 sums.
    """
    from cudaredist.cli.recording import open_recorder
    from cudaredist.commands.runfile.add_runfile import add_runfile
    from cudaredist.commands.runfile.release_runfiles import runfile_addresses
    from cudaredist.commands.runfile.report import RunfileReport, runfile_text
    from cudaredist.store.data_folder import Store, shipped_data
    from cudaredist.store.locate import data_folder
    from cudaredist.store.read_data import RUNFILES

    root = data_folder(options.data_dir, writing=True)
    recorder = open_recorder(session, options, root, "runfiles")
    store = Store(root)
    locations = [options.location]
    if _is_release(options.location):
        locations = runfile_addresses(options.location, Store(root, base=Store(shipped_data())))
    added = [add_runfile(location, options.url, store, recorder) for location in locations]
    path = store.relative(store.table_path(RUNFILES))
    report = RunfileReport(runfiles=tuple(added), path=path, exit_code=EXIT_OK)
    return session.finish(report, runfile_text)
