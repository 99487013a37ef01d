"""Tests of `explain gpu`: releases of each package that run on a GPU."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from support.running import report
from support.set_inputs import JETSON, LINUX, SBSA, Release, cuda, put_data, with_code


def span(first: str, newest: str, *gaps: str, since: str = "") -> dict[str, Any]:
    exact = {"since": since or first, "until": newest}
    return {"first": first, "newest": newest, **exact, "gaps": list(gaps)}


EARLIER_PATCH, EARLIER_RELEASE = "{} or an earlier patch", "{} or an earlier release"


def library(label: str, *modules: dict[str, int] | None, platform: str = LINUX) -> Release:
    return Release(
        "cutensor", label, {"libcutensor": [platform]}, {"libcutensor": with_code(*modules)}
    )


def cublas(label: str, *modules: dict[str, int]) -> Release:
    return cuda(label, [LINUX], features={"libcublas": with_code(*modules)}, libcublas=[LINUX])


RELEASES = (
    cublas("12.9.1", {"sm_70 sm_80": 5}),
    # Code for a GPU that CUDA 13 no longer supports.
    cublas("13.0.2", {"sm_70 sm_80": 5}),
    library("1.9.0", {"compute_50": 5}),
    library("2.0.0", {"sm_70": 5, "sm_90": 5}),
    library("2.1.0", {"sm_70": 5, "sm_120": 5}),
    library("2.2.0", {"sm_75": 5}, {"sm_70": 5, "sm_120": 5}),
    library("2.3.0", {"sm_75 sm_120": 9}),
)  # fmt: skip


@pytest.fixture
def explain(run: Run, tmp_path: Path) -> Any:
    """Return a function that explains a GPU from given releases."""

    def answer(name: str, *releases: Release, text: bool = False) -> Any:
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        put_data(root, *releases)
        put_tables(root)
        call = ("explain", "gpu", name, "--data-dir", root, "--no-shipped-data")
        result = run(*call, *(() if text else ("--json",)))
        assert result.exit_code == 0
        return result.stdout if text else json.loads(result.stdout)["coverage"]

    return answer


def test_explain_gpu_lists_native_ptx_and_first_unsupported_release(explain: Any) -> None:
    assert explain("V100", *RELEASES) == [
        {
            "capability": "7.0",
            "redist": "cuda",
            "package": "libcublas",
            "cuda": None,
            "any": None,
            "native": span("12.9.1", "12.9.1", since=EARLIER_PATCH.format("12.9.1")),
            "ptx": None,
            "without": {
                "release": "13.0.2",
                "since": EARLIER_PATCH.format("13.0.2"),
                "coverage": "none",
            },
            "releases": 2,
            "unknown": 0,
        },
        {
            "capability": "7.0",
            "redist": "cutensor",
            "package": "libcutensor",
            "cuda": None,
            "any": None,
            "native": span("2.0.0", "2.1.0"),
            "ptx": span("1.9.0", "1.9.0", since=EARLIER_RELEASE.format("1.9.0")),
            "without": {
                "release": "2.2.0",
                "since": "2.2.0",
                "coverage": "partial: 1 of 2 files, native 5 of 10 modules",
            },
            "releases": 5,
            "unknown": 0,
        },
    ]


def test_explain_gpu_of_new_gpu_names_first_supporting_release(explain: Any) -> None:
    blas, tensor = explain("RTX 5090", *RELEASES)
    assert (blas["native"], blas["without"]["release"]) == (None, "12.9.1")
    assert tensor["native"] == span("2.1.0", "2.3.0", "2.2.0")
    assert tensor["ptx"] == span("1.9.0", "1.9.0", since=EARLIER_RELEASE.format("1.9.0"))
    assert tensor["without"] is None
    assert "2.1.0 to 2.3.0 except 2.2.0" in explain("RTX 5090", *RELEASES, text=True)


def test_explain_gpu_of_jetson_counts_jetson_builds_only(explain: Any) -> None:
    releases = (
        library("2.0.0", {"sm_87": 5}, platform=JETSON),
        library("2.1.0", {"sm_80 sm_87": 5}, platform=LINUX),
        library("2.2.0", {"sm_87": 5}, platform=SBSA),
    )
    (orin,) = explain("8.7", *releases)
    assert (orin["native"], orin["releases"]) == (
        span("2.0.0", "2.2.0", since=EARLIER_RELEASE.format("2.0.0")),
        2,
    )
    (ampere,) = explain("8.0", *releases)
    # The archive of 2.0.0 is only for Jetsons.
    since = EARLIER_RELEASE.format("2.1.0")
    assert (ampere["native"], ampere["releases"]) == (span("2.1.0", "2.1.0", since=since), 2)


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("8.7", "12.9.1"),
        ("7.2", "12.2.2"),
        ("6.2", "12.9.1"),
        ("5.3", "12.9.1"),
        ("10.1", "12.9.1"),
    ],
)
def test_explain_gpu_of_jetson_names_archives_to_examine(run: Run, name: str, release: str) -> None:
    """On the shipped data."""
    text = run("explain", "gpu", name).stdout
    about = f"--redist cuda --version {release}"
    assert (
        f"NVIDIA's archives for linux-aarch64, up to CUDA {release}, were not examined: run "
        f"`cudaredist download-manifests {about}` and "
        f"`cudaredist process-manifests {about} --platform linux-aarch64`."
    ) in text.splitlines()


@pytest.mark.parametrize("name", ["7.2", "6.2", "5.3", "10.1"])
def test_explain_gpu_of_jetson_without_examined_archives_is_unknown(run: Run, name: str) -> None:
    """On the shipped data."""
    line = run("explain", "gpu", name).stdout.partition("\n")[0]
    assert line == f"The newest release that runs on compute capability {name} is unknown."


def test_explain_gpu_of_orin_names_releases_for_it(run: Run) -> None:
    """On the shipped data."""
    first, code, *_ = run("explain", "gpu", "8.7").stdout.splitlines()
    assert first.endswith("that run together on compute capability 8.7 (linux-sbsa).")
    assert code == (
        "They have no code for 8.7. It runs code for other GPUs of its architecture from CUDA "
        "13.2 on. Before, this is unknown."
    )


def test_explain_gpu_of_orin_with_sources_names_both_reports(run: Run) -> None:
    """On the shipped data."""
    text = run("explain", "gpu", "8.7", "--sources").stdout
    assert "policy: ollama issue 16628" in text
    assert "does not run (jax 40492)" in text


def test_explain_gpu_of_tegra_without_builds_names_no_archives(run: Run) -> None:
    """On the shipped data."""
    assert "linux-aarch64" not in run("explain", "gpu", "8.8").stdout
    assert "run `cudaredist explain gpu 11.0`" in run("explain", "gpu", "10.1").stdout


def test_explain_gpu_counts_releases_of_unknown_coverage(explain: Any) -> None:
    earlier = with_code({"sm_70": 5}).model_copy(update={"code_by_file": None})
    unknown = library("2.4.0")._replace(features={"libcutensor": earlier})
    (coverage,) = explain("7.0", *RELEASES[2:], unknown)
    assert (coverage["releases"], coverage["unknown"]) == (6, 1)
    assert [part["unknown"] for part in explain("7.0", unknown)] == [1]


def test_explain_gpu_text_ends_with_releases(explain: Any) -> None:
    assert explain("7.0", *RELEASES, text=True).splitlines()[-4:] == [
        "releases that run on 7.0, according to the device code in feature files",
        "  package           CUDA  any GPU  native                      PTX only                 "
        "    first without",
        "  libcublas (cuda)  all   -        12.9.1 or an earlier patch  -                        "
        "    13.0.2 or an earlier patch",
        "  libcutensor       all   -        2.0.0 to 2.1.0              1.9.0 or an earlier relea"
        "se  2.2.0 (partial: 1 of 2 files, native 5 of 10 modules)",
    ]


def put_tables(root: Path) -> None:
    for name in ("gpus.json", "nvcc_compat.json"):
        (root / name).write_bytes((REPOSITORY / "data" / name).read_bytes())


@pytest.mark.parametrize(
    ("releases", "hint"),
    [
        (
            [library("2.0.0", {"sm_70": 5})._replace(features=None)],
            "cudaredist process-manifests",
        ),
        ([], "cudaredist download-manifests"),
        ([library("2.0.0", None)], None),
    ],
)
def test_explain_gpu_without_features_suggests_command(
    run: Run, releases: list[Release], hint: str | None
) -> None:
    """Nothing was said about the releases that run on the GPU."""
    Path("data").mkdir()
    put_data(Path("data"), *releases)
    put_tables(Path("data"))
    # The shipped features of wheels would be the answer.
    text = run("explain", "gpu", "V100", "--no-shipped-data").stdout.splitlines()[-1]
    unknown = "The releases that run on it are unknown, because there are no feature files. "
    assert (text == f"{unknown}Run `{hint}`.") is (hint is not None)
    document = report(run("explain", "gpu", "V100", "--json", "--no-shipped-data"))
    assert (document["coverage"], document["hint"]) == ([], hint)
