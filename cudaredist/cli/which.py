"""which: find the packages that provide a file or a soname."""

from pathlib import Path

from cudaredist.cli.options import (
    ChannelName,
    Options,
    argument,
    complete_platform,
    read_channel_option,
    read_data_dir_option,
    redist_option,
    select_option,
    shipped_data_option,
)
from cudaredist.cli.session import Session, command, find_redists


class WhichOptions(Options):
    """Options of which."""

    typical = ("cuda", "platform", "redist", "channel", "data_dir")

    name: str = argument(
        "Soname, file name or end of a path. Use * for any characters.",
        metavar="FILE|SONAME",
        default=...,
    )
    cuda: str | None = select_option("CUDA release or minor. Default: all.", metavar="LABEL")
    platform: str | None = select_option(
        "Platform, such as linux-x86_64. Default: all.",
        metavar="NAME",
        autocompletion=complete_platform,
    )
    redist: list[str] | None = redist_option()
    channel: ChannelName | None = read_channel_option()
    data_dir: Path | None = read_data_dir_option()
    shipped_data: bool = shipped_data_option()


@command(WhichOptions)
def which(options: WhichOptions, session: Session) -> int:
    """Find the packages that provide a file or a soname.

    Examples:

        cudaredist which libcublas.so.12
        cudaredist which libcudart.so.13 --cuda 13.0 --platform linux-x86_64

    Lists the package, output and release of every match in the feature files. Libraries of the
    driver and the system are marked. The exit code is 1 if no local package provides the file, and
    3 if the files of some archives are unknown.
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
