"""What an answer says about things that the data does not have.

Something that was not found does not exist only if everything that could have it was examined.
Otherwise it is unknown, and the answer names what was not examined and the command that examines
it. A release between two known ones that is not in the data exists, or not: nobody can tell.
"""

import shlex
from collections.abc import Collection, Iterable
from typing import NamedTuple

from cudaredist.formats.names import Channel
from cudaredist.grouping import grouped
from cudaredist.hints import command_line
from cudaredist.primitives import Version
from cudaredist.store.data_folder import Layer

_NAMED = 3
"""Releases or packages that a command names at most."""


class Unexamined(NamedTuple):
    """Archives of a release whose contents are not known."""

    channel: Channel
    layer: Layer
    redist: str
    label: str
    archives: int
    """The number of its archives without known files."""
    unread: int
    """The number of those without known libraries, too."""


def inspect_command(
    releases: Iterable[Unexamined],
    redists: Collection[str] = (),
    platform: str | None = None,
    packages: Collection[str] = (),
) -> str | None:
    """Return the command that examines archives, None if there are none to examine.

    The manifests of the data folder come first. Shipped manifests must be downloaded before. A few
    packages, and a few releases of one redistributable, are named.
    """
    by_layer = grouped(((release.layer, release.channel), release) for release in releases)
    if not by_layer:
        return None
    layer, channel = min(by_layer)  # `local` and `redist` come first
    flags = [f"--redist {shlex.quote(redist)}" for redist in redists]
    limits = [f"--package {package}" for package in packages if len(packages) <= _NAMED]
    if platform:
        limits.append(f"--platform {shlex.quote(platform)}")
    inspect = command_line("process-manifests", *flags, *limits, channel=channel)
    if layer == "local":
        return inspect
    labels = [release.label for release in by_layer[layer, channel]]
    is_named = len(redists) == 1 and len(labels) <= _NAMED
    versions = [f"--version {label}" for label in (labels if is_named else ["all"])]
    download = command_line("download-manifests", *flags, *versions, channel=channel)
    return f"{download} && {inspect}"


def since(first: Version, examined: Collection[Version], known: Iterable[Version]) -> str:
    """Return the first release with something, as exactly as it is known.

    `examined` are the releases whose contents are known, and `known` are all releases in the data.
    The first release is exact if the one before it was examined, and no patch between them can be
    missing in the data.
    """
    before = max((label for label in known if label < first), default=None)
    is_in_line = before is not None and before.line == first.line
    is_patch = any(first.components[2:3])
    if before in examined and (is_in_line or not is_patch):
        return str(first)
    return f"{first} or an earlier {'patch' if is_in_line or is_patch else 'release'}"


def until(last: Version, examined: Collection[Version], known: Iterable[Version]) -> str:
    """Return the last release with something, as exactly as it is known.

    It is exact if it is the newest one in the data, or if the release after it was examined.
    """
    after = min((label for label in known if label > last), default=None)
    if after is None or after in examined:
        return str(last)
    return f"{last} or a later {'patch' if after.line == last.line else 'release'}"
