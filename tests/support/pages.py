"""Pages of the documentation: files, blocks, commands and links."""

import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
README = REPOSITORY / "README.md"
DOCS = sorted(REPOSITORY.glob("docs/*.md"))
PAGES = [README, *DOCS]
"""Pages with examples that tests run."""
ALL_PAGES = [*PAGES, REPOSITORY / "CONTRIBUTING.md", REPOSITORY / "CHANGELOG.md"]
NETWORK = "# needs network"
"""Mark of an example that needs NVIDIA's server, an index, or the result of such an example."""
CUT = "..."
"""A line that replaces omitted lines on a page."""
_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> Iterator[str]:
    """Yield the text of each fenced block, with continued lines joined."""
    for block in _FENCED.findall(page.read_text()):
        yield block.replace("\\\n", " ")


def prose(page: Path) -> str:
    """Return the text of a page without fenced blocks."""
    return _FENCED.sub("", page.read_text())


def shown_after(page: Path, call: str) -> str:
    """Return the documented output of the only call with a given start."""
    (output,) = [part.partition("\n")[2] for part in blocks(page) if part.startswith(f"$ {call}")]
    return output


def is_shown(shown: str, printed: str) -> bool:
    """Check if all parts between lines of three dots are printed in order."""
    position = 0
    for part in re.split(rf"^{re.escape(CUT)}\n", shown, flags=re.MULTILINE):
        position = printed.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return True


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site name them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """List the links of a page to a file or heading that does not exist."""
    broken = []
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", prose(page)):
        path = page.parent / target if target else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(f"{target}#{anchor}" if anchor else target)
    return broken
