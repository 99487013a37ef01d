"""NVIDIA's reference parser reads a mirror, and cudaredist reads the releases that it reads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Run
from support.nvidia_channels import ROOT, nvidia_channel_release, serve_nvidia_channels
from support.running import expect_output
from support.server import FaultServer

pytestmark = pytest.mark.network

PARSER = "nvidia-binarchive==0.7.0"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the parser, and return the path of its program."""
    folder = tmp_path_factory.mktemp("parser")
    install = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder)
    subprocess.run([*install, PARSER], check=True)
    return folder / "nvidia_binarchive" / "parse_redist.py"


def test_reference_parser_reads_mirror(program: Path, server: FaultServer, run: Run) -> None:
    serve_nvidia_channels(server, {"preview": ["13.4.0"], "archive": ["13.2.0", "13.2.1"]})
    source = ("--redist", "cuda", "--base-url", server.url + ROOT, "--version", "all", "--pre")
    expect_output(run("mirror", "sync", "mirror", *source, "--nvidia-channel", "archive"), 0)
    with FaultServer() as mirror:
        served = {f"{ROOT}/{p.relative_to('mirror')}": p for p in Path("mirror").rglob("*")}
        mirror.files |= {path: p.read_bytes() for path, p in served.items() if p.is_file()}

        def parse(*options: str) -> str:
            result = subprocess.run(
                [sys.executable, program, "--product", "cuda", *options],
                env={**os.environ, "DOMAIN_HOST": mirror.url},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            assert result.returncode == 0, result.stdout
            return result.stdout

        text = parse("--list")
        assert "- preview: 13.4.0" in text
        assert "- archive: 13.2.0, 13.2.1" in text
        for options, label in (
            (("--channel", "preview"), "13.4.0"),
            (("--channel", "archive"), "13.2.1"),
            (("--channel", "archive", "--label", "13.2.0"), "13.2.0"),
        ):
            text = parse(*options, "--no-extract")
            files, entry = nvidia_channel_release(label)
            assert f"Verified manifest sha256: {entry['sha256']}" in text
            assert "Mismatch" not in text
            archives = [path for path in files if path.startswith("pool/")]
            assert text.count("Verified sha256sum") == len(archives)
            assert all(Path(path).name in text for path in archives)
        download = ("download-manifests", "--redist", "cuda", "--base-url", mirror.url + ROOT)
        nvidia_channels = ("--pre", "--nvidia-channel", "archive")
        expect_output(run(*download, "--version", "all", *nvidia_channels), 0)
    labels = {path.stem for path in Path("data/manifests/cuda").iterdir()}
    assert labels == {f"redistrib_{label}" for label in ("13.2.0", "13.2.1", "13.4.0")}
