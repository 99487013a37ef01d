"""Tests of the manifest reader: shapes, quirks and damaged files."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY
from support.golden import Golden

from cudaredist.errors import InvalidFileError, Problem
from cudaredist.manifests.manifest_values import Archive, Manifest
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Version, parse_label

FIXTURES = REPOSITORY / "tests/fixtures"
QUIRKS = sorted((FIXTURES / "manifests").glob("*.json"))
BROKEN = sorted((FIXTURES / "broken").glob("*.json"))


def read(name: str, label: str | None = None) -> Manifest:
    data = (FIXTURES / "manifests" / f"{name}.json").read_bytes()
    return read_manifest(data, label=None if label is None else parse_label(label))


def described(manifest: Manifest) -> str:
    lines = [f"{manifest.shape}, label {manifest.label}, date {manifest.release_date}"]
    for package in manifest.packages:
        versions = ", ".join(map(str, package.versions))
        lines.append(f"  {package.name} {versions} {' '.join(package.variants)}".rstrip())
        lines += (
            f"    {a.version} {a.platform} {a.variant or '-'} {a.size} {a.relative_path}"
            for a in package.archives
        )
    lines += (f"  warning: {warning}" for warning in manifest.warnings)
    return "\n".join(lines)


@pytest.mark.parametrize("path", QUIRKS, ids=lambda path: path.stem)
def test_manifest_with_quirk_is_read(path: Path, golden: Golden) -> None:
    golden.check("manifests.txt", path.stem, described(read_manifest(path.read_bytes())))


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_broken_manifest_is_refused(path: Path, golden: Golden) -> None:
    with pytest.raises(InvalidFileError) as raised:
        read_manifest(path.read_bytes())
    golden.check("broken.txt", path.stem, "\n".join(map(str, raised.value.problems)))


def test_broken_fixtures_number_at_least_thirty() -> None:
    assert len(BROKEN) >= 30


def test_early_archives_have_no_hash() -> None:
    (archive,) = read("early").archives
    assert archive == Archive(
        package="fabricmanager",
        version=Version.parse("460.27.04"),
        platform="linux-x86_64",
        variant=None,
        relative_path="fabricmanager/linux-x86_64/fabricmanager-linux-x86_64-460.27.04.tar.gz",
        sha256=None,
        md5=None,
        size=None,
    )


def test_unknown_keys_are_kept_with_path() -> None:
    manifest = read("unknown_keys_at_the_top")
    assert dict(manifest.unknown) == {
        "release_channel": "stable",
        "'$schema'": "https://example/redistrib-v3.schema.json",
        "build": {"host": "x"},
    }
    assert manifest.platforms == {"linux-x86_64"}


def test_label_of_file_name_is_used_with_warning() -> None:
    manifest = read("label_differs_from_the_file_name", "12.9.1")
    assert str(manifest.label) == "12.9.1"
    assert manifest.warnings == (
        Problem("release_label", "is 12.9.0, but the file's name contains 12.9.1"),
    )


def test_message_of_many_problems_is_limited() -> None:
    document: dict[str, object] = {f"p{n}": {} for n in range(1000)}
    with pytest.raises(InvalidFileError, match="and 900 more") as raised:
        read_manifest(json.dumps(document).encode())
    assert len(raised.value.problems) == 1000


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"cuda_nvcc": {"name": "x" * (10 << 20), "version": "1"}}, "bytes, more than"),
        ({"cuda_nvcc": {"version": "1" * (7 << 20)}}, "version: "),
        ({"x" * (1 << 20): {"version": "1"}}, "is not a valid package name"),
    ],
    ids=["larger than the limit", "long version", "long name"],
)
def test_long_text_is_refused_without_quoting(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidFileError, match=message) as raised:
        read_manifest(json.dumps(document).encode())
    assert len(str(raised.value)) < 500


def test_deep_nesting_with_many_keys_uses_little_memory() -> None:
    key = "k" * 78
    many = ",".join(f'"{n}":1' for n in range(100_000))
    text = f'{{"{key}":' * 900 + "{" + many + ', "x:": 1}' + "}" * 900
    tracemalloc.start()
    with pytest.raises(InvalidFileError):
        read_manifest(text.encode())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 << 20


def test_manifest_is_immutable() -> None:
    manifest = read("flat")
    with pytest.raises(AttributeError):
        manifest.label = None  # type: ignore[misc]
    with pytest.raises(AttributeError):
        manifest.packages[0].archives[0].size = 1  # type: ignore[misc]


FREE = {"sha256", "md5", "size", "name", "license", "release_date", "release_label"}
FREE |= {"release_product", "cuda_variant"}
"""Keys whose values are not repeated in a manifest or only warn on contradiction."""


def test_manifest_of_very_many_values_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(InvalidFileError, match="more than 524,288 values"):
        read_manifest(b"0," * 600_000)


@pytest.mark.parametrize("name", ["flat", "nested"])
def test_flipped_bit_in_repeated_value_is_refused(name: str) -> None:
    data = (FIXTURES / "manifests" / f"{name}.json").read_bytes()
    before = json.loads(data)
    # Each byte has a change, and each bit of a byte.
    for bit in range(0, len(data) * 8, 3):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            read_manifest(bytes(damaged))
        except InvalidFileError:
            continue
        assert changed_keys(before, json.loads(damaged)) <= FREE, bytes(damaged)


def changed_keys(before: Any, after: Any, key: str = "") -> set[str]:
    """Return the keys with different values, or the key of an object with different keys."""
    if before == after:
        return set()
    if not isinstance(before, dict) or before.keys() != after.keys():
        return {key}
    return {k for name in before for k in changed_keys(before[name], after[name], name)}
