"""Tests of the errors that earlier tools made, numbered as in the list of errors.

The trees are packed as archives and read like real ones.
"""

import ast
import logging
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from conftest import REPOSITORY
from support import binaries
from support.releases import Files, packed, tarred

from cudaredist.archives.open_archive import open_archive
from cudaredist.features.derive import derive
from cudaredist.features.gather import gather
from cudaredist.primitives import Version, label_of_manifest_name
from cudaredist.schema.features import ArchiveFeatures

NUMBERS = 24
ELF = binaries.elf(soname="libx.so.1", needed=("libc.so.6",))
CODE = binaries.fatbin([("sm", 75, ""), ("sm", 100, ""), ("compute", 52, ""), ("lto", 75, "")])
COMMANDS = b"/* GNU ld script */\nINPUT(libx.so.1 -lm)\n"


def read(files: Files, modes: Mapping[str, int] | None = None) -> ArchiveFeatures:
    """Return the features of an archive with these files."""
    return derive(gather(open_archive("x.tar", [tarred("top", files, modes or {})])))


def outputs(files: Files, modes: Mapping[str, int] | None = None) -> set[str]:
    return {name for name, size in read(files, modes).outputs.items() if size.files}


def test_01_file_in_bin_is_a_program_only_if_executable() -> None:
    assert outputs({"bin/README.txt": b"x"}) == {"out"}
    assert outputs({"bin/run": b"x"}, {"bin/run": 0o755}) == {"bin"}


def test_02_architectures_needed_and_provided_are_computed() -> None:
    library = binaries.elf(soname="libx.so.1", needed=("liby.so.2",), sections={".nv_fatbin": CODE})
    features = read({"lib/libx.so.1": library})
    assert features.libraries[0].soname == "libx.so.1"
    assert features.libraries[0].needed == ("liby.so.2",)
    assert features.device_code["lib"].declared.sass


def test_03_library_with_versioned_name_is_in_lib() -> None:
    assert outputs({"lib/libx.so.1": ELF}) == {"lib"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"lib64/libx.so": ELF}, {"lib"}, id="lib64"),
        pytest.param({"targets/a/lib/libx.so": ELF}, {"lib"}, id="targets"),
        pytest.param({"lib/x64/x.lib": binaries.ar({"x": b"x"})}, {"static"}, id="static .lib"),
        pytest.param({"lib/x64/x.lib": binaries.import_library("x.dll")}, {"lib"}, id="import"),
        pytest.param({"bin/x64/x.dll": binaries.pe(name="x.dll")}, {"bin"}, id=".dll"),
    ],
)
def test_04_libraries_in_other_folders_are_placed(files: Files, expected: set[str]) -> None:
    assert outputs(files) == expected


def test_04_libraries_in_nvvm_are_found() -> None:
    program = binaries.elf(kind="program", needed=("libc.so.6",))
    features = read({"nvvm/lib64/libnvvm.so": ELF, "nvvm/bin/cicc": program})
    assert [library.path for library in features.libraries] == ["nvvm/lib64/libnvvm.so"]
    assert [program.path for program in features.programs] == ["nvvm/bin/cicc"]


def test_05_lib_with_files_and_folders_is_placed() -> None:
    assert outputs({"lib/libx.so": ELF, "lib/pkgconfig/x.pc": b"x"}) == {"lib", "dev"}
    assert outputs({"lib/libx.so": ELF, "lib/12/liby.so": ELF}) == {"lib"}


@pytest.mark.parametrize(
    "links",
    [
        pytest.param({"lib/liba.so": "missing"}, id="dangling"),
        pytest.param({"lib/liba.so": "libb.so", "lib/libb.so": "liba.so"}, id="looping"),
    ],
)
def test_06_dangling_and_circular_links_are_noted(links: Files) -> None:
    features = read({**links, "lib/libx.so.1": ELF})
    assert [library.path for library in features.libraries] == ["lib/libx.so.1"]
    assert len(features.notes) == len(links)


def test_07_library_in_deep_folder_is_placed() -> None:
    assert outputs({"lib/12/sub/liby.so": ELF}) == {"lib"}


def test_08_ptx_and_lto_are_not_machine_code() -> None:
    features = read({"lib/x.so": binaries.elf(sections={".nv_fatbin": CODE})}).device_code["lib"]
    assert features.declared.sass == ("sm_75", "sm_100")
    assert features.declared.ptx == ("compute_52",)
    assert features.declared.lto == ("lto_75",)


def test_09_concatenated_images_are_read() -> None:
    images = [("sm", 90, "a"), ("sm", 100, "f")]
    code = binaries.container([binaries.concatenated(images)])
    features = read({"lib/x.so": binaries.elf(sections={".nv_fatbin": code})}).device_code["lib"]
    assert features.declared.sass == ("sm_90a", "sm_100f")


