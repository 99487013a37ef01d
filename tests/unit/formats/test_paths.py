"""Every path in a format of ours is relative and stays below its folder."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from cudaredist.errors import InvalidFileError
from cudaredist.formats.field_types import ArchivePath, InnerFolder, InnerPath
from cudaredist.formats.mirror_lock import MirrorLock
from cudaredist.formats.names import RedistName
from cudaredist.formats.registry import FILE_KINDS, read_own_file, schema_problems
from cudaredist.formats.site_files import SiteFiles
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import (
    ADDRESS_PATTERN,
    ARCHIVE_PATH_PATTERN,
    INNER_FOLDER_PATTERN,
    INNER_PATH_PATTERN,
    NAME_PATTERN,
    PLAIN_PATH_PATTERN,
    is_inner_path,
)

PATTERNS = {
    ADDRESS_PATTERN,
    ARCHIVE_PATH_PATTERN,
    INNER_FOLDER_PATTERN,
    INNER_PATH_PATTERN,
    NAME_PATTERN,
    PLAIN_PATH_PATTERN,
}
"""The patterns of paths, and of names that are also folders."""
HAS_NAME_OF_PATH = re.compile(
    r"(?:^|\.|_)(?:paths?|folders?|links|module|redists?|address)$"
).search
DESCRIBES_PATH = re.compile(
    r"\b(?:by (?:path|folder|director)|paths? (?:below|of|in)|relative to|below the)", re.IGNORECASE
).search
CHECKED_BY_A_RULE = {"ToolkitLink.target"}
"""A rule of the record compares it with the folder of the link."""


def fields_of_files() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the schema of each field in the models of all files."""
    for kind in FILE_KINDS.values():
        schema = kind.model.model_json_schema(by_alias=False)
        for model in (schema, *schema.get("$defs", {}).values()):
            for name, field in model.get("properties", {}).items():
                yield f"{model['title']}.{name}", field


def patterns_of(schema: Any) -> Iterator[str | None]:
    """Yield the patterns of the texts in a schema, None for any text."""
    if isinstance(schema, list):
        for item in schema:
            yield from patterns_of(item)
    elif isinstance(schema, dict):
        if schema.get("type") == "string" and not {"enum", "const"} & schema.keys():
            yield schema.get("pattern")
        if schema.get("type") == "object":
            yield from schema.get("patternProperties", (None,))
        for value in schema.values():
            yield from patterns_of(value)


def test_every_path_of_a_format_has_the_type_of_paths() -> None:
    paths = {
        name: {*patterns_of(field)}
        for name, field in fields_of_files()
        if HAS_NAME_OF_PATH(name) or DESCRIBES_PATH(field.get("description", ""))
    }
    untyped = {name for name, patterns in paths.items() if patterns and not patterns & PATTERNS}
    assert untyped == CHECKED_BY_A_RULE
    assert {"IndexedSet.path", "ToolkitRecord.files", "SiteFiles.files"} <= paths.keys()
    assert {"MirrorLock.mirrored", "Lock.redists", "LockEntry.address"} <= paths.keys()


OUTSIDE = (
    *(
        "../x",
        "/x",
        "a/../../x",
        "a/..",
        "..",
        "a//x",
        "a/./x",
        "C:/x",
        "C:x",
        "a\\x",
        "a/\x1b",
        "a/",
    ),
)


@pytest.mark.parametrize("path", OUTSIDE)
def test_path_outside_of_its_folder_is_refused(path: str) -> None:
    for one in (InnerPath, InnerFolder, ArchivePath, RedistName):
        with pytest.raises(ValidationError):
            TypeAdapter(one).validate_python(path)
    assert not is_inner_path(path)


@pytest.mark.parametrize(
    "path", ["x", "a/x", ".x", "..x", "...", "a/.x/..x", "a b/[x]", "a/C:", "xy:z", "é/x"]
)
def test_path_below_its_folder_is_accepted(path: str) -> None:
    for one in (InnerPath, InnerFolder):
        assert TypeAdapter(one).validate_python(path) == path
    assert is_inner_path(path)


