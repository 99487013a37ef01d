"""update-symbols: the exported symbols of each release's libraries."""

from cudaredist.cli.options import redist_option
from cudaredist.cli.session import Session, command
from cudaredist.commands.update.table_command import TableOptions, archive_errors, open_run


class SymbolOptions(TableOptions):
    """Options of update-symbols."""

    typical = ("channel", "version", "jobs", "check", "redist")

    redist: list[str] | None = redist_option()


@command(SymbolOptions)
def update_symbols(options: SymbolOptions, session: Session) -> int:
    """Read the dynamic symbols of the libraries of each release.

    Examples:

        cudaredist download-manifests --redist cuda  # needs network
        cudaredist update-symbols --redist cuda --version latest  # needs network
        cudaredist update-symbols --check  # needs data/

    The symbols are read from cached facts or from the archives. The result is DATA/symbols/, with
    a file for each library. `which --symbol`, `diff` and `validate` use it.
    """
    from cudaredist.commands.update.collect_symbols import SymbolRun
    from cudaredist.commands.update.text import symbols_text

    report = open_run(SymbolRun, options, session, options.redist).run()
    return session.finish(
        report,
        symbols_text,
        warnings=(
            f"{one.package} {one.version} for {one.platform}: the symbols of {path} are not read"
            for one in report.archives
            for path in one.unread
        ),
        errors=archive_errors(report),
    )
