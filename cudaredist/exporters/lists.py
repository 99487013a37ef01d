"""The shortest formats: lists and tables of a set's archives, and the set itself for Nix."""

from importlib import resources

from cudaredist.exporters.export_format import ExportedSet, Exporter, Files
from cudaredist.jsontext import canonical_json
from cudaredist.schema.packageset import OutsideSet, SetPackage
from cudaredist.schema.policy import Owner

_ONLY_AT_RUN_TIME: frozenset[Owner] = frozenset({"driver", "jetson"})
_NIX_CODE = "default.nix"


def _nix(exported: ExportedSet) -> Files:
    """Return the set's own document and a fixed file that reads it.

    All that differs between sets is data, so no text is ever put into Nix's language.
    """
    exported.require_addresses()
    code = resources.files("cudaredist.exporters") / _NIX_CODE
    return {"package-set.json": exported.document, _NIX_CODE: code.read_bytes()}


def _urls(exported: ExportedSet) -> Files:
    exported.require_addresses()
    urls = dict.fromkeys(package.archive.url for package in exported.packages)
    return {"urls.txt": "".join(f"{url}\n" for url in urls).encode()}


def _sha256sums(exported: ExportedSet) -> Files:
    # Paths of archives are plain, so that none needs the escapes of sha256sum.
    archives = [package.archive for package in exported.packages]
    lines = dict.fromkeys(f"{archive.sha256}  {archive.relative_path}\n" for archive in archives)
    return {"SHA256SUMS": "".join(lines).encode()}


def _outputs(exported: ExportedSet) -> Files:
    unexamined = exported.unexamined
    # If a package was not examined, only `out` is declared, which would be a guess here.
    table = {
        package.attr: list(package.entry.outputs)
        for package in exported.packages
        if package.attr not in unexamined
    }
    return {"outputs.json": canonical_json(table)}


def _ignore_missing(exported: ExportedSet) -> Files:
    """Return the libraries that may be missing while a package is built, by package.

    These are the driver's and the Jetson's, which only the machine that runs a program has. Those
    of the C library, the compiler or the distribution are inputs, and must be found.
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


NIX = Exporter(
    name="nix",
    title="Nix attributes: the set's document, and a default.nix that reads it.",
    files=_nix,
    file=None,
)
URLS = Exporter(
    name="urls",
    title="The addresses of all archives, one a line.",
    files=_urls,
    file="urls.txt",
)
SHA256SUMS = Exporter(
    name="sha256sums",
    title="Hashes and paths of all archives, as sha256sum --check reads them.",
    files=_sha256sums,
    file="SHA256SUMS",
)
OUTPUTS = Exporter(
    name="outputs",
    title="The outputs of each package as JSON, the table that nixpkgs keeps by hand.",
    files=_outputs,
    file="outputs.json",
    reads_features=True,
)
IGNORE_MISSING = Exporter(
    name="ignore-missing",
    title="The driver's libraries that each package needs as JSON, for patchers that refuse them.",
    files=_ignore_missing,
    file="ignore-missing.json",
    reads_features=True,
)
