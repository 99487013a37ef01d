"""which: the packages that provide a file or a soname."""

from pathlib import Path

from cudaredist.cli.options import (
    ChannelName,
    Options,
    argument,
    complete_platform,
    data_dir_option,
    read_channel_option,
    redist_option,
    select_option,
    shipped_data_option,
)
from cudaredist.cli.session import Session, command, find_redists


class WhichOptions(Options):
    """The options of which."""

    name: str = argument(
        "Soname, file name or end of a path; * stands for any characters.",
        metavar="FILE|SONAME",
        default=...,
    )
    cuda: str | None = select_option(
        "Only this CUDA release or minor, of the redistributable cuda.", metavar="LABEL"
    )
    platform: str | None = select_option(
        "Only this platform.", metavar="NAME", autocompletion=complete_platform
    )
    redist: list[str] | None = redist_option()
    channel: ChannelName | None = read_channel_option()
    data_dir: Path | None = data_dir_option()
    shipped_data: bool = shipped_data_option()


@command(WhichOptions)
def which(options: WhichOptions, session: Session) -> int:
    """Say which packages, outputs and releases provide a file or a soname.

    Headers, libraries, programs and all other files are found by the feature files. Libraries of
    the driver and of the system are named as such. Exit 1 means that nothing held provides it,
    exit 3 that the files of some archives are unknown.

    Examples:

        cudaredist which libcublas.so.12

        cudaredist which libcudart.so.13 --cuda 13.0 --platform linux-x86_64
    """
    from cudaredist.pipeline.find_providers import find_providers
    from cudaredist.pipeline.selection import Selection
    from cudaredist.render.which_text import which_text

    cuda = options.cuda
    store = session.read_store(options.data_dir, options.channel, use_shipped=options.shipped_data)
    names = options.redist or ([] if cuda is None else ["cuda"])
    report = find_providers(
        options.name,
        store,
        redists=[one.name for one in find_redists(names, store.channel)] if names else [],
        cuda=None if cuda is None else Selection.parse([], cuda, cuda),
        platform=options.platform,
    )
    return session.finish(report, which_text)
