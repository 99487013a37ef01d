"""Files that users name as outputs: links stay links, and modes stay."""

import stat
from pathlib import Path

import pytest
from conftest import Run
from support.small_sets import make_data
from support.toolkits import MadeSet

CALLS: dict[str, tuple[object, ...]] = {
    "export": ("export", "sha256sums", "set.json", "--output", "output.json"),
    "build": (
        *("build", "--cuda", "all", "--platform", "linux-x86_64"),
        *("--data-dir", "made/data", "--output", "output.json"),
    ),
    "validate": ("validate", "--fix", "output.json"),
}
INPUT = {"export": "old", "build": "{}", "validate": '{"schema_version": 1, "redists": {}}'}


@pytest.fixture
def made(made_set: MadeSet) -> None:
    make_data(Path("made"))


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", [0o444, 0o755, 0o600, "link"])
def test_output_keeps_its_mode_or_link(run: Run, name: str, kind: int | str) -> None:
    output, real = Path("output.json"), Path("real/output.json")
    output.write_text(INPUT[name])
    if isinstance(kind, int):
        output.chmod(kind)
    else:
        real.parent.mkdir()
        output.rename(real)
        output.symlink_to(real)
    result = run(*CALLS[name])
    assert output.read_text() != INPUT[name], result.output
    if isinstance(kind, int):
        assert stat.S_IMODE(output.lstat().st_mode) == kind
    else:
        assert output.readlink() == real
    assert not list(Path().rglob("*.tmp"))
