"""export renders templates of the user, and lists those of the package."""

import json
from pathlib import Path

import pytest
from conftest import Run

from cudaredist.exporters.template import shipped_templates

LINES = {
    "cmake-gpus": "  list(APPEND CMAKE_CUDA_ARCHITECTURES_ALL 89 90)",
    "conda": '{% set version = "0.6.0.84" %}',
    "easybuild": "    '%(namelower)s-linux-sbsa-%(version)s_cuda%(cudamajver)s-archive.tar.xz':",
    "llvm": 'NVPTX_GPU("sm_90a",  SM_90a,  "compute_90a",  900,  CUDA_120, NEW,      ACCELERATED)',
    "pytorch": "        \"nvidia-cublas-cu12==12.8.3.14; platform_system == 'Linux' | \"",
    "requirements-lock": "nvidia-cublas-cu12==12.9.1.4 \\",
    "rules-cuda": '    name = "cuda_12_9_1",',
    "spack": '    "9.10.2.21-12": {',
    "yggdrasil": '        LibraryProduct(["libcupti", "cupti64_2025.2.1"], :libcupti),',
}
"""A line of each shipped template with its own query."""


def test_every_shipped_template_has_an_example() -> None:
    assert shipped_templates().keys() == LINES.keys()
    assert all(one.title and '"' not in one.sql for one in shipped_templates().values())


@pytest.mark.parametrize("name", LINES)
def test_shipped_template_renders_its_query(run: Run, name: str) -> None:
    template = shipped_templates()[name]
    result = run("query", template.sql, "--template", name)
    assert result.exit_code == 0, result.output
    assert LINES[name] in result.stdout.splitlines()


def test_template_for_conda_has_both_kinds_of_arm(run: Run) -> None:
    """conda-forge's recipe of cuda-cudart distinguishes servers and Jetsons."""
    sql = """
        SELECT version, platform, variant, sha256 FROM downloads
        WHERE package = 'cuda_cudart' AND label = '12.8.1' AND channel = 'redist'"""
    lines = run("query", sql, "--template", "conda").stdout.splitlines()
    selectors = ["linux64", 'aarch64 and arm_variant_type=="sbsa"']
    selectors += ['aarch64 and arm_variant_type=="tegra"', "win"]
    assert [line.partition("  # ")[2] for line in lines[1:]] == [f"[{one}]" for one in selectors]


def test_template_gets_the_sets_of_an_index(run: Run, tmp_path: Path) -> None:
    template = tmp_path / "x.j2"
    template.write_text(
        "{% for one in sets %}{{ one.cuda.release }} {% endfor %}"
        "{{ query('SELECT count(*) AS n FROM gpus')[0].n > 0 }}"
    )
    sets = [("--cuda", cuda, "--platform", "linux-x86_64") for cuda in ("12.9.1", "13.0.2")]
    for number, options in enumerate(sets):
        run("build", *options, "-o", tmp_path / f"{number}.json")
        text = run("export", "template", template, tmp_path / f"{number}.json").stdout
        assert text == f"{options[1]} True"
    assert run("export", "template", template).stdout == "True"


def test_template_gets_all_rows_or_an_error(run: Run, tmp_path: Path) -> None:
    template = tmp_path / "x.j2"
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {})"
    query = f"{numbers} SELECT i FROM n"
    template.write_text(f"{{{{ query('{query.format(5000)}') | length }}}}")
    assert run("export", "template", template).stdout == "5000"
    template.write_text(f"{{{{ query('{query.format(100001)}') | length }}}}")
    result = run("export", "template", template)
    assert result.exit_code == 3
    assert "it has more than 100,000 rows" in result.stderr
    assert "hint: select fewer rows" in result.stderr


def test_text_of_a_template_is_checked_and_written(run: Run, tmp_path: Path) -> None:
    template, output = tmp_path / "x.j2", tmp_path / "text"
    template.write_text("{{ sets | length }}")
    call = ("export", "template", template, "-o", output)
    assert run(*call, "--check").exit_code == 1
    assert json.loads(run(*call, "--json").stdout)["files"][0]["status"] == "written"
    assert output.read_text() == "0"
    output.write_text("# BEGIN\n# END\n")
    assert run(*call, "--between", "BEGIN", "END").exit_code == 0
    assert output.read_text() == "# BEGIN\n0\n# END\n"


def test_formats_and_templates_are_listed(run: Run) -> None:
    formats = json.loads(run("export", "--list", "--json").stdout)["formats"]
    assert {"nix", "template", *LINES} <= {one["name"] for one in formats}
    text = run("export", "--list").stdout
    assert shipped_templates()["spack"].command_line in text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("spack",), "spack is a template, not a format"),
        ((), "expected either FORMAT or --list"),
        (("nix", "--list"), "expected either FORMAT or --list"),
        (("template",), "missing FILE of the template"),
        (("nix", "set.json", "other.json"), "nix takes one package set"),
        (("nix", "set.json", "--between", "A", "B"), "--between requires the format template"),
    ],
)
def test_wrong_calls_are_refused(run: Run, call: tuple[str, ...], message: str) -> None:
    result = run("export", *call)
    assert result.exit_code == 2
    assert message in result.stderr
