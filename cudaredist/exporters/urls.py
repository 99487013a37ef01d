"""A list of addresses, for whatever fetches files."""

from cudaredist.exporters.export_format import Exporter, Files, Subject


def _files(subject: Subject) -> Files:
    subject.require_addresses()
    urls = dict.fromkeys(item.archive.url for item in subject.items)
    return {"urls.txt": "".join(f"{url}\n" for url in urls).encode()}


URLS = Exporter(
    name="urls",
    title="The addresses of all archives, one a line.",
    files=_files,
    file="urls.txt",
)
