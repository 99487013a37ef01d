"""Tests of `explain driver`."""

import json
from pathlib import Path

import pytest
from conftest import REPOSITORY, Run
from support.factory import manifest
from support.releases import put
from support.running import expect_error, expect_output


def test_driver_lists_releases_packages_and_gpus_with_sources(run: Run) -> None:
    expect_output(
        run("explain", "driver", "580.95"),
        0,
        "driver 580.95 on Linux",
        "forward compatibility packages (cuda_compat) for CUDA: 13.1, 13.2",
        "GPUs that it no longer supports: Kepler (until 470)",
    )
    report = json.loads(run("explain", "driver", "580.95", "--json").stdout)
    assert (report["kind"], report["asked"]) == ("driver", "580.95")
    facts = {fact["name"]: fact for topic in report["topics"] for fact in topic["facts"]}
    assert facts["driver.linux.native"]["value"][-1] == "13.0.2"
    for name, fact in facts.items():
        is_vulnerability = name.startswith("vulnerability.")
        source = "https://nvidia.custhelp.com/" if is_vulnerability else "policy/drivers.json"
        assert source in fact["source"]


def test_driver_names_cuda_compat_for_releases_that_do_not_run(run: Run) -> None:
    line = "CUDA releases that do not run without cuda_compat: 13.0 to"
    expect_output(run("explain", "driver", "535"), 0, line)
    without_package = run("explain", "driver", "418").stdout
    assert "CUDA releases that do not run: 11.0 to" in without_package


def test_driver_lists_every_local_and_shipped_release(run: Run) -> None:
    put(Path("data/manifests/cuda"), {"redistrib_12.3.7.json": manifest("12.3.7")})
    report = json.loads(run("explain", "driver", "580.95", "--json").stdout)
    shipped = (REPOSITORY / "data/manifests/wheels/cuda").glob("redistrib_*.json")
    for topic in report["topics"][:2]:
        labels = [label for fact in topic["facts"] for label in fact["value"]]
        assert len(labels) == len(set(labels))
        assert {"12.3.7", *(x.stem.removeprefix("redistrib_") for x in shipped)} <= set(labels)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("580.95.O5", "did you mean 580.95.05"), (f"580.{'9' * 5000}", "did you mean 580?")],
)
def test_unknown_driver_has_short_suggestion(run: Run, name: str, hint: str) -> None:
    result = expect_error(run("explain", "driver", name), 2, hint)
    assert len(result.stderr) < 2000
