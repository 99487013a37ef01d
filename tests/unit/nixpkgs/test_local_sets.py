"""Tests of the sets that `nixpkgs` resolves without built sets."""

import pytest
from support.set_inputs import JETSON, LINUX, SBSA, cuda, set_data_of

from cudaredist.nixpkgs.local_sets import local_sets
from cudaredist.nixpkgs.machines import MACHINES, ORIN, SERVER_ARM, THOR, X86
from cudaredist.nixpkgs.releases import find_set


@pytest.mark.parametrize(
    ("label", "platforms", "machines"),
    [
        ("12.9.1", (LINUX, SBSA), {X86, SERVER_ARM}),
        ("12.9.1", (LINUX, SBSA, JETSON), {X86, SERVER_ARM, ORIN}),
        ("13.0.2", (LINUX, SBSA), {X86, SERVER_ARM, ORIN, THOR}),
        ("13.2.0", (LINUX, SBSA), {X86, SERVER_ARM, ORIN, THOR}),
        ("13.2.0", (LINUX,), {X86}),
    ],
)
def test_jetsons_have_sets_of_arm_servers_from_cuda_13_on(
    label: str, platforms: tuple[str, ...], machines: set[str]
) -> None:
    sets = local_sets(set_data_of(cuda(label, platforms)), {})
    attribute = f"cudaPackages_{label.replace('.', '_')[:-2]}"
    assert {name for name in MACHINES if find_set(sets, attribute, name)} == machines
