"""Outputs by package: the table that nixpkgs keeps by hand."""

from cudaredist.exporters.export_format import Exporter, Files, Subject
from cudaredist.jsontext import canonical_json


def _files(subject: Subject) -> Files:
    unexamined = subject.unexamined
    # Of a package that was not examined `out` alone is declared, which would be a guess here.
    table = {
        item.attr: list(item.package.outputs)
        for item in subject.items
        if item.attr not in unexamined
    }
    return {"outputs.json": canonical_json(table)}


OUTPUTS = Exporter(
    name="outputs",
    title="The outputs of each package as JSON, the table that nixpkgs keeps by hand.",
    files=_files,
    file="outputs.json",
    reads_features=True,
)
