"""Tests of wheels: projects, labels, platforms and trees."""

import io
import json

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from support import archives, binaries
from support.facts import gathered
from support.wheels import wheel

from cudaredist.archives.open_archive import open_archive
from cudaredist.features.derive import derive
from cudaredist.features.facts import FACTS_SCHEMA, Facts, facts_from_bytes, facts_to_bytes
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import ArchiveId
from cudaredist.redists import REDISTS
from cudaredist.wheel_projects import COMPONENTS, FAMILIES, PLATFORMS, other_project, package_of
from cudaredist.wheels import (
    Metadata,
    Wheel,
    best_wheel,
    lower_bound,
    manifest_bytes,
    newest_builds,
    parse_wheel,
    release_date,
    requirements_on,
)

REQUIRES = (
    "nvidia-cuda-runtime==13.0.96.*; (sys_platform == 'linux' or sys_platform == 'win32')"
    " and extra == 'cudart'",
    "nvidia-cuda-runtime==13.0.96.*; (sys_platform == 'linux' or sys_platform == 'win32')"
    " and extra == 'all'",
    "nvidia-cufile==1.15.1.6.*; (sys_platform == 'linux') and extra == 'all'",
    "nvidia-cudla==13.4.92.*; sys_platform == 'linux' and platform_machine == 'aarch64'"
    ' and extra == "all"',
    "nvidia-opencl==1.*; sys_platform == 'win32' and platform_machine == 'ARM64'",
    "nvidia-nvjitlink<14,>=13.4.92",
    "not a requirement ;;",
    f"nvidia-nested; {'(' * 100_000}",
    "nvidia-long; " + " or ".join(['extra == "x"'] * 100),
)


@pytest.mark.parametrize(
    ("soname", "project"),
    [
        ("libnvinfer.so.11", "tensorrt"),
        ("libnvimgcodec.so.0", "nvidia-nvimgcodec"),
        ("libz.so.1", None),
    ],
)
def test_other_project_fits_any_version_of_a_library(soname: str, project: str | None) -> None:
    assert other_project(soname) == project


@pytest.mark.parametrize(
    ("platform", "projects"),
    [
        ("linux-x86_64", "nvidia-cuda-runtime nvidia-cufile nvidia-nvjitlink"),
        ("linux-sbsa", "nvidia-cuda-runtime nvidia-cufile nvidia-cudla nvidia-nvjitlink"),
        ("windows-x86_64", "nvidia-cuda-runtime nvidia-nvjitlink"),
        ("windows-arm64", "nvidia-cuda-runtime nvidia-opencl nvidia-nvjitlink"),
    ],
)
def test_markers_are_evaluated_for_target_platform(platform: str, projects: str) -> None:
    assert " ".join(requirements_on(platform, REQUIRES)) == projects


@pytest.mark.parametrize(
    ("specifier", "version"),
    [
        ("==13.0.96.*", "13.0.96"),
        ("<14,>=13.4.92", "13.4.92"),
        ("~=1.2", "1.2"),
        ("==1.0", "1.0"),
        ("<3", None),
        ("", None),
    ],
)
def test_lower_bound_of_specifier_is_returned(specifier: str, version: str | None) -> None:
    assert lower_bound(SpecifierSet(specifier)) == version


def test_newest_build_of_label_is_selected() -> None:
    versions = ["13.0.3.0", "12.9.1", "12.9.1.1", "12.9.1.0", "1!3.0.0", "9.0rc1", "5", "what"]
    names = (f"x-{version}-py3-none-any.whl" for version in (*versions, "0.8.1", "0.8.1.post1"))
    builds = newest_builds(filter(None, (parse_wheel(name, "") for name in names)))
    assert {label: [str(w.version) for w in wheels] for label, wheels in builds.items()} == {
        "13.0.3": ["13.0.3.0"],
        "12.9.1": ["12.9.1.1"],
        "0.8.1": ["0.8.1.post1"],
    }


