"""Tests of audit: sizes of files and of their device code."""

from pathlib import Path

import pytest
from support.binaries import Image, elf, fatbin
from support.programs import audit_data
from support.releases import put

from cudaredist.commands.audit.text import audit_text
from cudaredist.environments.audit_program import audit_report
from cudaredist.environments.read_program import ProgramReader
from cudaredist.programs.program import AuditRequirements
from cudaredist.programs.report import AuditReport
from cudaredist.store.cache import Cache

PAYLOAD = 4096


def kernels(*images: Image) -> bytes:
    """Return a library with one module of device code."""
    return elf(sections={".nv_fatbin": fatbin(images, payload=bytes(PAYLOAD))})


FILES = {
    "a.so": kernels(("sm", 80, ""), ("sm", 90, ""), ("compute", 90, "")),
    "b.so": kernels(("sm", 70, "")),
    "c.so": elf(),
}


def audit(folder: Path, *gpus: str, has_sizes: bool = True) -> AuditReport:
    put(folder, FILES)
    reader = ProgramReader(cache=Cache(folder.with_suffix(".cache")), paths=[folder])
    required = AuditRequirements(gpus=gpus, has_sizes=has_sizes)
    return audit_report(reader.read_all(), audit_data(), required)


def test_sizes_are_those_of_files_and_images(tmp_path: Path) -> None:
    sizes = audit(tmp_path).sizes
    assert sizes is not None
    assert {each.path: each.size for each in sizes.files} == {n: len(d) for n, d in FILES.items()}
    assert [each.path for each in sizes.files] == ["a.so", "b.so", "c.so"]
    assert [*sizes.code] == ["compute_90", "sm_70", "sm_80", "sm_90"]
    assert [each.code for each in sizes.files] == [3 * PAYLOAD, PAYLOAD, 0]
    assert (sizes.size, sizes.unused) == (sum(map(len, FILES.values())), None)


@pytest.mark.parametrize(
    ("gpus", "unused"),
    [(["8.0"], [2, 1, 0]), (["8.0", "9.0"], [1, 1, 0]), (["12.0"], [2, 1, 0]), ([], [None] * 3)],
)
def test_unused_code_is_that_of_no_required_gpu(
    tmp_path: Path, gpus: list[str], unused: list[int | None]
) -> None:
    sizes = audit(tmp_path, *gpus).sizes
    assert sizes is not None
    assert [each.unused for each in sizes.files] == [n and n * PAYLOAD for n in unused]
    assert sizes.unused == (sum(n or 0 for n in unused) * PAYLOAD if gpus else None)


def test_text_has_the_largest_files_and_each_architecture(tmp_path: Path) -> None:
    lines = list(audit_text(audit(tmp_path, "8.0")))
    assert f"Bytes of its binaries: {sum(map(len, FILES.values())):,}, the largest:" in lines
    assert "  sm_80       4,096" in lines
    words = "of which GPUs of capability 8.0 do not use 12,288"
    assert f"Bytes of device code by architecture: 16,384, {words}:" in lines


def test_report_has_sizes_only_if_requested(tmp_path: Path) -> None:
    assert audit(tmp_path, has_sizes=False).sizes is None
