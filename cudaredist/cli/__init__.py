"""The command line: one short function per command, one place that maps exit codes.

Nothing that takes time to import is imported before the command that needs it runs.
"""

from typing import Annotated

import typer

from cudaredist import __version__
from cudaredist.cli.ask import diff, versions, which
from cudaredist.cli.build import build
from cudaredist.cli.bump import bump
from cudaredist.cli.export import export
from cudaredist.cli.fetch import download_manifests
from cudaredist.cli.maintain import check, schema, validate
from cudaredist.cli.materialize import materialize
from cudaredist.cli.process import process_manifests
from cudaredist.cli.tables import explain, update_gpus, update_nvcc_compat
from cudaredist.errors import EXIT_OK

__all__ = ["app"]

app = typer.Typer(
    name="cudaredist",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"cudaredist {__version__}")
        raise typer.Exit(EXIT_OK)


@app.callback(
    epilog="Exit codes: 0 done, 1 findings, 2 usage, 3 unreachable or incomplete, "
    "4 integrity, 5 content not understood, 70 a bug, 130 interrupted."
)
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """From NVIDIA's redistributable manifests to verified, explained, per-platform package sets."""


app.command("download-manifests", rich_help_panel="Fetch")(download_manifests)
app.command("process-manifests", rich_help_panel="Fetch")(process_manifests)
app.command("update-nvcc-compat", rich_help_panel="Fetch")(update_nvcc_compat)
app.command("update-gpus", rich_help_panel="Fetch")(update_gpus)
app.command("build", rich_help_panel="Assemble")(build)
app.command("export", rich_help_panel="Assemble")(export)
app.command("materialize", rich_help_panel="Assemble")(materialize)
app.command("explain", rich_help_panel="Ask")(explain)
app.command("diff", rich_help_panel="Ask")(diff)
app.command("which", rich_help_panel="Ask")(which)
app.command("versions", rich_help_panel="Ask")(versions)
app.command("bump", rich_help_panel="Maintain data")(bump)
app.command("check", rich_help_panel="Maintain data")(check)
app.command("schema", rich_help_panel="Maintain data")(schema)
app.command("validate", rich_help_panel="Maintain data")(validate)