@pytest.mark.parametrize(
    ("project", "package", "is_known"),
    [
        ("nvidia-cuda-runtime", "cuda_cudart", True),
        ("nvidia-cuda-nvcc-cu12", "cuda_nvcc", True),
        ("nvidia-something-new-cu14", "something_new", False),
        ("cutensornet-cu12", "cutensornet", True),
        ("nvpl-blas", "nvpl_blas", True),
    ],
)
def test_project_name_maps_to_package(project: str, package: str, is_known: bool) -> None:  # noqa: FBT001 - a row
    assert package_of(project) == (package, is_known)


def test_wheel_tables_agree_with_catalog() -> None:
    assert FAMILIES.keys() < REDISTS.keys()
    for name, family in FAMILIES.items():
        assert family.package in (None, *REDISTS[name].packages)
    assert len(set(COMPONENTS.values())) == len(COMPONENTS)


@pytest.mark.parametrize(
    ("file_name", "platforms"),
    [
        ("x-1-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", "linux-x86_64"),
        ("x-1-py3-none-manylinux_2_27_aarch64.whl", "linux-sbsa"),
        ("x-1-py3-none-win_amd64.whl", "windows-x86_64"),
        ("x-1-py3-none-win_arm64.whl", "windows-arm64"),
        ("x-1-py3-none-any.whl", " ".join(PLATFORMS)),
        ("x-1-cp312-cp312-win_amd64.whl", ""),
        ("x-0.0.0.1-py3-none-any.whl", ""),
        ("x-1-py3-none-macosx_11_0_arm64.whl", ""),
        ("x-1.tar.gz", ""),
        (f"x-{'9' * 5000}-py3-none-any.whl", ""),
        (f"x-1-{'.'.join(f'p{n}' for n in range(5000))}-none-any.whl", ""),
        ("x-1-py3-none-any.a/../../b.whl", ""),
        ("x-1-py3-none-any.\x1b[2J.whl", ""),
    ],
)
def test_wheel_platforms_follow_tags(file_name: str, platforms: str) -> None:
    wheel = parse_wheel(file_name, "")
    ranks = {name: wheel.rank_on(name) for name in PLATFORMS} if wheel is not None else {}
    assert " ".join(name for name, rank in ranks.items() if rank is not None) == platforms


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ("==1.2", "1.2"),
        ("==1.1.0", "1.1"),
        (">=1.3,<2", "1.4"),
        (">=1.0,<2", "1.0"),
        ("~=1.0.1", None),
        ("==1.0", "1.0"),
        (">=0.9,<2", "1.1"),
        (">=3", None),
        ("<3", None),
    ],
)
def test_best_wheel_has_lowest_matching_version(versions: str, expected: str | None) -> None:
    """Version 1.0 is yanked and 1.3rc1 is a prerelease."""
    names = [f"x-{version}-py3-none-win_amd64.whl" for version in ("1.4", "1.3rc1", "1.2", "1.0")]
    names += ["x-1.1-py3-none-any.whl", "x-1.4-py3-none-win_arm64.whl"]
    wheels = [wheel for name in names if (wheel := parse_wheel(name, ""))]
    wheels = [wheel._replace(is_yanked=str(wheel.version) == "1.0") for wheel in wheels]
    best = best_wheel(wheels, "windows-x86_64", SpecifierSet(versions))
    assert (str(best.version) if best else None) == expected


def test_best_wheel_is_for_oldest_system() -> None:
    names = ("any", "manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_aarch64")
    wheels = [parse_wheel(f"x-1-py3-none-{name}.whl", "") for name in names]
    best = best_wheel(filter(None, wheels), "linux-x86_64", SpecifierSet("==1"))
    assert best is not None
    assert best.file_name == "x-1-py3-none-manylinux_2_17_x86_64.whl"


