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
FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


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
