"""Closures: outputs and sizes of what a package needs at run time."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pytest
from support.set_inputs import (
    LINUX,
    STATIC,
    WINDOWS,
    build,
    cuda,
    elf,
    features_of,
    library,
    set_data_of,
)

from cudaredist.binaries.file_facts import Binary
from cudaredist.formats.packageset import Depends, PackageSet
from cudaredist.sets.closures import closure_of

B = features_of(
    {
        "LICENSE": None,
        "include/b.h": None,
        "lib/libb.so.1": elf("libb.so.1", "libc.so.6"),
        "lib/libb_static.a": None,
    }
)


def a_set(**packages: Any) -> PackageSet:
    features = {"cuda_nvcc": library("libn.so.1"), "cuda_cudart": library("libt.so.1")}
    features |= {"liba": library("liba.so.1", "libb.so.1"), "libb": B, "libc2": B}
    release = cuda(features=features, liba=[LINUX], libb=[LINUX], libc2=[LINUX])
    return build(set_data_of(release), **packages)


def depending(package_set: PackageSet, attr: str, *depends: Depends) -> PackageSet:
    package = package_set.packages[attr].model_copy(update={"depends": depends})
    packages = package_set.packages | {attr: package}
    return package_set.model_copy(update={"packages": packages})


def test_closure_has_libraries_and_those_that_they_need() -> None:
    package_set = a_set()
    closure = closure_of(package_set, "liba")
    assert closure is not None
    sizes = [package_set.packages[name].contents["lib"].bytes for name in ("liba", "libb")]
    assert (closure.outputs, closure.size) == ({"lib": sum(sizes)}, sum(sizes))
    assert closure.packages == {"liba", "libb"}
    assert closure.optional == 0


@pytest.mark.parametrize(
    ("kind", "is_optional", "required", "optional"),
    [
        ("runtime", False, 2, 0),
        ("dlopen", False, 2, 0),
        ("dlopen", True, 1, 1),
        ("header", False, 1, 0),
    ],
)
def test_kinds_of_dependencies(
    kind: Any, required: int, optional: int, *, is_optional: bool
) -> None:
    edge = Depends(attr="libc2", output="lib", kind=kind, is_optional=is_optional)
    package_set = depending(a_set(), "libb", edge)
    closure = closure_of(package_set, "libb")
    assert closure is not None
    size = package_set.packages["libb"].contents["lib"].bytes
    assert (closure.size, closure.optional) == (required * size, optional * size)


def test_closure_on_windows_has_own_dlls() -> None:
    package_set = depending(a_set(), "libb")
    libb = package_set.packages["libb"]
    dll = libb.provides[0].model_copy(update={"output": "bin"})
    contents = libb.contents | {"bin": libb.contents["lib"]}
    changes = {"provides": (dll,), "outputs": (*libb.outputs, "bin"), "contents": contents}
    packages = package_set.packages | {"libb": libb.model_copy(update=changes)}
    closure = closure_of(package_set.model_copy(update={"packages": packages}), "libb")
    assert closure is not None
    assert closure.outputs == {"bin": contents["bin"].bytes}


def dll(name: str) -> Binary:
    return Binary(kind="pe", machine="x86_64", is_shared=True, soname=name)


FILE_SIZE = 100
Files: TypeAlias = Mapping[str, Binary | str | None]
LINUX_FILES: Files = {
    "lib/libb.so.1.5": elf("libb.so.1"),
    "lib/libb.so.1": "libb.so.1.5",
    "lib/libb_part.so.1": elf("libb_part.so.1"),
    "lib/stubs/libb.so": elf("libb.so.1"),
    "lib/libb_static.a": STATIC,
}
NESTED_FILES: Files = {
    f"lib/{major}/{name}": elf(name)
    for major in ("11", "12")
    for name in ("libb.so.1", "libb_part.so.1")
}
ARCHIVES: Sequence[tuple[Any, Files, set[str]]] = [
    (LINUX, LINUX_FILES, {"lib"}),
    (LINUX, NESTED_FILES, {"lib"}),
    (LINUX, {"host/x64/libb.so.1": elf("libb.so.1"), "host/x64/b": elf("b.so")}, {"out"}),
    (WINDOWS, {"bin/b64_1.dll": dll("b64_1.dll"), "bin/c.dll": dll("c.dll")}, {"bin"}),
    (WINDOWS, {"bin/x64/b64_1.dll": dll("b64_1.dll"), "bin/x64/c.dll": dll("c.dll")}, {"bin"}),
    (WINDOWS, {"lib/12/b64_1.dll": dll("b64_1.dll"), "lib/12/c.dll": dll("c.dll")}, {"lib"}),
    (WINDOWS, {"bin/b64_1.dll": dll("b64_1.dll"), "lib/x64/c.dll": dll("c.dll")}, {"bin", "lib"}),
]


@pytest.mark.parametrize(("platform", "files", "outputs"), ARCHIVES)
def test_closure_of_archive_has_its_two_libraries(
    platform: Any, files: Files, outputs: set[str]
) -> None:
    more = {"LICENSE": None, "include/b.h": None, "lib/x64/b.lib": STATIC}
    features = {"libb": features_of({**more, **files})}
    release = cuda(platforms=[platform], features=features, libb=[platform])
    closure = closure_of(build(set_data_of(release), platform=platform), "libb")
    assert closure is not None
    assert closure.outputs.keys() == outputs
    assert closure.size >= 2 * FILE_SIZE


def test_circle_of_packages_ends() -> None:
    edge = Depends(attr="liba", output="lib", kind="runtime")
    closure = closure_of(depending(a_set(), "libb", edge), "liba")
    assert closure is not None
    assert closure.packages == {"liba", "libb"}


def test_closure_of_unexamined_package_is_unknown() -> None:
    edge = Depends(attr="libx", output="out", kind="runtime")
    release = cuda(features={"libb": B}, packages={"libb": [LINUX], "libx": [LINUX]})
    package_set = depending(build(set_data_of(release)), "libb", edge)
    assert closure_of(package_set, "libb") is None
