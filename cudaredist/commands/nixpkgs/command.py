"""nixpkgs: update the CUDA tables of a checkout of nixpkgs, or compare them."""

from pathlib import Path

from cudaredist.cli.options import argument, output_flag, refuse_standard_output
from cudaredist.cli.session import Refusal, Session, command
from cudaredist.commands.nixpkgs.options import TableOptions
from cudaredist.hints import again


class NixpkgsOptions(TableOptions):
    """Options of nixpkgs."""

    typical = ("diff", "only", "redist", "check", "replace")

    checkout: Path = argument(
        "Checkout of nixpkgs, or a new folder.",
        metavar="CHECKOUT",
        callback=refuse_standard_output,
        default=...,
    )
    package_set: Path | None = argument(
        "Package set or index from `build`. Default: newest local releases.",
        metavar="[SET]",
        default=None,
    )
    diff: bool = output_flag("Print the cells to change, and write nothing.")


REFUSED: tuple[Refusal[NixpkgsOptions], ...] = (
    (
        lambda o: o.redist and o.package_set is not None,
        "--redist cannot be combined with SET",
        ["--redist"],
    ),
    (lambda o: o.diff and o.check, "--check cannot be combined with --diff", ["--check"]),
    (lambda o: o.diff and o.replace, "--replace cannot be combined with --diff", ["--replace"]),
)


@command(NixpkgsOptions, REFUSED)
def nixpkgs(options: NixpkgsOptions, session: Session) -> int:
    """Update the CUDA tables of a checkout of nixpkgs.

    Examples:

        cudaredist nixpkgs ~/nixpkgs --diff  # needs a checkout
        cudaredist nixpkgs ~/nixpkgs --only compilers  # needs a checkout
        cudaredist nixpkgs ~/nixpkgs build/index.json  # needs a checkout

    Writes the host compilers, the compute capabilities, the manifests, and the releases of the
    package sets. Changes only the cells that differ. Requires nix-instantiate, unless CHECKOUT is a
    new folder.
    """
    from cudaredist.commands.nixpkgs.report import NixpkgsDiffReport, NixpkgsReport
    from cudaredist.commands.nixpkgs.run_tables import change_files, compare_tables
    from cudaredist.commands.nixpkgs.text import differences_text, files_text

    folder, package_set = options.checkout, options.package_set
    if options.diff:
        differences = compare_tables(folder, package_set, options, session)
        report = NixpkgsDiffReport(
            checkout=differences.checkout,
            cells=differences.cells,
            kept=differences.kept,
            exit_code=differences.exit_code,
        )
        return session.finish(report, lambda _: differences_text(differences))
    comparison = again("--diff", without=["--check", "--replace"])
    files, code = change_files(folder, package_set, options, session, comparison=comparison)
    written = NixpkgsReport(files=files, exit_code=code)
    return session.finish(written, lambda _: files_text(files))
