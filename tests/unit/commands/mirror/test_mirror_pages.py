"""The generated files of a mirror, read by our own reader of package indexes."""

import json

from cudaredist.commands.mirror.mirror_pages import generated_files
from cudaredist.formats.mirror_lock import MirrorFile
from cudaredist.sources.index_page import read_page

JSON = "application/vnd.pypi.simple.v1+json"
NAME = "nvidia_x-1.0-py3-none-any.whl"
FILES = {
    f"simple/nvidia-x/{NAME}": MirrorFile(
        size=7, sha256="a" * 64, requires_python=">=3.9,<4", yanked=True
    ),
    f"simple/nvidia-x/{NAME}.metadata": MirrorFile(size=8, sha256="b" * 64),
    "simple/nvidia-x/nvidia_x-1.10-py3-none-any.whl": MirrorFile(size=9, sha256="c" * 64),
    "compute/x+y/redist/a~b.zip": MirrorFile(size=1, sha256="d" * 64),
}
PAGES = generated_files(FILES)


def test_html_and_json_pages_of_a_project_agree() -> None:
    address = "https://host.example/simple/nvidia-x/"
    pages = {
        kind: read_page(PAGES[f"simple/nvidia-x/{name}"], kind, address, "page")
        for kind, name in ((JSON, "index.json"), ("text/html", "index.html"))
    }
    assert [wheel._replace(size=None) for wheel in pages[JSON]] == pages["text/html"]
    old, new = sorted(pages[JSON], key=lambda wheel: wheel.version)
    assert (old.sha256, old.size, old.is_yanked) == ("a" * 64, 7, True)
    assert (old.metadata_sha256, new.metadata_sha256) == ("b" * 64, None)
    assert (new.is_yanked, new.url) == (False, f"{address}{new.file_name}")


def test_pages_of_a_project_state_python_versions_and_sorted_versions() -> None:
    assert b'data-requires-python="&gt;=3.9,&lt;4"' in PAGES["simple/nvidia-x/index.html"]
    page = json.loads(PAGES["simple/nvidia-x/index.json"])
    assert page["versions"] == ["1.0", "1.10"]
    assert page["files"][0]["requires-python"] == ">=3.9,<4"


def test_each_folder_has_a_page_and_each_file_a_sum() -> None:
    assert {path for path in PAGES if path.endswith("index.html")} == {
        "index.html",
        "compute/index.html",
        "compute/x+y/index.html",
        "compute/x+y/redist/index.html",
        "simple/index.html",
        "simple/nvidia-x/index.html",
    }
    assert b'<a href="a~b.zip">a~b.zip</a>' in PAGES["compute/x+y/redist/index.html"]
    sums = dict(line.split("  ")[::-1] for line in PAGES["SHA256SUMS"].decode().splitlines())
    assert sums == {path: file.sha256 for path, file in FILES.items()}
