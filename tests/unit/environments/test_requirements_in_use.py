"""Tests of the requirements that count in an environment, and of its extras in use."""

from collections.abc import Sequence

import pytest
from packaging.requirements import Requirement

from cudaredist.environments.installed import Distribution
from cudaredist.environments.requirements_in_use import (
    extra_with,
    project_of,
    required_projects,
    requirements_in_use,
)

CUBLAS, CUFFT, NCCL = "nvidia-cublas-cu12", "nvidia-cufft-cu12", "nvidia-nccl-cu12"
WHEELS = (CUBLAS, CUFFT, NCCL)


def package(project: str, *requires: str, extras: Sequence[str] = ()) -> Distribution:
    requirements = tuple(map(Requirement, requires))
    return Distribution(project, "1.0", "site-packages", requirements, tuple(extras), files={})


def in_use(*packages: Distribution) -> dict[str, list[str]]:
    """Return the projects that each package requires, if it requires any."""
    by_project = {each.project: each for each in packages}
    requirements = requirements_in_use(by_project, WHEELS).items()
    return {name: list(map(project_of, required)) for name, required in requirements if required}


def test_requirement_without_extra_is_in_use() -> None:
    assert in_use(package("example", CUBLAS, "numpy; extra == 'all'")) == {"example": [CUBLAS]}


@pytest.mark.parametrize(
    ("others", "is_used"),
    [
        ([package("user", "example[gpu]")], True),
        ([package("user", "example[GPU]")], True),
        ([package("user", "example")], False),
        ([package("user", "example[gpu]; extra == 'all'", extras=["all"])], False),
        (
            [
                package("user", "example[gpu]; extra == 'all'", extras=["all"]),
                package("last", "user[all]"),
            ],
            True,
        ),
    ],
    ids=["named", "other case", "not named", "by an unused extra", "by a used extra"],
)
def test_extra_that_another_package_names_is_in_use(
    others: Sequence[Distribution], *, is_used: bool
) -> None:
    example = package("example", f"{CUBLAS}; extra == 'gpu'", extras=["gpu"])
    assert in_use(example, *others).get("example", []) == ([CUBLAS] if is_used else [])


@pytest.mark.parametrize(
    ("installed", "users", "is_used"),
    [
        ((), (), False),
        ((CUBLAS,), (), True),
        ((CUBLAS,), ("torch",), False),
        ((CUBLAS, CUFFT), ("torch",), True),
        ((CUBLAS, CUFFT), (), True),
    ],
    ids=["none", "only user", "of another package", "whole", "whole and only user"],
)
def test_extra_that_installed_wheels_imply_is_in_use(
    installed: Sequence[str], users: Sequence[str], *, is_used: bool
) -> None:
    extra = [f"{name}; extra == 'gpu'" for name in (CUBLAS, CUFFT)]
    packages = [package("example", *extra, extras=["gpu"]), *map(package, installed)]
    packages += (package(user, CUBLAS) for user in users)
    assert in_use(*packages).get("example", []) == ([CUBLAS, CUFFT] if is_used else [])


def test_extra_without_wheels_of_nvidia_is_not_in_use() -> None:
    example = package("example", "numpy; extra == 'fast'", extras=["fast"])
    assert in_use(example, package("numpy")) == {}


def test_larger_extra_is_not_in_use_if_a_smaller_one_is_whole() -> None:
    small = f"{CUBLAS}; extra == 'small'"
    large = [f"{name}; extra == 'large'" for name in (CUBLAS, NCCL)]
    example = package("example", small, *large, extras=["small", "large"])
    assert in_use(example, package(CUBLAS)) == {"example": [CUBLAS]}


def test_extra_of_a_metapackage_is_in_use_only_if_it_is_named() -> None:
    toolkit = package("cuda-toolkit", f"{CUBLAS}; extra == 'cublas'", extras=["cublas"])
    assert in_use(toolkit, package(CUBLAS)) == {}
    user = package("example", "cuda-toolkit[cublas]")
    assert in_use(toolkit, package(CUBLAS), user)["cuda-toolkit"] == [CUBLAS]


def test_extra_with_the_fewest_other_projects_is_chosen() -> None:
    requires = [f"{name}; extra == 'all'" for name in (CUBLAS, NCCL)]
    example = package("example", *requires, f"{CUBLAS}; extra == 'blas'", extras=["all", "blas"])
    assert extra_with(example, CUBLAS) == "blas"
    assert extra_with(example, NCCL) == "all"
    assert extra_with(example, CUFFT) is None


def test_required_projects_follow_extras_that_requirements_name() -> None:
    packages = [
        package("example", "middle[gpu]"),
        package("middle", f"{CUBLAS}; extra == 'gpu'", f"{NCCL}; extra == 'all'"),
        package(CUBLAS),
        package(NCCL),
    ]
    by_project = {each.project: each for each in packages}
    assert required_projects("example", by_project) == {"example", "middle", CUBLAS}
