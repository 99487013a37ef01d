"""drop: remove releases from the data."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cudaredist.cli.completion import complete_release
from cudaredist.cli.options import (
    ChannelName,
    Options,
    argument,
    check_option,
    data_dir_option,
    select_option,
)
from cudaredist.cli.session import Session, command
from cudaredist.words import plural, shortened

if TYPE_CHECKING:
    from cudaredist.commands.drop.report import DropReport

_SHOWN = 20


class DropOptions(Options):
    """Options of drop."""

    typical = ("check", "data_dir", "channel")

    releases: list[str] = argument(
        "Local releases, such as cuda@12.6.3.",
        metavar="RELEASE...",
        default=...,
        autocompletion=complete_release,
    )
    channel: ChannelName | None = select_option(
        "NVIDIA's archives or wheels. Default: the local ones."
    )
    data_dir: Path | None = data_dir_option()
    check: bool = check_option()


@command(DropOptions)
def drop(options: DropOptions, session: Session) -> int:
    """Remove releases from the data folder and its package sets.

    Examples:

        cudaredist download-manifests --redist cuda --version 13.0.2  # needs network
        cudaredist drop cuda@13.0.2  # needs data/

    Removes the manifests and feature files, the rows of tables, the symbols, the records of the
    lock and of runfiles, and the sets of a CUDA release with their entries in the index. The folder
    of the sets is the one of the configuration file, by default `build`. Prints what still names a
    release. Another command never brings it back by itself. With --check, writes nothing, and the
    exit code is 1 if something would change.
    """
    from cudaredist.cli.configuration import read_configuration
    from cudaredist.commands.drop.drop_releases import drop_releases
    from cudaredist.store.data_folder import Store
    from cudaredist.store.locate import data_folder, local_channel

    root = data_folder(options.data_dir, writing=True)
    declared = read_configuration().declared
    store = Store(root, options.channel or local_channel(root))
    if not options.check:
        session.lock(root)()
    report = drop_releases(
        options.releases,
        store,
        Path("build") if declared is None else declared.folder,
        declared,
        may_write=not options.check,
    )
    return session.finish(report, _text, warnings=report.remaining)


def _text(report: "DropReport") -> Iterator[str]:
    yield from shortened([f"{file.status:<13}{file.path}" for file in report.files], _SHOWN)
    verb = "would change" if any("would" in file.status for file in report.files) else "changed"
    yield f"{', '.join(report.releases)}: {plural(len(report.files), 'file')} {verb}"
