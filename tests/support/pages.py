"""Pages of the documentation: their files, blocks and command calls."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from cudaredist.app import app
from tools.reference import GENERATED_FOLDERS

GROUP: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = GROUP.commands
REPOSITORY = Path(__file__).parents[2]
README = REPOSITORY / "README.md"
DOCS_FOLDER = REPOSITORY / "docs"
DOCS = sorted(DOCS_FOLDER.glob("**/*.md"))
PAGES = [README, *DOCS]
WRITTEN_PAGES = [page for page in PAGES if page.parent.name not in GENERATED_FOLDERS]
"""Pages with examples that tests run. The other ones are made from help texts and schemas."""
ALL_PAGES = [
    *PAGES,
    *(REPOSITORY / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
]
CUT = "..."
"""A line that replaces omitted lines on a page."""
FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def name_of(page: Path) -> str:
    """Return the path of a page below the folder of the pages."""
    return page.relative_to(DOCS_FOLDER if DOCS_FOLDER in page.parents else REPOSITORY).as_posix()


def blocks(page: Path) -> Iterator[str]:
    """Yield the text of each fenced block, with continued lines joined."""
    for block in FENCED.findall(page.read_text()):
        yield block.replace("\\\n", " ")


def is_shown(shown: str, printed: str) -> bool:
    """Check if all parts between lines of three dots are printed in order."""
    position = 0
    for part in re.split(rf"^{re.escape(CUT)}\n", shown, flags=re.MULTILINE):
        position = printed.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return True


def problem_with(words: list[str], *, may_lack_words: bool) -> str | None:
    """Return the reason for refusing a call, or None if it parses."""
    name, *rest = words
    if name.startswith("-"):
        known = {option for parameter in GROUP.params for option in parameter.opts}
        return None if name in {*known, "--help"} else f"no option {name}"
    if name not in COMMANDS:
        return f"no command {name}"
    if set(rest) & {"-h", "--help"}:
        return None
    try:
        COMMANDS[name].make_context(name, rest)
    except Exception as error:  # noqa: BLE001 - typer's errors have no public name
        if type(error).__name__ == "MissingParameter" and may_lack_words:
            return None
        return f"{type(error).__name__}: {error}"
    return None
