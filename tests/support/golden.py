"""Golden files: expected text in named sections. --refresh-golden rewrites them."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "golden"


class Golden:
    """Comparison of text with sections of golden files."""

    def __init__(self, *, refresh: bool) -> None:
        self._refresh = refresh

    def check(self, file: str, section: str, text: str) -> None:
        """Assert that a section equals a text. With --refresh-golden, write the text."""
        path = FOLDER / file
        sections = _read(path)
        if self._refresh:
            sections[section] = text
            path.parent.mkdir(exist_ok=True)
            path.write_text(
                "".join(f"== {name}\n{sections[name]}\n" for name in sorted(sections)), "utf-8"
            )
        assert text == sections.get(section), f"{file} section {section}"


def _read(path: Path) -> dict[str, str]:
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        if line.startswith("== "):
            current = sections.setdefault(line.removeprefix("== "), [])
        else:
            current.append(line)
    return {name: "\n".join(lines) for name, lines in sections.items()}


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(refresh=request.config.getoption("--refresh-golden"))
