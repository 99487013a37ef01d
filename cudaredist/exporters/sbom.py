"""What both forms of a bill of materials have in common."""

from urllib.parse import quote
from uuid import NAMESPACE_URL, UUID, uuid5

from cudaredist.exporters.export_format import Item, Subject
from cudaredist.primitives import sha256_of
from cudaredist.redists import REDISTS

SUPPLIER = "NVIDIA Corporation"


def document_id(subject: Subject) -> UUID:
    """Return an identifier made from the set's bytes: other bytes, another identifier."""
    return uuid5(NAMESPACE_URL, f"urn:sha256:{sha256_of(subject.document)}")


def package_url(item: Item) -> str:
    """Return the purl of a package, qualifiers in the order that its canonical form has."""
    archive = item.archive
    qualifiers = {"checksum": f"sha256:{archive.sha256}"}
    if archive.url is not None:
        qualifiers["download_url"] = archive.url
    qualifiers["platform"] = archive.platform
    query = "&".join(f"{key}={quote(value, safe=':/')}" for key, value in qualifiers.items())
    name = quote(item.package.pname, safe=":")
    version = "" if item.package.version is None else f"@{quote(item.package.version, safe=':')}"
    return f"pkg:generic/nvidia/{name}{version}?{query}"


def depends_on(item: Item, subject: Subject) -> list[str]:
    """Return the attributes of the packages that a package needs, in order, each once."""
    known = {other.attr for other in subject.items}
    return sorted({entry.attr for entry in item.package.depends} & known - {item.attr})


def is_nvidias(item: Item) -> bool:
    """Say whether NVIDIA publishes the package; a user's own may come from anyone."""
    return item.package.redist in REDISTS
