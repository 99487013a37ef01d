"""Bump reports as text, commits, changelog entries and workflow outputs.

Untrusted text reaches commits and workflow files here, so control characters and line breaks are
removed from every line.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import PurePath

from cudaredist.cli.text import (
    annotations,
    columns,
    escape_markdown,
    flag,
    markdown_table,
    text_blocks,
)
from cudaredist.commands.bump.report import BumpedRelease, BumpReport
from cudaredist.commands.diff.text import diff_markdown, diff_text
from cudaredist.errors import EXIT_OK
from cudaredist.primitives import parse_label
from cudaredist.redists import CUDA
from cudaredist.words import plural, printable

_SUBJECT_LIMIT = 72
"""Maximum length of a commit's first line, as in git's tools."""
_FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL
_UNRELEASED = re.compile(r"^## \[?unreleased\b.*?(?=^## |\Z)", _FLAGS)
"""The unreleased section of a changelog, to the next one."""
_DATA = re.compile(r"^### data\b.*?(?=^###? |\Z)", _FLAGS)
"""The part of a section about data, to the next heading."""


def _news(report: BumpReport) -> list[BumpedRelease]:
    """Return the added releases, or with --check those to add."""
    return [release for release in report.releases if release.status != "failed"]


def _without_news(report: BumpReport) -> str:
    """Return the title of a run without releases. After an error, there may be new ones."""
    return "Nothing is new" if report.exit_code == EXIT_OK else "No release was added"


def bump_text(report: BumpReport) -> Iterator[str]:
    """Yield the releases, the steps' outcomes and the differences."""
    if not report.releases:
        yield _without_news(report).lower()
    else:
        yield from columns(
            [
                (r.redist, f"{r.old or 'none'} -> {r.new}", r.status.replace("-", " "))
                for r in report.releases
            ]
        )
    for outcome in report.features:
        yield (
            f"features: {outcome.subject}: {outcome.status.replace('-', ' ')}, "
            f"{outcome.examined} of {outcome.archives} archives examined"
            + (f", {outcome.failed} failed" if outcome.failed else "")
        )
    for table in report.tables:
        yield f"{table.table}: {table.status.replace('-', ' ')}"
    if report.sets:
        good = sum(entry.exit_code == EXIT_OK for entry in report.sets)
        written = sum(entry.path is not None for entry in report.sets)
        kept = f"{written} in the output folder" if written else "none stored"
        yield f"package sets: {len(report.sets)} built, {good} in order, {kept}"
    yield from (f"to review: {problem}" for problem in bump_troubles(report))
    for release in report.releases:
        if release.diff is not None:
            yield ""
            yield from diff_text(release.diff)


def bump_troubles(report: BumpReport) -> Iterator[str]:
    """Yield findings and problems of package sets, for review."""
    yield from report.findings
    for entry in report.sets:
        subject = f"package set of CUDA {entry.cuda} for {entry.platform}"
        yield from (f"{subject}: {problem}" for problem in entry.problems)


# -- the commit


def _title(report: BumpReport) -> str:
    """Return a commit's first line, empty if nothing is new."""
    news = _news(report)
    if not news:
        return ""
    if len(news) == 1:
        return _change(news[0])
    redists = dict.fromkeys(release.redist for release in news)
    summary = ", ".join(
        f"{name} {' and '.join(r.new for r in news if r.redist == name)}" for name in redists
    )
    subject = f"cuda redistributables: {summary}"
    if len(subject) > _SUBJECT_LIMIT:
        counts = f"{plural(len(news), 'new release')} of {plural(len(redists), 'product')}"
        subject = f"cuda redistributables: {counts}"
    return subject


def commit_message(report: BumpReport) -> str:
    """Return a commit message, or nothing if nothing is new.

    The message ends with a newline. Its body lists the changes if there are several, and the
    differences of each release.
    """
    news = _news(report)
    if not news:
        return ""
    parts = [_title(report)]
    if len(news) > 1:
        parts.append("\n".join(map(_change, news)))
    parts += [_release_body(release, report) for release in news]
    return "\n\n".join(filter(None, parts)) + "\n"


def _change(release: BumpedRelease) -> str:
    return f"{release.redist}: {_versions(release.old, release.new)}"


def _versions(old: str | None, new: str) -> str:
    return f"init at {new}" if old is None else f"{old} -> {new}"


def _release_body(release: BumpedRelease, report: BumpReport) -> str:
    lines = [] if release.diff is None else list(diff_text(release.diff, is_commit=True))
    if release.redist == CUDA:
        lines += (
            f"{table.table}: {finding.message}"
            for table in report.tables
            for finding in table.findings
            if finding.about == release.new
        )
    if release.status == "incomplete":
        lines.append(f"{release.redist} {release.new} is incomplete: see the log of the run.")
    return "\n".join(map(printable, lines))


