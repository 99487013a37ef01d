"""Tests of `process-manifests --peek`: limits of examining names only."""

import json
from pathlib import Path

from conftest import Run
from support import binaries
from support.releases import Files, publish, release
from support.server import FaultServer

CUDART: Files = {
    "bin/x64/cudart64_12.dll": binaries.pe(name="cudart64_12.dll"),
    "lib/x64/cudart.lib": binaries.import_library("cudart64_12.dll"),
    "lib/x64/cudart_static.lib": binaries.ar({"a.obj": b"object"}),
}


def test_peek_reports_ambiguous_import_libraries(server: FaultServer, run: Run) -> None:
    publish(server, release("12.9.1", {"cuda_cudart": {"windows-x86_64": CUDART}}))
    call = ("process-manifests", "--base-url", server.url)
    result = run(*call, "--peek")
    assert result.exit_code == 0, result.output
    assert (
        "2 .lib files are listed as static, because --peek does not read them; import libraries "
        "would be in the output lib\n" in result.stdout
    )
    (peeked,) = json.loads(run(*call, "--peek", "--json").stdout)["archives"]
    assert (peeked["undecided_libraries"], set(peeked["outputs"])) == (2, {"bin", "out", "static"})
    assert run(*call, "-q").exit_code == 0
    features = json.loads(Path("data/features/cuda/feature_12.9.1.json").read_bytes())
    (examined,) = features["packages"]["cuda_cudart"]["archives"]
    assert set(examined["outputs"]) == {"bin", "lib", "out", "static"}
