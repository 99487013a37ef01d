"""The shortest formats: lists and tables of a set's archives, and the set itself for Nix."""

from importlib import resources

from cudaredist.exporters.export_format import ExportedSet, Files, exporter
from cudaredist.jsontext import canonical_json
from cudaredist.schema.packageset import OutsideSet, SetPackage
from cudaredist.schema.policy import Owner

_ONLY_AT_RUN_TIME: frozenset[Owner] = frozenset({"driver", "jetson", "python"})
_NIX_CODE = ("default.nix", "nixpkgs.nix", "redist-hook.bash")


@exporter("nix", None)
def nix(exported: ExportedSet) -> Files:
    """Nix attributes: the set's document, and code that reads it, without nixpkgs or with it.

    All that differs between sets is data, so no text is ever put into Nix's language.
    """
    exported.require_addresses()
    folder = resources.files("cudaredist.exporters")
    code = {name: (folder / name).read_bytes() for name in _NIX_CODE}
    return {"package-set.json": exported.document, **code}


@exporter("urls", "urls.txt")
def urls(exported: ExportedSet) -> Files:
    """The addresses of all archives, one a line."""
    exported.require_addresses()
    urls = dict.fromkeys(package.archive.url for package in exported.packages)
    return {"urls.txt": "".join(f"{url}\n" for url in urls).encode()}


@exporter("sha256sums", "SHA256SUMS")
def sha256sums(exported: ExportedSet) -> Files:
    """Hashes and paths of all archives, as sha256sum --check reads them."""
    # Paths of archives are plain, so that none needs the escapes of sha256sum.
    archives = [package.archive for package in exported.packages]
    lines = dict.fromkeys(f"{archive.sha256}  {archive.relative_path}\n" for archive in archives)
    return {"SHA256SUMS": "".join(lines).encode()}


@exporter("outputs", "outputs.json", reads_features=True)
def outputs(exported: ExportedSet) -> Files:
    """The outputs of each package as JSON, the table that nixpkgs keeps by hand."""
    unexamined = exported.unexamined
    # If a package was not examined, only `out` is declared, which would be a guess here.
    table = {
        package.attr: list(package.entry.outputs)
        for package in exported.packages
        if package.attr not in unexamined
    }
    return {"outputs.json": canonical_json(table)}


@exporter("ignore-missing", "ignore-missing.json", reads_libraries=True)
def ignore_missing(exported: ExportedSet) -> Files:
    """The driver's libraries that each package needs as JSON, for patchers that refuse them.

    These are the driver's, the Jetson's and those of other versions of Python, which only the
    machine that runs a program has: they may be missing while a package is built. Those of the C
    library, the compiler or the distribution are inputs, and must be found.
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
