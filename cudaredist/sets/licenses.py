"""The license of a package: the entry of the policy of licenses, or the same from the index."""

import re
from collections.abc import Iterable, Mapping
from typing import Literal, Protocol, TypeVar

from cudaredist.features.license_files import main_license

_USUAL = {
    "cuda": ("CUDA Toolkit",),
    "cusparselt": ("cuSPARSELt",),
    "cutensor": ("cuTensor",),
    "tensorrt": ("TensorRT",),
}
"""The name of a redistributable's license in manifests, if not its own name."""
UNKNOWN_TEXT: Literal["unknown"] = "unknown"
"""The name of a license text that is not in policy."""
_is_vague = re.compile(
    r"(?:LicenseRef-)?NVIDIA(?:[- ]Proprietary)?(?: Software)?", re.IGNORECASE
).fullmatch


class _Text(Protocol):
    """A license text."""

    @property
    def files(self) -> Iterable[str]:
        """The SHA-256 of each file with the text."""


_License_co = TypeVar("_License_co", covariant=True)
_Text_co = TypeVar("_Text_co", bound=_Text, covariant=True)


class _Licenses(Protocol[_License_co]):
    """Licenses by package, redistributable or manifest's word."""

    @property
    def packages(self) -> Mapping[str, _License_co]:
        """By package."""

    @property
    def manifests(self) -> Mapping[str, _License_co]:
        """By the manifest's `license`."""

    @property
    def redists(self) -> Mapping[str, _License_co]:
        """By redistributable."""

    @property
    def default(self) -> _License_co:
        """The license of all others."""


class _Texts(Protocol[_Text_co]):
    """License texts."""

    @property
    def texts(self) -> Mapping[str, _Text_co]:
        """By SHA-256."""


def find_license(
    name: str, redist: str, word: str | None, policy: _Licenses[_License_co]
) -> _License_co:
    """Return policy's most specific entry for a package's license.

    The redistributable's entry does not count if the manifest names another license, with `word`.
    """
    is_usual = word is None or word in (redist, *_USUAL.get(redist, ())) or _is_vague(word)
    return (
        policy.packages.get(name)
        or policy.manifests.get(word or "")
        or (policy.redists.get(redist) if is_usual else None)
        or policy.default
    )


def find_text(
    files: Mapping[str, str] | None, policy: _Texts[_Text_co]
) -> _Text_co | Literal["unknown"] | None:
    """Return policy's entry for the license text of an archive.

    Returns `unknown` if policy does not have the text, and None if there is no text.
    """
    path = main_license(files or ())
    return None if files is None or path is None else text_in_file(files[path], policy)


def text_in_file(sha256: str, policy: _Texts[_Text_co]) -> _Text_co | Literal["unknown"]:
    """Return policy's entry for the license text in a file, `unknown` if it has none."""
    return next((text for text in policy.texts.values() if sha256 in text.files), UNKNOWN_TEXT)
