"""Reports as text, Markdown and what machines read: a report in, lines out, no terminal."""

from cudaredist.render.bump_text import (
    bump_annotations,
    bump_markdown,
    bump_outputs,
    bump_text,
    bump_troubles,
    commit_message,
    nixpkgs_commits,
    with_entries,
)
from cudaredist.render.check_text import (
    check_annotations,
    check_markdown,
    check_outputs,
    check_text,
    kinds_json,
    kinds_text,
    validate_text,
)
from cudaredist.render.common import report_json
from cudaredist.render.diff_text import diff_markdown, diff_text
from cudaredist.render.manifest_text import (
    download_errors,
    download_text,
    peek_text,
    process_errors,
    process_text,
)
from cudaredist.render.set_text import build_text, export_text, set_text, toolkit_text
from cudaredist.render.table_text import explain_text, table_text
from cudaredist.render.which_text import versions_renovate, versions_text, which_text

__all__ = [
    "build_text",
    "bump_annotations",
    "bump_markdown",
    "bump_outputs",
    "bump_text",
    "bump_troubles",
    "check_annotations",
    "check_markdown",
    "check_outputs",
    "check_text",
    "commit_message",
    "diff_markdown",
    "diff_text",
    "download_errors",
    "download_text",
    "explain_text",
    "export_text",
    "kinds_json",
    "kinds_text",
    "nixpkgs_commits",
    "peek_text",
    "process_errors",
    "process_text",
    "report_json",
    "set_text",
    "table_text",
    "toolkit_text",
    "validate_text",
    "versions_renovate",
    "versions_text",
    "which_text",
    "with_entries",
]
