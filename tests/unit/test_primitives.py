"""Tests of versions, labels and paths."""

import pytest

from cudaredist.primitives import (
    Platform,
    Version,
    find_release,
    is_pool_path,
    is_safe_relative_path,
    label_of_manifest_name,
    nix_base32_of,
    parse_label,
    path_problem,
    sha256_of,
)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("9.9.0", "9.10.2"),
        ("9.2.0", "9.10.0"),
        ("24.03", "24.7"),
        ("23.11", "24.03"),
        ("25.1", "25.1.1"),
        ("4.1.0.6", "4.1.1"),
        ("2.29.2-cuda12.9", "2.29.2-cuda13.1"),
        ("2.31.2-cuda13.3", "2.31.2-cuda13.4"),
        ("2.29.2-cuda13.4", "2.31.2-cuda12.9"),
        ("2.29.2", "2.29.2-cuda12.9"),
        ("13.9", "13.10"),
        ("24.03", "24.3"),
    ],
)
def test_versions_are_ordered(older: str, newer: str) -> None:
    assert Version.parse(older) < Version.parse(newer)
    assert max(map(Version.parse, (newer, older))).text == newer


LABELS = ("2.31.2", "2.31.10-cuda12.9", "2.31.10-cuda13.4", "13.0.2", "13.0.3", "13.10.0", "24.03")


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("13", "13.10.0"),
        ("13.0", "13.0.3"),
        ("13.0.2", "13.0.2"),
        ("13.1", None),
        ("1", None),
        ("2.31", "2.31.10-cuda13.4"),
        ("2.31-cuda12", "2.31.10-cuda12.9"),
        ("2.31.2-cuda12", None),
        ("24.3", "24.03"),
        ("latest", None),
    ],
)
def test_prefix_names_newest_release(text: str, release: str | None) -> None:
    found = find_release(text, map(Version.parse, LABELS))
    assert (found and str(found)) == release


@pytest.mark.parametrize("text", ["24.03", "570.124.06", "2025.03.1", "2.29.2-cuda12.9", "1"])
def test_version_keeps_its_text(text: str) -> None:
    assert str(Version.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "1.", ".1", "1..2", "v1", "1a", "+1", "1_0", " 1", "1\n", "\u00b2", "\u0661"),
        *("-1", "1.2-cuda", "1.2-cudax", "1.2-rocm6", "1.2-cuda1-cuda2", "9" * 81),
    ],
)
def test_invalid_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected numbers"):
        Version.parse(text)


@pytest.mark.parametrize("text", ["13", "1.2.3.4.5", "latest"])
def test_invalid_label_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_label(text)


@pytest.mark.parametrize(
    ("label", "line"),
    [
        ("12.9.1", "12.9"),
        ("24.03", "24.03"),
        ("25.1.1", "25.1"),
        ("4.2.0.11", "4.2"),
        ("2.31.2-cuda13.4", "2.31-cuda13"),
    ],
)
def test_label_has_release_line(label: str, line: str) -> None:
    assert parse_label(label).line == line


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("redistrib_12.9.1.json", "12.9.1"),
        ("redistrib_25.5.json", "25.5"),
        ("redistrib_2.0.2.1.json", "2.0.2.1"),
        ("redistrib_2.29.2-cuda12.9.json", "2.29.2-cuda12.9"),
        *((f"redistrib_{end}", None) for end in ("13.5.0.json.asc", "12.9.1_tar.json", ".json")),
        *((f"redistrib_{end}", None) for end in ("12.4.0-1.json", "12x4.json", "v2.schema.json")),
        *((name, None) for name in ("redistrib_12.9.1.json\n", "xredistrib_12.9.1.json")),
    ],
)
def test_manifest_name_contains_label(name: str, label: str | None) -> None:
    parsed = label_of_manifest_name(name)
    assert (parsed and str(parsed)) == label


@pytest.mark.parametrize(
    ("path", "is_safe"),
    [
        ("cuda_cccl/linux-x86_64/cuda_cccl-linux-x86_64-11.4.122-archive.tar.xz", True),
        ("a", True),
        ("../../../pool/linux-x86_64/0a1b/x.tar.xz", True),
        *((path, False) for path in ("../../pool/x", "../../../pool/../x", "../../../pool/")),
        *((path, False) for path in ("", "/a", "a/", "a/../b", "a/./b", "a\\b", "a b", "a\n")),
        ("a" * 1025, False),
    ],
)
def test_unsafe_paths_are_refused(path: str, is_safe: bool) -> None:  # noqa: FBT001 - a column of the table
    assert (path_problem(path) is None) == is_safe
    assert (is_safe_relative_path(path) or is_pool_path(path)) == is_safe


@pytest.mark.parametrize(
    ("name", "os", "machine", "served_by"),
    [
        ("linux-sbsa", "linux", "aarch64", ("source", "linux-all", "linux-sbsa")),
        ("linux-x86_64", "linux", "x86_64", ("source", "linux-all", "linux-x86_64")),
        ("windows-arm64", "windows", "aarch64", ("source", "windows-arm64")),
        ("linux-riscv64", "linux", None, ("source", "linux-all", "linux-riscv64")),
        ("linux-all", "linux", None, ("source", "linux-all", "linux-all")),
        ("source", "any", None, ("source", "source")),
        ("unsupported", "unsupported", None, ("source", "unsupported")),
    ],
)
def test_platform_names_state_system_and_machine(
    name: str, os: str, machine: str | None, served_by: tuple[str, ...]
) -> None:
    platform = Platform(name)
    assert (platform.os, platform.machine, platform.served_by) == (os, machine, served_by)


def test_nix_base32_of_a_hash_is_as_nix_writes_it() -> None:
    assert nix_base32_of(sha256_of(b"")) == "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73"
