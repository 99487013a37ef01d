"""Which redistributables, and which labels of them, a command is about."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from cudaredist.errors import UsageError
from cudaredist.primitives import Version
from cudaredist.redists import REDISTS, Redist

LATEST, ALL = "latest", "all"


def redist_at(url: str) -> Redist:
    """Return the redistributable whose manifests lie at an address itself.

    Its name is read off the address, `<name>/redist`, and is for messages and feature files only.
    """
    path = urlsplit(url).path if "://" in url else url
    parts = [part for part in path.split("/") if part]
    name = (
        parts[-2] if parts[-1:] == ["redist"] and len(parts) > 1 else (parts or ["manifests"])[-1]
    )
    known = REDISTS.get(name, Redist(name=name, title=name))
    return replace(known, folders=("",), archives=("",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which labels of a redistributable are meant."""

    versions: tuple[str, ...] = ()
    """Labels, `latest` or `all`; empty: `all` within the bounds if there are any, else `latest`."""
    min_version: Version | None = None
    max_version: Version | None = None

    @classmethod
    def parse(
        cls, versions: Sequence[str], minimum: str | None, maximum: str | None
    ) -> "Selection":
        """Read the options' texts; `UsageError` where one is no version or they contradict."""

        def bound(text: str | None) -> Version | None:
            try:
                return None if text is None else Version.parse(text)
            except ValueError as error:
                raise UsageError(f"{text!r} is no version: {error}") from None

        for text in versions:
            if text not in {LATEST, ALL}:
                bound(text)
        low, high = bound(minimum), bound(maximum)
        if (low or high) and set(versions) - {LATEST, ALL}:
            raise UsageError(
                "--version names releases, so --min-version and --max-version do not go with it"
            )
        if low and high and high.components < low.components:
            raise UsageError(f"--min-version {low} is newer than --max-version {high}")
        return cls(versions=tuple(versions), min_version=low, max_version=high)

    @property
    def named(self) -> tuple[str, ...]:
        """The labels asked for by name."""
        return tuple(text for text in self.versions if text not in {LATEST, ALL})

    def of(self, labels: Sequence[Version]) -> tuple[Version, ...]:
        """Return the selected ones of these labels, in ascending order.

        The bounds are inclusive, and a bound of fewer numbers stands for all it begins:
        `--max-version 12.9` takes 12.9.1.
        """
        inside = [label for label in sorted(labels) if self._is_inside(label)]
        has_bounds = self.min_version is not None or self.max_version is not None
        if ALL in self.versions or (not self.versions and has_bounds):
            return tuple(inside)
        chosen = {label for label in inside if str(label) in self.versions}
        if inside and (LATEST in self.versions or not self.versions):
            chosen.add(inside[-1])
        return tuple(sorted(chosen))

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
