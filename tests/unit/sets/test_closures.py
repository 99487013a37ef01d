"""Closures: outputs and sizes of what a package needs at run time."""

from typing import Any

import pytest
from support.set_inputs import (
    LINUX,
    build,
    cuda,
    elf,
    features_of,
    library,
    set_data_of,
)

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
