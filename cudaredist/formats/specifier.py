"""Versions of wheels in our own files."""

from typing import Annotated

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import AfterValidator


def _specifier(text: str) -> str:
    """Check that a text is a range of versions of wheels."""
    try:
        SpecifierSet(text)
    except InvalidSpecifier as error:
        raise ValueError("expected versions such as >=0.10,<0.11") from error
    return text


Specifier = Annotated[str, AfterValidator(_specifier)]
"""Versions of wheels, in the form of Requires-Dist."""
