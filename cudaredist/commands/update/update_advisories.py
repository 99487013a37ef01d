"""update-advisories: the known vulnerabilities, from NVIDIA's security bulletins."""

from dataclasses import field
from functools import partial
from pathlib import Path

from cudaredist.cli.options import (
    Options,
    Requests,
    check_option,
    data_dir_option,
    jobs_option,
    network_option,
    safety_option,
)
from cudaredist.cli.session import Session, command


class AdvisoryOptions(Options):
    """Options of update-advisories."""

    typical = ("source", "check", "replace", "data_dir", "json")

    source: str | None = network_option(
        "Folder or server with bulletins. Default: NVIDIA's.", metavar="URL|FOLDER", default=None
    )
    allow_http: bool = network_option(
        "Allow plain HTTP to other machines.", envvar="CUDAREDIST_ALLOW_HTTP", default=False
    )
    offline: bool = network_option(
        "Disable the network.", envvar="CUDAREDIST_OFFLINE", default=False
    )
    requests: Requests = field(default_factory=Requests)
    jobs: int = jobs_option()
    check: bool = check_option()
    replace: bool = safety_option("Accept changed bulletins.")
    data_dir: Path | None = data_dir_option()


@command(AdvisoryOptions)
def update_advisories(options: AdvisoryOptions, session: Session) -> int:
    """Read known vulnerabilities from NVIDIA's security bulletins.

    Examples:

        cudaredist update-advisories  # needs bulletins of GitHub
        cudaredist update-advisories --source product-security --check  # needs a clone of it

    Reads the bulletins (CSAF 2.0) and CVE records of NVIDIA's repository, of a clone or of another
    folder, and verifies each document with its checksum file. The result is DATA/advisories.json:
    facts only, such as CVEs, CVSS scores, affected and fixed versions. Policy decides ambiguous
    texts.

    A bulletin that changed is not accepted without --replace, and the exit code is 1. Bulletins
    that the source does not have stay in the table.
    """
    from cudaredist.commands.update.advisory_run import RAW_FILES, AdvisoryRun
    from cudaredist.commands.update.text import advisories_text
    from cudaredist.hints import again
    from cudaredist.sources.chain import open_source
    from cudaredist.sources.protocol import Settings
    from cudaredist.store.data_folder import Store
    from cudaredist.store.locate import data_folder

    settings = Settings(
        timeout=options.requests.timeout,
        retries=options.requests.retries,
        allow_http=options.allow_http,
        offline=options.offline,
    )
    is_writing = not options.check
    root = data_folder(options.data_dir, writing=is_writing)
    source = open_source(options.source or RAW_FILES, settings)
    session.callback(source.close)
    if is_writing:
        session.lock(root)()
    run = AdvisoryRun(source, Store(root), options.jobs, write=is_writing, replace=options.replace)
    report = run.run()
    changed = [one.bulletin for one in report.bulletins if one.status == "changed"]
    errors = [(f"bulletin {one.bulletin}", one.error) for one in report.bulletins if one.error]
    code = session.finish(report, partial(advisories_text, quiet=options.quiet), errors=errors)
    if changed:
        message = f"skipped bulletins that changed: {', '.join(changed)}"
        session.console.error(message, hint=f"review them, then run `{again('--replace')}`")
    return code
