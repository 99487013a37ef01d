"""Tests of audit: the file that the loader finds for each library of an environment."""

import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import split

import pytest
from support.binaries import Image, Symbol, elf, fatbin
from support.environments import install, library, user
from support.judged_environments import (
    CUBLAS,
    FOLDER,
    TO_CUBLAS,
    findings,
    judge,
    loaded,
    put_cublas,
    put_example,
)
from support.programs import cuda, known
from support.releases import put

from cudaredist.environments.installed import find_environment
from cudaredist.environments.read_program import ProgramReader
from cudaredist.store.cache import Cache

# -- the search of the loader


@pytest.mark.parametrize(
    ("facts", "found_by"),
    [
        ({"runpath": TO_CUBLAS}, "run-path"),
        ({"rpath": f"/nowhere:{TO_CUBLAS}"}, "run-path"),
        ({"runpath": "$ORIGIN"}, "other-code"),
        ({"runpath": TO_CUBLAS.replace("/", "/missing/../", 1)}, "other-code"),
        ({}, "other-code"),
        ({"runpath": TO_CUBLAS, "machine": "aarch64"}, "none"),
    ],
)
def test_library_is_found_by_the_run_path_of_its_user(
    tmp_path: Path, facts: Mapping[str, str], found_by: str
) -> None:
    put_cublas(tmp_path)
    put_example(tmp_path, user(CUBLAS, **facts))
    (library,) = loaded(tmp_path)
    assert (library.found_by, library.by) == (found_by, ("example/a.so",))
    assert (library.package is None) == (found_by == "none")
    kinds = [each.kind for each in findings(tmp_path)]
    assert kinds == ([] if found_by == "run-path" else ["missing-library"])


@pytest.mark.parametrize(
    ("kind", "own", "found_by"),
    [
        ("rpath", {}, "run-path"),
        ("runpath", {}, "other-code"),
        ("rpath", {"runpath": "/nowhere"}, "other-code"),
    ],
    ids=["rpath of the user", "run path of the user", "own run path"],
)
def test_only_rpath_applies_to_libraries_of_libraries(
    tmp_path: Path, kind: str, own: Mapping[str, str], found_by: str
) -> None:
    put_cublas(tmp_path)
    files = {
        "example/a.so": elf(needed=["libb.so"], **{kind: f"$ORIGIN:{TO_CUBLAS}"}),  # type: ignore[arg-type]
        "example/libb.so": user(CUBLAS, **own),
    }
    install(tmp_path, "example", "1.0", files)
    assert [each.found_by for each in loaded(tmp_path)] == [found_by]


@pytest.mark.parametrize(
    ("python", "own", "found_by"),
    [
        ({"rpath": "$ORIGIN/../lib"}, {}, "run-path"),
        ({"runpath": "$ORIGIN/../lib"}, {}, "other-code"),
        ({"rpath": "$ORIGIN/../lib"}, {"runpath": "/nowhere"}, "other-code"),
    ],
    ids=["rpath", "run path", "own run path"],
)
@pytest.mark.parametrize("is_linked", [False, True], ids=["of conda", "of a venv"])
def test_rpath_of_the_interpreter_applies_to_modules(
    tmp_path: Path,
    python: Mapping[str, str],
    own: Mapping[str, str],
    found_by: str,
    *,
    is_linked: bool,
) -> None:
    """Python of conda finds the libraries of conda for wheels that pip installed."""
    environment, base = tmp_path / "env", tmp_path / ("base" if is_linked else "env")
    put_cublas(environment)
    library_path = base / "lib" / CUBLAS
    library_path.parent.mkdir(parents=True)
    library_path.write_bytes(library(CUBLAS))
    put_example(environment, user(CUBLAS, **own))
    for folder in {environment, base}:
        (folder / "bin").mkdir()
    (base / "bin/python3.11").write_bytes(elf(**python))  # type: ignore[arg-type] # only texts
    (environment / "bin/python3").symlink_to(base / "bin/python3.11")
    (each,) = loaded(environment)
    assert each.found_by == found_by
    if found_by == "run-path":
        assert str(each.path).endswith(f"lib/{CUBLAS}")