def test_10_code_in_other_sections_is_embedded() -> None:
    features = read({"lib/x.so": binaries.elf(sections={".data": CODE})}).device_code["lib"]
    assert features.declared.sass == ()
    assert features.embedded.sass == ("sm_75", "sm_100")


def test_11_unknown_architectures_are_read() -> None:
    code = binaries.fatbin([("sm", 35, ""), ("sm", 999, "")])
    features = read({"lib/x.so": binaries.elf(sections={".nv_fatbin": code})}).device_code["lib"]
    assert features.declared.sass == ("sm_35", "sm_999")


def test_12_linker_script_is_read() -> None:
    features = read({"lib/libx.so": COMMANDS, "lib/libx.so.1": ELF})
    assert set(features.outputs) == {"lib", "out"}
    assert [library.path for library in features.libraries] == ["lib/libx.so.1"]


def test_13_architectures_are_in_natural_order() -> None:
    numbers = (100, 75, 120, 90)
    code = binaries.fatbin([("sm", number, "") for number in numbers])
    features = read({"lib/x.so": binaries.elf(sections={".nv_fatbin": code})}).device_code["lib"]
    assert features.declared.sass == ("sm_75", "sm_90", "sm_100", "sm_120")


def test_14_files_named_like_folders_are_placed_in_out() -> None:
    assert outputs({"lib": b"x", "include": b"x"}) == {"out"}


def test_15_stubs_are_neither_lib_nor_static() -> None:
    assert outputs({"lib/stubs/libcuda.so": ELF}) == {"stubs"}
    assert outputs({"lib/stubs/x.a": binaries.ar({"x": b"x"})}) == {"stubs"}


@pytest.mark.parametrize("name", ["a.cuh", "b.inl", "c.hpp", "d", "e.inc"])
def test_16_every_file_in_include_is_a_header(name: str) -> None:
    assert outputs({f"include/{name}": b"//"}) == {"include"}


def test_17_several_pythons_and_wheels_are_read() -> None:
    features = read(
        {
            "lib/python3.10/site-packages/a.py": b"",
            "lib/python3.11/site-packages/a.py": b"",
            "python/x-1-py3-none-any.whl": b"",
        }
    )
    assert len(features.python) == 3
    assert "python" in features.outputs


@pytest.mark.parametrize("folder", ["doc", "docs", "share/doc"])
def test_18_documentation_folders_are_placed_in_doc(folder: str) -> None:
    assert outputs({f"{folder}/x.pdf": b"x"}) == {"doc"}


def test_19_manifest_name_with_suffix_has_no_label() -> None:
    assert label_of_manifest_name("redistrib_12.4.0-dirs.json") is None
    assert label_of_manifest_name("redistrib_12.4.0.json") == Version.parse("12.4.0")


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("redistrib_12.4.0-1.json", None),
        ("redistrib_12x4x0.json", None),
        ("redistrib_10.14.json", "10.14"),
        ("redistrib_25.5.json", "25.5"),
    ],
)
def test_20_labels_require_dots_and_two_numbers(name: str, label: str | None) -> None:
    assert label_of_manifest_name(name) == (None if label is None else Version.parse(label))


def test_21_odd_sonames_are_kept() -> None:
    features = read({"lib/libfoo-1.so.1a": binaries.elf(soname="libfoo-1.so.1a")})
    assert features.libraries[0].soname == "libfoo-1.so.1a"


def test_22_results_are_not_cached_by_path() -> None:
    one = read({"lib/libx.so": ELF})
    other = read({"lib/libx.so": binaries.elf(soname="libother.so")})
    assert one.libraries[0].soname != other.libraries[0].soname
    for package in ("archives", "binaries", "features"):
        sources = (REPOSITORY / "cudaredist" / package).glob("*.py")
        assert not [path for path in sources if "lru_cache" in path.read_text()]


def test_23_logging_works_with_installed_rich(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from cudaredist.console import configure_logging  # noqa: PLC0415 - what is tested

    configure_logging("INFO")
    logging.getLogger("cudaredist.test").info("words")
    assert capsys.readouterr().err == "info: words\n"


def test_24_features_do_not_depend_on_file_order() -> None:
    name = "libx-linux-x86_64-1.0-archive.tar.xz"
    forwards: dict[str, bytes] = {"include/a.h": b"a", "lib/b.so": ELF}
    backwards = dict(reversed(forwards.items()))
    one, other = (
        derive(gather(open_archive(name, [packed(name, files)]))) for files in (forwards, backwards)
    )
    assert one == other


def test_every_number_has_its_test() -> None:
    tree = ast.parse(Path(__file__).read_text())
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    numbers = {int(match[1]) for match in map(re.compile(r"test_(\d\d)_").match, names) if match}
    assert numbers == set(range(1, NUMBERS + 1))