def test_pool_is_the_only_path_above_the_folder_of_a_manifest() -> None:
    accept = TypeAdapter(ArchivePath).validate_python
    assert accept("../../../pool/a/x.tar.xz")
    for path in ("../pool/x", "../../../../pool/x", "../../../pool/../x", "../../../etc/x"):
        with pytest.raises(ValidationError):
            accept(path)


SHA256 = "0" * 64
SET = {
    "sha256": SHA256,
    "cuda": "13.0.2",
    "platform": "linux-x86_64",
    "attribute": "cudaPackages",
    "capabilities": [],
    "counts": {},
}
RECORD = {
    "set_sha256": SHA256,
    "channel": "redist",
    "cuda": "13.0.2",
    "platform": "linux-x86_64",
    "layout": "merged",
    "static": False,
    "packages": {},
    "files": {},
    "links": {},
}
FILE = {"sha256": SHA256, "size": 1}
DOCUMENTS: dict[str, Any] = {
    "package-set-index": lambda path: {"sets": [{**SET, "path": path}], "skipped": []},
    "site-files": lambda path: {"files": [path]},
    "mirror-lock": lambda path: {"mirrored": {path: FILE}},
    "lock": lambda path: {"redists": {path: {"13.0.2": FILE}}},
    "toolkit-record": lambda path: {
        **RECORD,
        "files": {path: {**FILE, "executable": False, "package": "cuda_nvcc"}},
    },
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_document_with_a_path_outside_is_refused_in_plain_words(kind: str) -> None:
    def data(path: str) -> bytes:
        return json.dumps({"schema_version": 1, **DOCUMENTS[kind](path)}).encode()

    read_own_file(data("x"), FILE_KINDS[kind].model)
    for path in OUTSIDE:
        with pytest.raises(InvalidFileError) as caught:
            read_own_file(data(path), FILE_KINDS[kind].model)
        if path.isprintable():
            assert schema_problems(json.loads(data(path)), kind)
            assert f"{path!a} is not " in caught.value.message


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("key", ["relative_path", "license_path"])
def test_manifest_with_a_path_outside_is_refused(path: str, key: str) -> None:
    def data(**paths: str) -> bytes:
        both = {"relative_path": "x/x.tar.xz", "license_path": "x/LICENSE.txt"} | paths
        archive = {"relative_path": both["relative_path"], "sha256": SHA256, "size": "1"}
        package = {"name": "x", "license": "x", "version": "1.0"}
        package["license_path"] = both["license_path"]
        return json.dumps({"x": {**package, "linux-x86_64": archive}}).encode()

    read_manifest(data())
    with pytest.raises(InvalidFileError, match=key):
        read_manifest(data(**{key: path}))


WHEEL = "simple/nvidia-nvx/nvidia_nvx-1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    "path", ["simple/x", "simple", "simple/x/y", "simple/x/index.html", f"{WHEEL}/x", f"{WHEEL}.x"]
)
def test_lock_of_a_mirror_with_another_path_than_of_a_wheel_is_refused(path: str) -> None:
    def data(path: str) -> bytes:
        return json.dumps({"schema_version": 1, "mirrored": {path: FILE}}).encode()

    for good in (WHEEL, f"{WHEEL}.metadata", "simple-x/y"):
        read_own_file(data(good), MirrorLock)
    with pytest.raises(InvalidFileError, match="is not the path of a wheel"):
        read_own_file(data(path), MirrorLock)


def test_site_list_without_version_is_read() -> None:
    assert read_own_file(b'{"files": ["x.html"]}', SiteFiles).files == ("x.html",)


@pytest.mark.parametrize(
    ("path", "target"),
    [("x", ".."), ("a/x", "../../y"), ("a/x", "/etc/y"), ("x", "a\\y"), ("x", "../root/y")],
)
def test_record_with_a_link_out_of_its_root_is_refused(path: str, target: str) -> None:
    link = {"target": target, "package": "cuda_nvcc"}
    document = {"schema_version": 1, **RECORD, "links": {path: link}}
    with pytest.raises(InvalidFileError, match="leads out of the root"):
        read_own_file(json.dumps(document).encode(), FILE_KINDS["toolkit-record"].model)
    link["target"] = "../a/y" if "/" in path else "."
    read_own_file(json.dumps(document).encode(), FILE_KINDS["toolkit-record"].model)
