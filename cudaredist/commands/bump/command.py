"""bump: update the data in one run."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cudaredist.cli.session import Session, command
from cudaredist.commands.bump.options import REFUSED, BumpOptions
from cudaredist.errors import WriteError

if TYPE_CHECKING:
    from cudaredist.commands.bump.report import BumpReport


@command(BumpOptions, REFUSED)
def bump(options: BumpOptions, session: Session) -> int:
    """Update the data in one run and write a commit message.

    Examples:

        cudaredist bump --redist cuda  # needs network
        cudaredist bump --write-commit-message message.txt --changelog CHANGES.md  # needs network
        cudaredist bump --check --json  # needs network

    By default, adds the newest release of every outdated line and of every newer line. Downloads
    these releases of the local redistributables, inspects their archives, updates the tables if
    CUDA is one of them, builds and validates the package sets, and shows the differences. Nothing
    is committed.

    If a step fails, the results so far are kept, and the next run resumes. The exit code is 0 if
    everything succeeded or nothing is new. With --check it is 1 if there are newer releases.
    """
    from cudaredist.commands.bump.bump_data import Bump
    from cudaredist.commands.bump.text import bump_troubles

    run = Bump(options, session)
    report = run.run()
    if not options.check:
        _write_outputs(report, options.write_commit_message, options.changelog)
    _show(report, options, session, Path(os.path.relpath(run.store.root)))
    if options.format in {"commit-message", "nixpkgs-commit"}:
        # The other formats include the problems.
        show = session.console.error if report.exit_code else session.console.warning
        for problem in bump_troubles(report):
            show(problem)
    session.errors(("", error) for error in report.errors)
    run.mark_reported(report)
    return report.exit_code


def _write_outputs(report: "BumpReport", message: Path | None, changelog: Path | None) -> None:
    from cudaredist.commands.bump.text import commit_message, with_entries
    from cudaredist.store.files import read_file, write_output

    text = commit_message(report)
    if not text:
        return
    if message is not None:
        write_output(message, text.encode())
    if changelog is not None:
        data = read_file(changelog)
        try:
            old = None if data is None else data.decode()
        except UnicodeDecodeError as error:
            raise WriteError(changelog, OSError("not UTF-8 text")) from error
        write_output(changelog, with_entries(old, report).encode())


def _show(report: "BumpReport", options: BumpOptions, session: Session, root: Path) -> None:
    from cudaredist.commands.bump import text as render

    console = session.console
    if options.format == "commit-message":
        console.result(render.commit_message(report))
        if not report.releases:
            console.note("nothing is new")
        return
    if options.format == "github" and not options.json:
        annotations, summary = render.bump_annotations(report), render.bump_markdown(report)
        session.show_on_github(annotations, summary, render.bump_outputs(report))
        return
    texts = {
        "text": render.bump_text,
        "markdown": render.bump_markdown,
        "nixpkgs-commit": lambda report: render.nixpkgs_commits(report, root),
    }
    session.show(report, texts.get(options.format))
