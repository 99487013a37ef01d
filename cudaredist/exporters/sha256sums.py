"""What `sha256sum --check` reads. Paths are those below the folders of manifests."""

from cudaredist.exporters.export_format import Exporter, Files, Subject


def _files(subject: Subject) -> Files:
    # Paths of archives are plain, so that none needs the escapes of sha256sum.
    lines = (f"{item.archive.sha256}  {item.archive.relative_path}\n" for item in subject.items)
    return {"SHA256SUMS": "".join(dict.fromkeys(lines)).encode()}


SHA256SUMS = Exporter(
    name="sha256sums",
    title="Hashes and paths of all archives, as sha256sum --check reads them.",
    files=_files,
    file="SHA256SUMS",
)
