"""explain gpu: the newest releases that run on a GPU together, in words.

It imports no models, because lookups read the releases in the index.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cudaredist.commands.explain.report import NewestTogether
from cudaredist.hints import command_for_archives, command_line
from cudaredist.primitives import JETSON
from cudaredist.redists import CUDA


class NewestReleases(NamedTuple):
    """The newest releases that run on a capability's GPUs together.

    It has the facts for the commands in its reasons, which have the options of the call.
    """

    capability: str
    platform: str | None
    """None: no release of CUDA runs on them."""
    releases: Mapping[str, str]
    """By redistributable."""
    statement: str
    desktop_code: str | None
    """The first CUDA minor with which they run code for other GPUs, if the releases need that."""
    unexamined: str | None
    """The newest CUDA release whose archives for Jetsons were not examined."""
    renamed_to: str | None
    """The capability's name in later releases, if no release of CUDA runs on them."""

    def report(self) -> NewestTogether:
        """Return the releases with the reasons in words."""
        return NewestTogether(
            capability=self.capability,
            platform=self.platform,
            releases=dict(self.releases),
            statement=self.statement,
            reasons=tuple(self._reasons()),
        )

    def _reasons(self) -> Iterator[str]:
        if self.desktop_code is not None:
            yield (
                f"They have no code for {self.capability}. It runs code for other GPUs of its "
                f"architecture from CUDA {self.desktop_code} on. Before, this is unknown."
            )
        if self.unexamined is not None:
            about = {"redist": CUDA, "version": self.unexamined}
            download = command_for_archives("download-manifests", **about)
            process = command_for_archives("process-manifests", **about, platform=JETSON)
            yield (
                f"NVIDIA's archives for {JETSON}, up to CUDA {self.unexamined}, were not examined: "
                f"run `{download}` and `{process}`."
            )
        if self.renamed_to is not None:
            command = command_line("explain gpu", self.renamed_to)
            yield f"Later releases call it {self.renamed_to}: run `{command}`."