@pytest.mark.parametrize("name", ["bin/prog", "lib/python3.11/site-packages/x/prog"])
@pytest.mark.parametrize("is_linked", [False, True], ids=["of conda", "of a venv"])
def test_rpath_of_the_interpreter_does_not_apply_to_programs(
    tmp_path: Path, name: str, *, is_linked: bool
) -> None:
    environment, base = tmp_path / "env", tmp_path / ("base" if is_linked else "env")
    put_cublas(environment)
    program = elf(needed=[CUBLAS], kind="pie")
    put(environment, {name: program, f"lib/{CUBLAS}": library(CUBLAS)})
    put(base, {"bin/python3.11": elf(rpath="$ORIGIN/../lib", kind="pie")})
    (environment / "bin").mkdir(exist_ok=True)
    (environment / "bin/python3").symlink_to(base / "bin/python3.11")
    assert [each.found_by for each in loaded(environment)] == ["other-code"]


def test_loaded_library_is_used_again_by_its_soname(tmp_path: Path) -> None:
    files = {
        "example/a.so": elf(needed=["libown.so", "libb.so"], runpath="$ORIGIN"),
        "example/libown.so": library(CUBLAS),
        "example/libb.so": user(CUBLAS, runpath="/nowhere"),
    }
    install(tmp_path, "example", "1.0", files)
    assert [each.path for each in loaded(tmp_path)] == ["example/libown.so"]


def test_library_counts_by_the_name_of_its_file(tmp_path: Path) -> None:
    put_cublas(tmp_path, "old", name="libcublas.so.11")
    put_example(tmp_path, user(CUBLAS, "old", runpath=TO_CUBLAS))
    (each,) = loaded(tmp_path)
    assert (each.found_by, each.path, each.undefined) == ("none", None, ("old",))
    (finding,) = findings(tmp_path)
    assert (finding.kind, finding.exit_code) == ("missing-library", 1)
    assert finding.hint == "pip install --force-reinstall --no-deps nvidia-cublas-cu12==12.4.1.7"


@pytest.mark.parametrize(("runpath", "found_by"), [("$ORIGIN", "run-path"), (None, "other-code")])
def test_lib_of_toolkit_is_not_a_folder_of_the_system(
    tmp_path: Path, runpath: str | None, found_by: str
) -> None:
    files = {
        ".cudaredist.json": b"{}",
        f"lib/{CUBLAS}": library(CUBLAS),
        "lib/libuser.so": user(CUBLAS, runpath=runpath),
    }
    put(tmp_path, files)
    (tmp_path / "lib64").symlink_to("lib")
    assert [each.found_by for each in loaded(tmp_path)] == [found_by]
    hints = [each.hint for each in findings(tmp_path)]
    call = f"cudaredist materialize set.json --output {tmp_path} --run-paths"
    assert hints == ([] if runpath else [call])


def test_root_file_system_has_its_own_folders_and_links(tmp_path: Path) -> None:
    real = f"opt/real/lib64/{CUBLAS}.4"
    files = {
        "etc/ld.so.conf": b"# a comment\ninclude /\ninclude ld.so.conf.d/*.conf\n",
        "etc/ld.so.conf.d/cuda.conf": b"/usr/local/cuda/lib64\n",
        "usr/bin/a": user(CUBLAS, "old", "new"),
        "usr/local/x": b"",
        real: library(CUBLAS, "old"),
    }
    put(tmp_path, files)
    (tmp_path / "usr/local/cuda").symlink_to("/opt/real")
    (tmp_path / "opt/real/lib64" / CUBLAS).symlink_to(f"/{real}")
    (each,) = loaded(tmp_path)
    assert (each.found_by, each.path, each.undefined) == ("system", real, ("new",))


def put_root(root: Path) -> None:
    """Make a root file system with cuBLAS in a configured folder."""
    files = {f"opt/cuda/{CUBLAS}": library(CUBLAS, "old"), "usr/bin/a": user(CUBLAS, "old")}
    put(root, {**files, "etc/ld.so.conf": b"/opt/cuda\n"})


def loader_cache(*paths: str, processors: int = 0) -> bytes:
    """Return an `ld.so.cache` after an older table, as ldconfig makes it."""
    names = b"".join(f"{path}\0{Path(path).name}\0".encode() for path in paths)
    entries, at = b"", 48 + 24 * len(paths)
    for path in paths:
        after = at + len(path) + 1
        entries += struct.pack("<iIIIQ", 0x303, after, at, 0, processors)
        at = after + len(Path(path).name) + 1
    header = struct.pack("<20sII20x", b"glibc-ld.so.cache1.1", len(paths), len(names))
    return b"ld.so-1.7.0\0" + header + entries + names