def test_wheel_manifest_is_a_valid_manifest() -> None:
    def one(project: str, version: str) -> Wheel:
        name = f"{project}-{version}-py3-none-any.whl"
        return Wheel(project, Version(version), name, frozenset(), "", "a" * 64)

    archives = {
        ArchiveId("cudnn", "linux-x86_64", "cuda12"): one("nvidia-cudnn-cu12", "9.13.0.50"),
        ArchiveId("cudnn", "linux-x86_64", "cuda13"): one("nvidia-cudnn-cu13", "9.13.0.50.post1"),
    }
    about = Metadata("Summary", "EULA", ())
    data = manifest_bytes("cudnn", "9.13.0", archives, {"cudnn": about})
    manifest = read_manifest(data)
    assert manifest.shape == "nested"
    assert not manifest.warnings
    (package,) = manifest.packages
    assert [str(version) for version in package.versions] == ["9.13.0.50"]
    assert [archive.variant for archive in package.archives] == ["cuda12", "cuda13"]
    assert {archive.size for archive in package.archives} == {None}
    alone = {ArchiveId("x", platform, None): one("nvidia-x", "1.0") for platform in PLATFORMS}
    flat = read_manifest(manifest_bytes("cuda", "13.0.2", alone, {"x": about}))
    assert flat.shape == "flat"
    assert not flat.warnings
    assert json.loads(data)["cudnn"]["cuda_variant"] == ["12", "13"]


@pytest.mark.parametrize(
    ("uploads", "expected"),
    [
        # The second platform came later.
        ({"a": [("1.0", "2024-07-01"), ("1.0", "2024-07-09")]}, "2024-07-01"),
        ({"a": [("1.0", "2024-07-01")], "b": [("1.0", "2024-07-03"), ("1.0", None)]}, "2024-07-03"),
        ({"a": [("1.0", "2024-07-01")], "b": [("1.0", None)]}, None),
        # The release contains the repackaged wheel.
        ({"a": [("1.0.post1", "2025-04-08"), ("1.0", "2025-02-03")]}, "2025-02-03"),
        # Other releases of the project do not count.
        (
            {"a": [("1.0", "2025-02-03"), ("1.0rc1", "2025-01-01"), ("0.9", "2024-01-01")]},
            "2025-02-03",
        ),
    ],
)
def test_date_of_release_is_that_of_its_last_package(
    uploads: dict[str, list[tuple[str, str | None]]], expected: str | None
) -> None:
    listed = {
        project: [
            Wheel(
                *(project, Version(version), f"{project}.whl", frozenset(), "", "a" * 64),
                uploaded=day,
            )
            for version, day in of_project
        ]
        for project, of_project in uploads.items()
    }
    release = {ArchiveId(name, "linux-x86_64", None): wheels[0] for name, wheels in listed.items()}
    day = release_date(release, listed)
    assert day == expected
    about = dict.fromkeys(uploads, Metadata("Summary", "EULA", ()))
    assert read_manifest(manifest_bytes("cuda", "12.5.1", release, about, day)).release_date == day


def test_every_platform_has_tags() -> None:
    assert all(platform.tags for platform in PLATFORMS.values())


# -- trees


def facts_of(data: bytes) -> Facts:
    return gathered(open_archive("x.whl", io.BytesIO(data)), is_wheel=True)


LIBRARY = binaries.elf(soname="libcudart.so.12", needed=("libc.so.6",))


@pytest.mark.parametrize(
    "prefix", ["nvidia/cuda_runtime", "nvidia/cu13", "cutensor", "nvidia/cublasmp/cu12"]
)
def test_wheel_has_outputs_and_links_of_archive(prefix: str) -> None:
    empty = ("nvidia/", "nvidia/__init__.py", f"{prefix}/__init__.py")
    libraries = ("libcudart.so.12", "libcudart.so.11", "libplain.so", "libplain.so.1")
    files = {
        **dict.fromkeys((*empty, f"{prefix}/include/__init__.py"), b""),
        f"{prefix}/include/cuda.h": b"//",
        **{f"{prefix}/lib/{name}": LIBRARY for name in libraries},
        f"{prefix}/bin/ptxas": binaries.elf(kind="program"),
        f"{prefix}/bin/nvcc.profile": b"text",
        f"{prefix}/bin/script": b"#!/bin/sh",
    }
    derived = derive(facts_of(wheel("nvidia-x", "1", files, record={"nvidia/": ""})))
    sizes = {name: size.files for name, size in derived.outputs.items()}
    assert sizes == {"bin": 3, "include": 1, "lib": 4, "out": 1}
    assert derived.notes == ("link added, as wheels have none: lib/libcudart.so",)
    links = {library.path: library.links for library in derived.libraries}
    assert links["lib/libcudart.so.12"] == ("lib/libcudart.so",)
    assert links["lib/libcudart.so.11"] == links["lib/libplain.so.1"] == ()


