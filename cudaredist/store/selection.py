"""The selection of redistributables and their labels for a command."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from cudaredist.errors import UsageError
from cudaredist.hints import again, correction_line
from cudaredist.primitives import PREVIEW, Version, find_release
from cudaredist.redists import REDISTS, Redist

LATEST, ALL = "latest", "all"


def redist_at(url: str) -> Redist:
    """Return the redistributable with manifests directly at an address.

    Its name is the `<name>` of an address `<name>/redist`, else the last part of the address. It is
    only for messages and feature files.
    """
    path = url.partition("://")[2].partition("/")[2] if "://" in url else url
    parts = [part for part in path.split("/") if part] or ["manifests"]
    name = parts[-2] if parts[-1] == "redist" and len(parts) > 1 else parts[-1]
    known = REDISTS.get(name, Redist(name=name, title=name))
    return known._replace(folders=("",), archives=("",))


class Selection(NamedTuple):
    """The labels of a redistributable to select."""

    versions: tuple[str, ...] = ()
    """Labels, prefixes, `latest` or `all`. Empty: `all` within the bounds, `latest` without any."""
    min_version: Version | None = None
    max_version: Version | None = None
    pre: bool = False
    """Whether to select early-access releases. If not, each requires its whole label."""
    nvidia_channels: frozenset[str] = frozenset()
    """The selected channels of NVIDIA's second server."""

    @classmethod
    def parse(
        cls,
        versions: Sequence[str],
        minimum: str | None,
        maximum: str | None,
        *,
        nvidia_channels: Collection[str] = (),
    ) -> "Selection":
        """Parse the values of the options.

        Raises `UsageError` if one is not a version, or if they contradict each other.
        """

        def bound(text: str | None) -> Version | None:
            try:
                return None if text is None else Version.parse(text)
            except ValueError as error:
                hint = "use a version such as 13.0 or 13.0.2"
                hint = correction_line(hint, text or "", ["13.0"])
                raise UsageError(f"{text!r} is not a version: {error}", hint=hint) from None

        for text in versions:
            if text not in {LATEST, ALL}:
                bound(text)
        low, high = bound(minimum), bound(maximum)
        if (low or high) and set(versions) - {LATEST, ALL}:
            message = "--version LABEL cannot be combined with --min-version or --max-version"
            raise UsageError(message, hint=f"run `{again(without=['--version'])}`")
        if low and high and high.components < low.components:
            message = f"--min-version {low} is newer than --max-version {high}"
            raise UsageError(message, hint=f"run `{again(without=['--max-version'])}`")
        return cls(
            tuple(versions), low, high, PREVIEW in nvidia_channels, frozenset(nvidia_channels)
        )

    @property
    def named(self) -> tuple[str, ...]:
        """The labels in `versions`, without `latest` and `all`."""
        return tuple(text for text in self.versions if text not in {LATEST, ALL})

    def of(
        self, labels: Sequence[Version], is_preview: Callable[[Version], bool] = lambda _: False
    ) -> tuple[Version, ...]:
        """Return the selected labels, in ascending order.

        The bounds are inclusive. A bound with fewer numbers includes all versions that begin with
        it: `--max-version 12.9` selects 12.9.1.
        """
        inside = [
            label
            for label in sorted(labels)
            if self._is_inside(label)
            and (self.pre or str(label) in self.versions or not is_preview(label))
        ]
        has_bounds = self.min_version is not None or self.max_version is not None
        if ALL in self.versions or (not self.versions and has_bounds):
            return tuple(inside)
        releases = (find_release(text, inside) for text in self.named)
        selection = {release for release in releases if release is not None}
        if inside and (LATEST in self.versions or not self.versions):
            selection.add(inside[-1])
        return tuple(sorted(selection))

    def _is_inside(self, label: Version) -> bool:
        low, high = self.min_version, self.max_version
        if low is not None and (label.components, label.suffix) < (low.components, low.suffix):
            return False
        if high is None:
            return True
        beginning = label.components[: len(high.components)]
        if high.suffix:
            return (beginning, label.suffix) <= (high.components, high.suffix)
        return beginning <= high.components


EVERY_RELEASE = Selection(versions=(ALL,), pre=True)
"""All labels, with early-access releases."""