@pytest.mark.parametrize(
    ("cache", "found_by"),
    [
        (loader_cache("/opt/x/libz.so.1", f"/opt/cuda/{CUBLAS}"), "system"),
        (loader_cache(f"/usr/local/lib/{CUBLAS}"), "other-code"),
        (loader_cache(f"/opt/cuda/{CUBLAS}", processors=1 << 62), "other-code"),
        (loader_cache(f"/opt/cuda/{CUBLAS}")[:70], "other-code"),
        (b"another format", "system"),
    ],
)
def test_cache_of_the_loader_replaces_configured_folders(
    tmp_path: Path, cache: bytes, found_by: str
) -> None:
    put_root(tmp_path)
    (tmp_path / "etc/ld.so.cache").write_bytes(cache)
    assert [each.found_by for each in loaded(tmp_path)] == [found_by]


@pytest.mark.parametrize("kind", ["pipe", "too large"])
def test_unusual_cache_of_the_loader_is_not_read(tmp_path: Path, kind: str) -> None:
    put_root(tmp_path)
    cache = tmp_path / "etc/ld.so.cache"
    if kind == "pipe":
        os.mkfifo(cache)
    else:
        cache.write_bytes(loader_cache(f"/usr/local/lib/{CUBLAS}") + bytes(1 << 22))
    assert [each.found_by for each in loaded(tmp_path)] == ["system"]


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["pyvenv.cfg"], "virtual environment"),
        (["conda-meta/history"], "conda environment"),
        ([".cudaredist.json"], "toolkit"),
        (["etc/passwd", "usr/x"], "root file system"),
        (["example-1.0.dist-info/METADATA"], "packages"),
        (["lib/python3.11/site-packages/x"], "packages"),
        (["example/a.so"], None),
    ],
)
def test_kind_of_an_environment(tmp_path: Path, names: Sequence[str], kind: str | None) -> None:
    put(tmp_path, dict.fromkeys(names, b""))
    environment = find_environment(tmp_path)
    assert (environment and environment.kind) == kind


@pytest.mark.parametrize(
    ("settings", "python"),
    [
        ("home = /usr/bin\ninclude-system-site-packages = true\n", "the Python in /usr/bin"),
        ("include-system-site-packages=True\nhome =\n", "another Python"),
        ("home = /usr/bin\ninclude-system-site-packages = false\n", None),
        ("home = /usr/bin\n", None),
        ("", None),
    ],
)
def test_included_packages_of_another_python_are_a_note(
    tmp_path: Path, settings: str, python: str | None
) -> None:
    """`python -m venv --system-site-packages` makes such an environment."""
    folder = tmp_path / "env"
    put(folder, {"pyvenv.cfg": settings.encode()})
    reader = ProgramReader(cache=Cache(tmp_path / "cache"), paths=[folder]).read_all()
    note = f"{folder} includes the packages of {python}; they are not examined"
    assert reader.notes == ([] if python is None else [note])


# -- LD_LIBRARY_PATH


@pytest.mark.parametrize(
    ("facts", "variable", "found_by"),
    [
        ({"runpath": TO_CUBLAS}, "{}/old", "library-path"),
        ({"runpath": TO_CUBLAS}, "/nowhere:{}/old:", "library-path"),
        ({"rpath": TO_CUBLAS}, "{}/old", "run-path"),
        ({"runpath": TO_CUBLAS}, "/nowhere", "run-path"),
        ({"runpath": TO_CUBLAS}, "", "run-path"),
        ({}, "{}/old", "library-path"),
        ({}, "$ORIGIN/{}/old", "other-code"),
    ],
)
def test_library_path_is_searched_after_rpath_and_before_runpath(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    facts: Mapping[str, str],
    variable: str,
    found_by: str,
) -> None:
    put_cublas(tmp_path / "env", "old", "new")
    put_example(tmp_path / "env", user(CUBLAS, "new", **facts))
    put(tmp_path / "old", {CUBLAS: library(CUBLAS, "old")})
    monkeypatch.setenv("LD_LIBRARY_PATH", variable.format(tmp_path))
    (each,) = loaded(tmp_path / "env")
    is_outside = found_by == "library-path"
    assert (each.found_by, each.undefined) == (found_by, ("new",) if is_outside else ())
    messages = {n.kind: n for n in findings(tmp_path / "env")}
    assert ("library-path" in messages) == is_outside
    if is_outside:
        warning = messages["library-path"]
        own = f"{FOLDER}/{CUBLAS}"
        assert warning.message == (
            f"LD_LIBRARY_PATH puts {tmp_path}/old/{CUBLAS} first for example/a.so, before {own}"
        )
        assert (warning.exit_code, messages["missing-symbols"].hint) == (0, "unset LD_LIBRARY_PATH")


