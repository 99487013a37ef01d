"""Names and identifiers that the documents of CycloneDX and SPDX share."""

from uuid import NAMESPACE_URL, UUID, uuid5

from cudaredist import __version__
from cudaredist.exporters.export_format import ExportedSet
from cudaredist.primitives import sha256_of

TOOL = {"type": "application", "name": "cudaredist", "version": __version__}


def document_id(exported: ExportedSet) -> UUID:
    """Return an identifier from the hash of the set."""
    return uuid5(NAMESPACE_URL, f"urn:sha256:{sha256_of(exported.package_set.canonical())}")


def package_reference(attr: str) -> str:
    """Return the reference of a package in a bill of materials."""
    return f"package:{attr}"
