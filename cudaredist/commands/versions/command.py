"""versions: list the releases in the data folder and upstream."""

from dataclasses import field
from typing import Literal, TypeAlias

from cudaredist.cli.options import (
    Data,
    Network,
    NvidiaChannels,
    Options,
    format_option,
    jobs_option,
    redist_option,
)
from cudaredist.cli.session import Refusal, Session, command, find_redists

VersionsFormat: TypeAlias = Literal["text", "renovate", "newest"]


class VersionsOptions(Options):
    """Options of versions."""

    typical = ("redist", "channel", "offline", "data_dir", "format")

    redist: list[str] | None = redist_option()
    nvidia_channels: NvidiaChannels = field(default_factory=NvidiaChannels)
    network: Network = field(default_factory=Network)
    jobs: int = jobs_option()
    data: Data = field(default_factory=Data)
    format: VersionsFormat = format_option("Output: text, renovate or newest.")


_OF_ONE = {"renovate", "newest"}
REFUSED: tuple[Refusal[VersionsOptions], ...] = (
    (
        lambda o: o.format in _OF_ONE and len(set(o.redist or ())) != 1,
        "--format {format} requires exactly one --redist",
        "run `cudaredist versions --redist cuda --format {format}`",
    ),
)


@command(VersionsOptions, REFUSED)
def versions(options: VersionsOptions, session: Session) -> int:
    """List the local releases and those upstream.

    Examples:

        cudaredist versions --offline
        cudaredist versions --redist cuda --redist cudnn  # needs network
        cudaredist versions --redist cudnn --format renovate  # needs network

    The releases of the data folder are of NVIDIA's archives and of wheels, and each row names its
    kind. Upstream is the source of one kind: that of the data folder, or of --channel. Only
    listings are downloaded. A release line is stale if upstream has a newer release, which is
    not an error here. To fail on stale lines, use the command `check`.

    Two formats are for update bots and require one --redist: renovate (for a custom data source)
    and newest (for nvchecker), which prints only the newest release.
    """
    from cudaredist.commands.versions.local_versions import local_versions, with_other_channel
    from cudaredist.commands.versions.report import versions_renovate, versions_text
    from cudaredist.primitives import PREVIEW
    from cudaredist.store.locate import describe_all, describe_data

    network = options.network
    store = session.read_store(
        options.data, network.base_url, is_layered=False, is_channel_used=False
    )
    named = options.data.channel or ("redist" if network.base_url else None)
    others = [] if named or options.format != "text" else [store.in_other_channel()]
    others = [other for other in others if other.redists()]
    channels = [one.channel for one in (store, *others)]
    session.console.note(describe_all(store, channels) if others else describe_data(store, named))
    redists = find_redists(options.redist, store.channel)
    bases = session.connect(network, store.channel)
    nvidia_channels = options.nvidia_channels.names
    if network.offline:
        report = local_versions(store, redists, with_previews=PREVIEW in nvidia_channels)
    else:
        from cudaredist.commands.versions.list_versions import read_versions

        report = read_versions(
            store,
            redists,
            session.sources(bases),
            session.workers("listing", options.jobs),
            is_explicit=bool(options.redist),
            nvidia_channels=nvidia_channels,
        )
    for other in others:
        of_other = local_versions(other, find_redists(options.redist, other.channel))
        report = with_other_channel(report, of_other)
    texts = {
        "text": versions_text,
        "renovate": versions_renovate,
        "newest": lambda report: report.releases.get(redists[0].name, ())[-1:],
    }
    errors = [("", error) for error in report.errors]
    return session.finish(report, texts.get(options.format), errors=errors)