def test_python_modules_of_wheel_are_listed() -> None:
    files = {"nvidia/x/python/x/__init__.py": b"", "nvidia/x/python/x/core.py": b""}
    assert derive(facts_of(wheel("nvidia-x", "1", files))).python == ("python/x",)


@pytest.mark.parametrize(
    ("record", "note"),
    [
        ({"nvidia/x/a.h": "sha256=AAAA"}, "differs from RECORD: nvidia/x/a.h"),
        ({"nvidia/x/a.h": ""}, "not in RECORD: nvidia/x/a.h"),
        ({"nvidia/x/b.h": "sha256=AAAA"}, "only in RECORD: nvidia/x/b.h"),
    ],
)
def test_record_with_differences_is_noted(record: dict[str, str], note: str) -> None:
    data = wheel("nvidia-x", "1", {"nvidia/x/a.h": b"//"}, record=record)
    assert derive(facts_of(data)).notes == (note,)


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("nvidia/x/a\x01.h", r"only in RECORD: nvidia/x/a\x01.h"),
        ("nvidia/x/a\n\x1b[2J.h", r"only in RECORD: nvidia/x/a\n\x1b[2J.h"),
        ("nvidia/x/a\u202e.h", r"only in RECORD: nvidia/x/a\u202e.h"),
        ("nvidia/x/é.h", "only in RECORD: nvidia/x/é.h"),
        ("n" * 5000, f"only in RECORD: {'n' * 1008}…"),
    ],
)
def test_unprintable_record_name_is_escaped(name: str, note: str) -> None:
    data = wheel("nvidia-x", "1", {"nvidia/x/a.h": b"//"}, record={name: "sha256=AAAA"})
    facts = facts_of(data)
    assert facts.notes == derive(facts).notes == (note,)


def test_link_is_compared_with_record_like_a_file() -> None:
    entries = [
        archives.ZipEntry(b"x-1.dist-info/WHEEL", b"x"),
        archives.ZipEntry(b"x-1.dist-info/RECORD", b"x-1.dist-info/RECORD,,\n"),
        archives.ZipEntry(b"nvidia/x/link.h", b"x.h", mode=0o120777),
    ]
    facts = facts_of(archives.raw_zip(*entries))
    assert "not in RECORD: nvidia/x/link.h" in facts.notes
    assert facts_from_bytes(facts_to_bytes(facts)) == facts


def test_unprintable_name_of_added_link_is_escaped() -> None:
    data = wheel("nvidia-x", "1", {"nvidia/x/lib/lib\x01a.so.1": LIBRARY})
    notes = derive(facts_of(data)).notes
    assert r"link added, as wheels have none: lib/lib\x01a.so" in notes
    assert all(note.isprintable() for note in notes)


def test_notes_of_cached_facts_are_escaped() -> None:
    facts = Facts(schema=FACTS_SCHEMA, members=(), notes=("only in RECORD: a\x01",))
    assert derive(facts).notes == (r"only in RECORD: a\x01",)


def test_number_of_record_differences_is_limited() -> None:
    files = {f"nvidia/x/{n}": b"x" for n in range(50)}
    data = wheel("nvidia-x", "1", files, record=dict.fromkeys(files, "sha256=AAAA"))
    notes = facts_of(data).notes
    assert len(notes) == 21
    assert notes[-1] == "and 30 more in RECORD"


@pytest.mark.parametrize(
    ("content", "note"),
    [(None, "the wheel has no RECORD"), (b"\xff\xfe", "the wheel's RECORD cannot be read")],
)
def test_wheel_without_readable_record_is_noted(content: bytes | None, note: str) -> None:
    from support.releases import packed  # noqa: PLC0415 - a zip that is no good wheel

    files = {"WHEEL": b"x"} if content is None else {"RECORD": content, "WHEEL": b"x"}
    facts = facts_of(packed("x-1.dist-info.zip", files))
    assert facts.notes == (note,)
    assert facts.schema == FACTS_SCHEMA
