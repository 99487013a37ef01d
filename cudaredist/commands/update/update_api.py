"""update-api: the names in the headers of each release."""

from cudaredist.cli.options import redist_option
from cudaredist.cli.session import Session, command
from cudaredist.commands.update.table_command import TableOptions, archive_errors, open_run


class ApiOptions(TableOptions):
    """Options of update-api."""

    typical = ("channel", "version", "jobs", "check", "redist")

    redist: list[str] | None = redist_option()


@command(ApiOptions)
def update_api(options: ApiOptions, session: Session) -> int:
    """Read functions, types, variables and macros of each release's headers.

    Examples:

        cudaredist download-manifests --redist cuda  # needs network
        cudaredist update-api --redist cuda --version latest  # needs network
        cudaredist update-api --check  # needs data/

    The headers are parsed with libclang, which `pip install 'cudaredist[api]'` adds. Nothing is
    executed. The result is DATA/api/, with a file for each package. Of wheels on a server, only
    the headers are read.
    """
    from cudaredist.commands.update.collect_api import ApiRun
    from cudaredist.commands.update.text import api_text
    from cudaredist.tables.api.header_process import require_libclang

    require_libclang()
    report = open_run(ApiRun, options, session, options.redist).run()
    return session.finish(
        report,
        api_text,
        # Archives for several CUDA majors have the same headers.
        warnings=dict.fromkeys(
            f"{one.package} {one.version}: {header.path} does not parse: {header.reason}"
            for one in report.archives
            for header in one.unread
        ),
        errors=archive_errors(report),
    )
