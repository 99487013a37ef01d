"""Names of libraries: as they are after repair tools renamed them, and without their versions."""

import re
from collections.abc import Iterator

from cudaredist.sets.library_names import key_of

_RENAMED_SO = re.compile(r"(?P<stem>.+)[-.][0-9a-f]{8,64}(?P<rest>\.so(?:\.[0-9]+)*)").fullmatch
_RENAMED_DLL = re.compile(r"(?P<stem>.+)-[0-9a-f]{32,64}(?P<rest>\.dll)", re.IGNORECASE).fullmatch
_VERSION_CHARACTERS = "0123456789._"

NAME_LIMIT = 255
"""Maximum length of a file's name on all systems. Longer names are of no library."""


def original_name(name: str) -> str:
    """Return a library's name without the hash that auditwheel or delvewheel adds.

    `libcudart-9335f6a2.so.12.4.127` was `libcudart.so.12.4.127`. Wheels of torchvision have a dot
    before the hash.
    """
    if len(name) > NAME_LIMIT:
        return name
    match = _RENAMED_SO(name) or _RENAMED_DLL(name)
    return match["stem"] + match["rest"] if match else name


def possible_sonames(name: str) -> Iterator[str]:
    """Yield the sonames that a library with this file name may have, the longest first.

    `libcudart.so.12.4.127` may be `libcudart.so.12`.
    """
    name = key_of(original_name(name))
    stem, suffix, version = name.partition(".so.")
    numbers = version.split(".") if suffix and len(name) <= NAME_LIMIT else []
    yield name
    for count in range(len(numbers) - 1, 0, -1):
        yield f"{stem}.so.{'.'.join(numbers[:count])}"


def family_of(name: str) -> str:
    """Return the part of a library's name that all its versions have in common.

    It is `libcublas` for `libcublas.so.12`, and `cublas` for `cublas64_12.dll`.
    """
    name = key_of(original_name(name))
    if name.endswith(".dll"):
        return _without_version(name)
    return name.partition(".so")[0].removesuffix(".alt")


def _without_version(name: str) -> str:
    """Return a DLL's name without its end, such as `64_12.dll` or `_1.0.alt.dll`."""
    stem = name.removesuffix(".dll").removesuffix(".alt")
    version = stem.find("_", len(stem.rstrip(_VERSION_CHARACTERS)))
    if version < 0 or version == len(stem) - 1:
        return stem
    family = stem[:version]
    return family[:-2] if family.endswith(("64", "32")) else family
