"""Tests that examples of pages that list and download manifests run with NVIDIA's own manifests."""

import pytest
from conftest import REAL_MANIFESTS, Run
from support.examples import run_with_server, sources
from support.server import FaultServer

from cudaredist.redists import NVIDIA_BASE

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not REAL_MANIFESTS.is_dir(), reason="NVIDIA's manifests are missing"),
]

LISTING = {"check", "diff", "download-manifests", "versions"}
"""Commands that need manifests and no archives."""
OTHERS = ("tensorrt", "13.4.0")
"""NVIDIA's server has no manifests of TensorRT, and none of an early-access release for ever."""
EXAMPLES = {
    name: [
        e
        for e in examples
        if not e.is_cudaredist or (e.words[0] in LISTING and not {*OTHERS} & {*e.words})
    ]
    for name, examples in sources().items()
}
SERVED = [name for name, examples in EXAMPLES.items() if any(e.needs_server for e in examples)]


@pytest.mark.parametrize("source", SERVED)
def test_examples_that_list_manifests_run_in_order_with_real_ones(
    run: Run, server: FaultServer, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add_folder(REAL_MANIFESTS)
    addresses = {NVIDIA_BASE: server.url, " URL ": f" {server.url}/compute/cuda/redist "}
    run_with_server(EXAMPLES[source], server.url, monkeypatch, addresses)
