"""Lists of a set's archives and outputs."""

from cudaredist.exporters.export_format import ExportedSet, Files, exporter
from cudaredist.formats.library_policy import Owner
from cudaredist.formats.packageset import OutsideSet, SetPackage
from cudaredist.jsontext import canonical_json

_ONLY_AT_RUN_TIME: frozenset[Owner] = frozenset({"driver", "jetson", "python"})


@exporter("urls", "urls.txt", takes_addresses=True)
def urls(exported: ExportedSet) -> Files:
    """The URLs of all archives, one per line."""
    exported.require_addresses()
    urls = dict.fromkeys(package.archive.url for package in exported.packages)
    return {"urls.txt": "".join(f"{url}\n" for url in urls).encode()}


@exporter("sha256sums", "SHA256SUMS")
def sha256sums(exported: ExportedSet) -> Files:
    """Hashes and paths of all archives, for sha256sum --check."""
    # No path of an archive requires the escapes of sha256sum.
    archives = [package.archive for package in exported.packages]
    lines = dict.fromkeys(f"{archive.sha256}  {archive.relative_path}\n" for archive in archives)
    return {"SHA256SUMS": "".join(lines).encode()}


@exporter("outputs", "outputs.json", reads_features=True)
def outputs(exported: ExportedSet) -> Files:
    """The outputs of each package as JSON.

    nixpkgs maintains the same table by hand.
    """
    unexamined = exported.unexamined
    # A package that was not inspected has only `out`, which would be a guess here.
    table = {
        package.attr: list(package.entry.outputs)
        for package in exported.packages
        if package.attr not in unexamined
    }
    return {"outputs.json": canonical_json(table)}


@exporter("ignore-missing", "ignore-missing.json", reads_libraries=True)
def ignore_missing(exported: ExportedSet) -> Files:
    """The driver's libraries of each package as JSON.

    Tools that patch run paths may ignore these libraries while they build a package, because only
    the machine that runs a program has them. They are from the driver, a Jetson or another version
    of Python. Libraries of glibc, the compiler or the distribution are inputs and must exist.
    """
    table = {package.attr: _missing(package.entry) for package in exported.packages}
    present = {name: sonames for name, sonames in table.items() if sonames}
    return {"ignore-missing.json": canonical_json(present)}


def _missing(entry: SetPackage) -> list[str]:
    sonames = {
        need.soname
        for need in entry.needs
        if need.kind == "needed"
        and isinstance(need.satisfied_by, OutsideSet)
        and need.satisfied_by.external in _ONLY_AT_RUN_TIME
    }
    return sorted(sonames)
