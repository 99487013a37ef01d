"""Tests of extracts: the archive members that tables are built from."""

from collections.abc import Iterator, Mapping

from support.facts import gathered
from support.headers import host_config
from support.ptxas import PROFILES_12_9, ptxas

from cudaredist.archives.members import Member
from cudaredist.features.extracts import HEADER_LIMIT
from cudaredist.features.facts import Extract, facts_from_bytes, facts_to_bytes
from cudaredist.primitives import sha256_of

HEADER = "include/crt/host_config.h"


def members_of(files: Mapping[str, bytes]) -> Iterator[tuple[Member, Iterator[bytes]]]:
    """Yield members of an archive, in chunks of a thousand bytes."""
    for name, content in files.items():
        member = Member(name=name, kind="file", mode=0o644, size=len(content), target=None)
        yield member, (content[at : at + 1000] for at in range(0, len(content), 1000))


def extracts_of(files: Mapping[str, bytes]) -> tuple[Extract, ...]:
    facts = gathered(members_of(files))
    assert facts_from_bytes(facts_to_bytes(facts)) == facts
    return facts.extracts


def test_header_and_ptxas_are_extracted_with_hashes() -> None:
    header, program = host_config(gcc=14) + b"\xe9", ptxas(PROFILES_12_9)
    extracts = extracts_of(
        {f"top/{HEADER}": header, "top/bin/ptxas": program, "top/bin/nvcc": b"x"}
    )
    by_kind = {extract.kind: extract for extract in extracts}
    assert by_kind["host-config"].content.encode("latin-1") == header
    assert by_kind["host-config"].sha256 == sha256_of(header)
    assert '"9.0a": "Hopper"' in by_kind["ptxas"].content
    assert by_kind["ptxas"].sha256 == sha256_of(program)
    assert len(extracts) == 2


def test_extracts_of_wheel_do_not_change_record_notes() -> None:
    header = host_config(gcc=14)
    files = {f"nvidia/cu13/{HEADER}": header, "x.dist-info/RECORD": b""}
    facts = gathered(members_of(files), is_wheel=True)
    assert facts.extracts[0].sha256 == sha256_of(header)
    assert facts.notes == (f"not in RECORD: nvidia/cu13/{HEADER}",)


def test_oversized_header_has_problem_and_no_content() -> None:
    (extracts,) = extracts_of({f"top/{HEADER}": bytes(HEADER_LIMIT + 1)})
    assert extracts.content == ""
    assert extracts.problem == "larger than 4,194,304 bytes"


def test_ptxas_that_is_not_a_program_has_problem() -> None:
    (extracts,) = extracts_of({"top/bin/ptxas.exe": b"not a program"})
    assert extracts.problem == "neither a Linux nor a Windows program"


def test_many_headers_are_limited_to_three_nearest_to_top() -> None:
    files = {f"top/{'a/' * (n % 60)}{n}/{HEADER}": b"%d" % n for n in range(1000)}
    extracts = extracts_of(files)
    assert [extract.content for extract in extracts] == ["0", "60", "120"]


def test_link_is_not_extracted() -> None:
    link = Member(name=f"top/{HEADER}", kind="symlink", mode=0o777, size=0, target="elsewhere")
    assert not gathered([(link, iter([b"elsewhere"]))]).extracts
