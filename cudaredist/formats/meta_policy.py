"""Model of the policy of packages' metadata."""

from collections.abc import Iterator

from cudaredist.formats.base import Reasoned, optional
from cudaredist.formats.names import RedistName
from cudaredist.formats.set_policy import SetPolicy


class PackageMeta(Reasoned):
    """Additional metadata of a package."""

    homepage: str | None = optional("URL of the product page")
    changelog: str | None = optional("URL of the release notes")
    main_program: str | None = optional("The package's main program")
    fhs_exempt: bool | None = optional("Whether its files may contain paths such as /usr")


class MetaPolicy(SetPolicy):
    """`policy/meta.json`: home pages, main programs, exemptions."""

    redists: dict[RedistName, PackageMeta]
    packages: dict[str, PackageMeta]

    def named_packages(self) -> Iterator[str]:
        """Yield the packages that the policy names."""
        yield from self.packages