def test_only_copy_of_an_environment_may_be_found_by_the_library_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_cublas(tmp_path, "old")
    put_example(tmp_path, user(CUBLAS, "old"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / FOLDER))
    assert [each.found_by for each in loaded(tmp_path)] == ["library-path"]
    assert findings(tmp_path) == []


def test_library_path_of_the_shell_does_not_count_in_a_root_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_root(tmp_path / "root")
    put(tmp_path / "old", {CUBLAS: library(CUBLAS)})
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "old"))
    assert [each.found_by for each in loaded(tmp_path / "root")] == ["system"]


# -- files that are not whole


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (library(CUBLAS, "old", sections={".data": bytes(1 << 12)})[:1024], "it is cut off"),
        (library(CUBLAS)[:30], "it is cut off"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a pointer of Git LFS"),
        (b"\n<!DOCTYPE html><html>", "it is a web page"),
        (b"GROUP ( libcublas.so.12.4 )", "it is another kind of file"),
    ],
)
def test_library_that_is_not_a_whole_elf_file_is_a_finding(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    put_example(tmp_path, user(CUBLAS, "old", runpath=TO_CUBLAS))
    install(tmp_path, "nvidia-cublas-cu12", "12.4.1.7", {f"{FOLDER}/{CUBLAS}": content})
    (each,) = loaded(tmp_path)
    assert (each.found_by, each.by) == ("damaged", ("example/a.so",))
    (finding,) = findings(tmp_path)
    assert (finding.kind, finding.exit_code) == ("damaged-file", 1)
    title = f"{FOLDER}/{CUBLAS} (nvidia-cublas-cu12 12.4.1.7)"
    assert f"cannot read {title} for example/a.so: " in finding.message
    assert finding.message.endswith(reason)
    assert finding.hint == "pip install --force-reinstall --no-deps nvidia-cublas-cu12==12.4.1.7"


def test_opened_library_that_is_empty_is_a_finding(tmp_path: Path) -> None:
    files = {
        "example/a.so": elf(sections={".rodata": b"\0%s\0" % CUBLAS.encode()}, rpath="$ORIGIN")
    }
    install(tmp_path, "example", "1.0", {**files, f"example/{CUBLAS}": b""})
    assert [each.kind for each in findings(tmp_path)] == ["damaged-file"]


@pytest.mark.parametrize(
    ("needed", "length", "codes"),
    [([CUBLAS], 20_000, []), ([CUBLAS], 70_000, [1, 3]), (["libc.so.6"], 70_000, [])],
    ids=["long", "too long", "not relevant"],
)
def test_run_path_that_is_too_long_is_unknown(
    tmp_path: Path, needed: Sequence[str], length: int, codes: Sequence[int]
) -> None:
    """That of TensorFlow has 20 kB."""
    put_cublas(tmp_path)
    runpath = "/nowhere/x:" * (length // 11) + TO_CUBLAS
    put_example(tmp_path, elf(needed=needed, runpath=runpath))
    found = [each for each in findings(tmp_path) if "libc.so.6" not in each.message]
    assert sorted(each.exit_code for each in found) == codes


# -- symbols


def test_missing_symbol_has_a_command_that_installs_it(tmp_path: Path) -> None:
    put_cublas(tmp_path, "old")
    put_example(tmp_path, user(CUBLAS, "old", "new", runpath=TO_CUBLAS))
    (each,) = loaded(tmp_path)
    assert (each.undefined, each.package) == (("new",), "nvidia-cublas-cu12 12.4.1.7")
    (finding,) = findings(tmp_path)
    assert (finding.kind, finding.exit_code) == ("missing-symbols", 1)
    assert finding.hint == "pip install 'nvidia-cublas-cu12>=12.5.1.7'"


def test_symbol_of_another_version_is_missing(tmp_path: Path) -> None:
    """A library that was renamed to another major has symbols of its own version only."""
    name = "libcublas.so.11"
    put_cublas(tmp_path, "old", name=name)
    put_example(tmp_path, user(name, "old", runpath=TO_CUBLAS))
    (each,) = loaded(tmp_path, name)
    assert (each.found_by, each.undefined) == ("run-path", ("old",))
    assert "which is libcublas.so.12 by its own name" in findings(tmp_path)[0].message


def test_library_without_versions_has_symbols_of_every_version(tmp_path: Path) -> None:
    content = elf(soname=CUBLAS, symbols=[Symbol("old")])
    install(tmp_path, "nvidia-cublas-cu12", "12.4.1.7", {f"{FOLDER}/{CUBLAS}": content})
    put_example(tmp_path, user(CUBLAS, "old", "new", runpath=TO_CUBLAS))
    (each,) = loaded(tmp_path)
    assert (each.found_by, each.undefined) == ("run-path", ("new",))


@pytest.mark.parametrize(("needed", "undefined"), [(["libmore.so"], ()), ([], ("new",))])
def test_symbol_may_be_in_another_loaded_file(
    tmp_path: Path, needed: Sequence[str], undefined: Sequence[str]
) -> None:
    put_cublas(tmp_path, "old")
    symbols = [Symbol("new", is_defined=False)]
    program = elf(needed=[CUBLAS, *needed], runpath=f"{TO_CUBLAS}:$ORIGIN", symbols=symbols)
    more = elf(soname="libmore.so", symbols=[Symbol("new")])
    install(tmp_path, "example", "1.0", {"example/a.so": program, "example/libmore.so": more})
    assert loaded(tmp_path)[0].undefined == tuple(undefined)


def test_damaged_package_is_installed_again(tmp_path: Path) -> None:
    put_cublas(tmp_path, "old", "new", version="12.5.1.7")
    (tmp_path / FOLDER / CUBLAS).unlink()
    put_example(tmp_path, user(CUBLAS, "new", runpath=TO_CUBLAS))
    (finding,) = findings(tmp_path)
    assert finding.hint == "pip install --force-reinstall --no-deps nvidia-cublas-cu12==12.5.1.7"


def test_run_path_hint_adds_one_to_each_file(tmp_path: Path) -> None:
    put_cublas(tmp_path, "old")
    files = {"example/a.so": user(CUBLAS, "old"), "example/deep er/b.so": user(CUBLAS, "old")}
    install(tmp_path, "example", "1.0", files)
    (finding,) = findings(tmp_path)
    assert [split(command) for command in (finding.hint or "").split(" && ")] == [
        ["patchelf", "--add-rpath", f"$ORIGIN/{up}/{FOLDER}", str(tmp_path / "example" / name)]
        for up, name in (("..", "a.so"), ("../..", "deep er/b.so"))
    ]


def test_wrong_major_names_the_installed_one(tmp_path: Path) -> None:
    files = {"nvidia/cu13/lib/libcublas.so.13": library("libcublas.so.13")}
    install(tmp_path, "nvidia-cublas", "13.0.2.7", files)
    put_example(tmp_path, user(CUBLAS, runpath=TO_CUBLAS))
    (finding,) = findings(tmp_path)
    assert "the environment has libcublas.so.13" in finding.message
    assert finding.hint == "pip install 'nvidia-cublas-cu12>=12.4.1.7'"


def test_different_copies_of_a_library_are_a_warning(tmp_path: Path) -> None:
    put_cublas(tmp_path)
    put_example(tmp_path, user(CUBLAS, runpath=TO_CUBLAS))
    files = {"other/b.so": user(CUBLAS, runpath="$ORIGIN"), f"other/{CUBLAS}": library(CUBLAS)}
    install(tmp_path, "other", "1.0", files)
    (finding,) = findings(tmp_path)
    assert (finding.kind, finding.exit_code) == ("duplicate-library", 0)


def test_driver_and_libraries_of_others_are_not_missing(tmp_path: Path) -> None:
    put_example(tmp_path, elf(needed=["libcuda.so.1", "libother.so.1"]))
    assert loaded(tmp_path, "libcuda.so.1")[0].found_by == "driver"
    assert loaded(tmp_path, "libother.so.1")[0].found_by == "none"
    assert findings(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("conda-meta/history", "conda install --prefix {folder} 'libcublas>=12.4.1.7'"),
        (".cudaredist.json", None),
    ],
)
def test_fix_is_no_wheel_if_pip_does_not_install_the_libraries(
    tmp_path: Path, name: str, hint: str | None
) -> None:
    put(tmp_path, {name: b"", "a.so": user(CUBLAS)})
    (finding,) = findings(tmp_path)
    expected = hint and hint.format(folder=tmp_path)
    assert (finding.kind, finding.hint) == ("missing-library", expected)


@pytest.mark.parametrize(
    ("project", "soname", "package", "code"),
    [
        ("cupy-cuda12x", "libcutensor.so.2", "cutensor", 0),
        ("example", "libcutensor.so.2", "cutensor", 1),
        # Distributions have NCCL, too.
        ("example", "libnccl.so.2", "nccl", 1),
    ],
)
def test_missing_library_of_a_product_names_its_wheel(
    tmp_path: Path, project: str, soname: str, package: str, code: int
) -> None:
    install(tmp_path, project, "14.0", {"example/a.so": user(soname)})
    libraries = [known(soname, "2.3.1", package, f"{package}-cu12", redist=package)]
    (finding,) = judge(tmp_path, libraries=libraries).findings()
    assert (finding.kind, finding.exit_code) == ("missing-library", code)
    assert ("optional for cupy-cuda12x 14.0" in finding.message) == (not code)
    assert finding.hint == f"pip install '{package}-cu12>=2.3.1.7,<3'"


def test_missing_library_of_any_major_follows_the_other_files(tmp_path: Path) -> None:
    """The soname of cuRAND is the same for several CUDA majors."""
    files = {"example/a.so": user("libcurand.so.10"), "example/b.so": user(CUBLAS)}
    install(tmp_path, "example", "1.0", files)
    hints = {each.hint for each in findings(tmp_path)}
    assert "pip install 'nvidia-curand-cu12>=10.3.1,<11'" in hints


# -- GPUs


@pytest.mark.parametrize(
    ("project", "code", "size", "count"),
    [
        ("example", ("sm", 80, ""), 4096, 1),
        ("example", ("sm", 80, ""), 400, 0),
        ("example", ("compute", 80, ""), 4096, 0),
        ("nvidia-cublas-cu12", ("sm", 80, ""), 4096, 1),
    ],
    ids=["other GPU", "without kernels", "portable", "NVIDIA's"],
)
def test_package_without_code_for_a_gpu_is_named(
    tmp_path: Path, project: str, code: Image, size: int, count: int
) -> None:
    section = fatbin([code], payload=bytes(size))
    install(tmp_path, project, "1.0", {"example/a.so": elf(sections={".nv_fatbin": section})})
    install(tmp_path, "other", "1.0", {"other/a.so": elf()})
    messages = [
        each.finding.message
        for each in judge(tmp_path).gpu_verdicts(["9.0"])
        if each.finding is not None
    ]
    assert len(messages) == count
    assert all(message.startswith(f"{project} 1.0: GPUs of capability 9.0") for message in messages)


@pytest.mark.parametrize(
    ("names", "exit_codes"),
    [(("cuda124", "cuda130"), [0]), (("cuda118", "cuda130"), [1, 0]), (("gpu", "cuda130"), [1])],
    ids=["one of two", "none of two", "no alternative"],
)
def test_alternative_for_another_release_is_a_warning(
    tmp_path: Path, names: Sequence[str], exit_codes: Sequence[int]
) -> None:
    """bitsandbytes has a library for each CUDA release, and loads one."""
    put_cublas(tmp_path, "old")
    sonames = {"cuda118": "libcublas.so.11", "cuda130": "libcublas.so.13"}
    files = {
        f"example/lib_{name}.so": user(sonames.get(name, CUBLAS), runpath=TO_CUBLAS)
        for name in names
    }
    install(tmp_path, "example", "1.0", files)
    libraries = cuda("11.8.0", "12.4.1", "13.0.2")
    found = list(judge(tmp_path, libraries=libraries).findings())
    assert {each.kind for each in found} == {"missing-library"}
    assert [each.exit_code for each in found] == exit_codes


# -- the owner of the loaded file


@pytest.mark.parametrize(
    ("folder", "hint"),
    [("conda-meta", "conda install 'libcublas>=12.5.1.7'"), ("other", None)],
)
def test_repair_is_that_of_the_loaded_file(tmp_path: Path, folder: str, hint: str | None) -> None:
    """The loader takes the older file of the folder that the run path leads to."""
    (tmp_path / folder).mkdir()
    put_cublas(tmp_path, "old", "new", version="12.5.1.7")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / CUBLAS).write_bytes(library(CUBLAS, "old"))
    put_example(tmp_path, user(CUBLAS, "new", runpath="$ORIGIN/../lib"))
    (finding,) = (each for each in findings(tmp_path) if each.kind == "missing-symbols")
    words = "no Python package contains the loaded file, which comes before that of "
    assert finding.message.endswith(f"but {words}nvidia-cublas-cu12 12.5.1.7")
    assert finding.hint == hint
