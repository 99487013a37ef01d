"""diff: the differences between two releases or files."""

from dataclasses import field
from typing import Literal, TypeAlias

from cudaredist.cli.options import (
    ChannelName,
    Options,
    Places,
    argument,
    output_option,
    read_channel_option,
    shipped_data_option,
)
from cudaredist.cli.session import Session, command, open_cache

DiffFormat: TypeAlias = Literal["text", "json", "markdown"]


class DiffOptions(Options):
    """The options of diff."""

    old: str = argument("A file, or a release held: cuda@12.9.0.", metavar="OLD", default=...)
    new: str = argument("Likewise, and of the same kind.", metavar="NEW", default=...)
    channel: ChannelName | None = read_channel_option()
    places: Places = field(default_factory=Places)
    shipped_data: bool = shipped_data_option()
    format: DiffFormat = output_option("Form of the result.", default="text")


@command(DiffOptions)
def diff(options: DiffOptions, session: Session) -> int:
    """Say what is different between two releases, manifests, feature files or package sets.

    In a reviewer's order: other bytes under the same version, what is gone, what lost something or
    needs more, what is new, what changed. Of releases held, features and tables are compared as
    well. Where the cache knows the archives, files that lie in another package than before are
    named, and tell which one a new one was split from. Two redistributables can be compared too.

    Examples:

        cudaredist diff cuda@12.9.1 cuda@13.0.2

        cudaredist build --cuda 13.0.2 --platform linux-x86_64 -o old.json

        cudaredist build --cuda 13.0.3 --platform linux-x86_64 -o new.json

        cudaredist diff old.json new.json --format markdown
    """
    from cudaredist.pipeline.diff_releases import compare_releases, is_local_release
    from cudaredist.render.diff_text import diff_markdown, diff_text

    store = session.read_store(
        options.places.data_dir,
        options.channel,
        use_shipped=options.shipped_data,
        is_channel_used=any(map(is_local_release, (options.old, options.new))),
    )
    cache = open_cache(options.places.cache_dir)
    texts = {"text": diff_text, "markdown": diff_markdown}
    report = compare_releases(options.old, options.new, store, cache)
    return session.finish(report, texts.get(options.format))