def nixpkgs_commits(report: BumpReport, root: PurePath) -> Iterator[str]:
    """Yield the output of a nixpkgs update script.

    It is a JSON list with a commit for each release. `root` is the data folder, relative to the
    working directory of the script.
    """
    commits = [
        {
            "attrPath": _attribute(release),
            "oldVersion": _old_version(release) or "",
            "newVersion": release.new,
            "files": [str(root / file) for file in release.files],
            "commitMessage": (
                f"{_attribute(release)}: {_versions(_old_version(release), release.new)}"
            ),
            "commitBody": _release_body(release, report),
        }
        for release in _news(report)
    ]
    yield from json.dumps(commits, indent=2).splitlines()


def _attribute(release: BumpedRelease) -> str:
    """Return a release's attribute in nixpkgs."""
    if release.redist == CUDA:
        return f"cudaPackages_{'_'.join(release.new.split('.')[:2])}"
    return f"cudaPackages.{release.redist}"


def _old_version(release: BumpedRelease) -> str | None:
    """Return the attribute's old version.

    Every minor of CUDA has its own attribute.
    """
    if release.old is None or release.redist != CUDA:
        return release.old
    is_same_line = parse_label(release.old).line == parse_label(release.new).line
    return release.old if is_same_line else None


# -- pull requests and workflows


def bump_markdown(report: BumpReport) -> Iterator[str]:
    """Return Markdown for a pull request or a step's summary."""
    rows = [(r.redist, r.old or "-", r.new, r.status.replace("-", " ")) for r in report.releases]
    problems = [*(error.message for error in report.errors), *bump_troubles(report)]
    diffs = (diff_markdown(release.diff) for release in report.releases if release.diff)
    return text_blocks(
        [f"## {escape_markdown(_title(report) or _without_news(report))}"],
        markdown_table([("redistributable", "old", "new", "state"), *rows]) if rows else (),
        ["**To review**"] if problems else (),
        [f"- {escape_markdown(_one_line(line))}" for line in problems],
        *diffs,
    )


def bump_annotations(report: BumpReport) -> Iterator[str]:
    """Return GitHub's workflow commands, at most ten per level."""
    about = {"title": "cudaredist bump"}
    return annotations(
        [
            *(("error", about, error.message) for error in report.errors),
            *(("warning", about, problem) for problem in bump_troubles(report)),
            *(("notice", {"title": release.redist}, _change(release)) for release in _news(report)),
        ]
    )


def bump_outputs(report: BumpReport) -> Iterator[str]:
    """Yield lines of `$GITHUB_OUTPUT` for opening a pull request."""
    news = _news(report)
    text = "\n".join(bump_markdown(report))
    # The delimiter contains the text's hash, so the text cannot contain the delimiter.
    end = f"end-{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    yield f"exit_code={report.exit_code}"
    yield f"changed={flag(bool(news))}"
    yield f"title={_one_line(_title(report))}"
    yield f"newer={json.dumps([f'{r.redist} {r.new}' for r in news])}"
    yield f"body<<{end}"
    yield text
    yield end


def _one_line(text: str) -> str:
    return printable(" ".join(text.splitlines()))


# -- the changelog


def with_entries(changelog: str | None, report: BumpReport) -> str:
    """Add a line for each release to a changelog.

    The lines go under `### Data` of the unreleased section. Existing lines are not repeated. If
    they are missing, the file, the section `[Unreleased]` (before all others) and the heading `###
    Data` (at its end) are created.
    """
    old = "# Changelog\n" if changelog is None else changelog
    text = "\n".join(old.splitlines()) + "\n"
    if not _UNRELEASED.search(text):
        before, *after = re.split(r"^(?=## )", text, maxsplit=1, flags=re.MULTILINE)
        text = f"{before.rstrip()}\n\n## [Unreleased]\n\n{''.join(after)}".lstrip()
    section = next(_UNRELEASED.finditer(text))
    entries = [f"- {_change(release)}" for release in _news(report)]
    missing = [entry for entry in entries if entry not in section[0].splitlines()]
    if not missing:
        return old
    data = _DATA.search(text, *section.span())
    at = data.end() if data else section.end()
    before = text[:at].rstrip()
    heading = "\n### Data\n\n"
    if data:
        # A blank line follows every heading.
        heading = "" if "\n" in data[0].strip() else "\n"
    lines = "\n".join(missing)
    text = f"{before}\n{heading}{lines}{text[len(before) :]}".rstrip()
    return f"{text}\n".replace("\n", "\r\n" if "\r\n" in old else "\n")
