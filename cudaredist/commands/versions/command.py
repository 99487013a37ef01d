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

    Only listings are downloaded. A release line is stale if upstream has a newer release, which is
    not an error here. To fail on stale lines, use the command `check`.

    Two formats are for update bots and require one --redist: renovate (for a custom data source)
    and newest (for nvchecker), which prints only the newest release.
    """
    from cudaredist.commands.versions.list_versions import read_versions
    from cudaredist.commands.versions.report import versions_renovate, versions_text

    network = options.network
    store = session.read_store(options.data, network.base_url, is_layered=False)
    redists = find_redists(options.redist, store.channel)
    bases = session.connect(network, store.channel)
    report = read_versions(
        store,
        redists,
        None if network.offline else session.sources(bases),
        session.workers("listing", options.jobs),
        is_explicit=bool(options.redist),
        nvidia_channels=options.nvidia_channels.names,
    )
    texts = {
        "text": versions_text,
        "renovate": versions_renovate,
        "newest": lambda report: report.releases.get(redists[0].name, ())[-1:],
    }
    errors = [("", error) for error in report.errors]
    return session.finish(report, texts.get(options.format), errors=errors)
