"""`export nixpkgs`, the former name of the command nixpkgs. It is not in the help."""

from pathlib import Path

from cudaredist.cli.options import (
    argument,
    none_for_standard_output,
    output_option,
    output_path_option,
    safety_option,
)
from cudaredist.cli.session import Refusal, Session, command
from cudaredist.commands.nixpkgs.options import TableOptions
from cudaredist.hints import again


class ExportNixpkgsOptions(TableOptions):
    """Options of export nixpkgs."""

    typical = ("output", "diff", "check")

    package_set: Path | None = argument("Package set from `build`.", metavar="[SET]", default=None)
    output: Path | None = output_path_option(
        "Checkout to change, or a new folder.", metavar="FOLDER", callback=none_for_standard_output
    )
    diff: Path | None = output_option("Checkout to compare.", metavar="FOLDER")
    replace: bool = safety_option(
        "Replace newer releases of the checkout.", names="--replace --allow-downgrade"
    )


REFUSED: tuple[Refusal[ExportNixpkgsOptions], ...] = (
    (
        lambda o: o.redist and o.package_set is not None,
        "--redist requires the format nixpkgs without SET",
        ["--redist"],
    ),
    (lambda o: o.diff and o.output, "--diff cannot be combined with --output", ["--diff"]),
    (
        lambda o: o.replace and o.output is None,
        "--replace requires the format nixpkgs and --output",
        ["--replace"],
    ),
    (
        lambda o: o.output is None and o.diff is None,
        "nixpkgs writes several files",
        "run `{call} --output nixpkgs`",
    ),
    (lambda o: o.output is None and o.check, "--check requires --output", ["--check"]),
)


@command(ExportNixpkgsOptions, REFUSED)
def export(options: ExportNixpkgsOptions, session: Session) -> int:
    """Update the CUDA tables of nixpkgs. The former name of `cudaredist nixpkgs`."""
    from cudaredist.commands.export.report import ExportReport, TableDiffReport
    from cudaredist.commands.nixpkgs.run_tables import change_files, compare_tables
    from cudaredist.commands.nixpkgs.text import differences_text, files_text

    package_set = options.package_set
    if options.diff is not None:
        differences = compare_tables(options.diff, package_set, options, session)
        report = TableDiffReport(
            checkout=differences.checkout,
            cells=differences.cells,
            kept=differences.kept,
            exit_code=differences.exit_code,
        )
        return session.finish(report, lambda _: differences_text(differences))
    folder = options.output or Path()
    comparison = again(without=["--output", "--replace"], diff=folder)
    files, code = change_files(folder, package_set, options, session, comparison=comparison)
    written = ExportReport(format="nixpkgs", files=files, exit_code=code)
    return session.finish(written, lambda _: files_text(files))
