"""Nix: the set's own document, and one fixed file that reads it.

All that differs between sets is data, so no text is ever put into Nix's language.
"""

from importlib import resources

from cudaredist.exporters.export_format import Exporter, Files, Subject

DATA, CODE = "package-set.json", "default.nix"


def _files(subject: Subject) -> Files:
    subject.require_addresses()
    return {DATA: subject.document, CODE: fixed_code()}


def fixed_code() -> bytes:
    """Return the file that reads a set."""
    return (resources.files("cudaredist.exporters") / CODE).read_bytes()


NIX = Exporter(
    name="nix",
    title="Nix attributes: the set's document, and a default.nix that reads it.",
    files=_files,
    file=None,
)
