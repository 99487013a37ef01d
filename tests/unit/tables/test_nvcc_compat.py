"""Tests of host compilers: header forms, policy and changes."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY
from support.headers import ERAS, header_source, host_config, read_once
from support.optional_programs import needs

from cudaredist.errors import InvalidFileError, NotInDataError
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import (
    CompilerRange,
    CompilerVerdict,
    NvccCompat,
    NvccPolicy,
    NvccRelease,
)
from cudaredist.jsontext import canonical_json
from cudaredist.tables.nvcc.compilers import COMPILERS, visual_studio
from cudaredist.tables.nvcc.nvcc_table import (
    findings,
    hold_back,
    make_compat,
    make_release,
    newest_release,
)
from cudaredist.tables.nvcc.preprocessor import Header

POLICY_PATH = REPOSITORY / "data" / "policy" / "nvcc.json"


def policy() -> NvccPolicy:
    read = read_own_file(POLICY_PATH.read_bytes(), NvccPolicy)
    assert isinstance(read, NvccPolicy)
    return read


def release(**more: Any) -> NvccRelease:
    return make_release("1.2.3", header_source("1.2.3"), read_once(host_config(**more)), policy())


def compat(**releases: NvccRelease) -> NvccCompat:
    return NvccCompat(
        schema_version=1,
        releases={name[1:].replace("_", "."): release for name, release in releases.items()},
    )


def in_short(answer: CompilerRange | CompilerVerdict) -> str:
    if isinstance(answer, CompilerVerdict):
        return answer.status
    return f"{'' if answer.min is None else answer.min}-{answer.max}"


# -- headers


@pytest.mark.parametrize(
    ("era", "expected"),
    [
        ("11.8", "-11 3-14 1910-1939 unchecked unchecked 1500-2021 unchecked unchecked"),
        ("12.2.0", "-12 3-15 1910-1939 unchecked unchecked 1500-2021 refused unchecked"),
        ("12.2.1", "-12 3-16 1910-1939 16-16 unchecked 1500-2021 refused unchecked"),
        ("12.4", "-13 3-17 1910-1949 16-17 3-17 1500-2021 refused unchecked"),
        ("13.0", "-15 3-20 1920-1949 16-20 3-20 refused refused unchecked"),
        ("13.4", "-16 3-22 1920-1959 16-22 3-21 refused refused unchecked"),
    ],
)
def test_every_header_form_is_read(era: str, expected: str) -> None:
    ranges = read_once(host_config(ERAS[era]))
    assert list(ranges) == list(COMPILERS)
    assert " ".join(map(in_short, ranges.values())) == expected


def test_header_with_windows_newlines_is_read() -> None:
    header = host_config(ERAS["13.4"])
    assert read_once(header.replace(b"\n", b"\r\n")) == read_once(header)


def test_header_bounds_are_derived_and_stated() -> None:
    ranges = read_once(host_config(ERAS["13.4"]))
    gcc, clang, msvc = (ranges[name] for name in ("gcc", "clang", "msvc"))
    assert gcc.model_dump() == {"status": "range", "min": None, "max": 16, "max_basis": "derived"}
    assert isinstance(clang, CompilerRange)
    assert clang.header_min == "3.3"
    assert clang.min_basis == "derived"
    assert isinstance(msvc, CompilerRange)
    assert msvc.unit == "_MSC_VER"
    assert msvc.years == {"1920": "2019", "1930": "2022", "1950": "2026", "1959": "2026"}


def test_compiler_not_tested_by_header_is_unchecked() -> None:
    ranges = read_once(host_config(ERAS["11.8"], stated_years="of this century"))
    assert ranges["icx"].note == (
        "the header does not test __INTEL_CLANG_COMPILER, so another compiler's check applies"
    )
    assert {ranges[name].note for name in ("horizon-clang", "nvhpc", "msvc")} == {None}


@pytest.mark.parametrize(
    ("compiler", "checks", "stale"),
    [
        ("gcc", {"stated_gcc": 10}, 'are not supported", but its #if accepts up to 11'),
        ("clang", {"stated_clang": 14}, 'is "less than 14", but its #if accepts 3 to 14'),
        ("grace-clang", {"grace": (16, 18), "stated_grace": "16.x to 17.x"}, "16.x to 17.x"),
        ("grace-clang", {"grace": (16, 18), "stated_grace": "16.x ."}, 'is "must be 16.x"'),
        ("msvc", {"msvc": (1920, 1939)}, 'is "between 2017 and 2022 (inclusive)"'),
    ],
)  # fmt: skip
def test_error_text_that_contradicts_condition_is_noted(
    compiler: str, checks: dict[str, Any], stale: str
) -> None:
    ranges = read_once(host_config(**checks))
    note = ranges[compiler].note
    assert note is not None
    assert re.match(r"line \d+: the text of #error ", note)
    assert stale in note
    assert not any(
        isinstance(answer, CompilerRange) and answer.note
        for name, answer in ranges.items()
        if name != compiler
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"__GNUC__ > 11", b"__GNUC__ > 11 && __has_include(<x>)", "line 32: #if: __has_include"),
        (b"__GNUC__ > 11", b"__GNUC__ > 11 || __GNUC__ == 7", "refuses gcc 7 between accepted"),
        (b"__GNUC__ > 11", b"__GNUC__ < 4", "gcc 99 is accepted, so there is no upper bound"),
        (b"_MSC_VER < 1910", b"_MSC_VER", "msvc is refused: the header does not check it"),
        (b"_WIN32)\n#if _MSC_VER", b"_WIN33)\n#if _MSC_VER", "msvc is unchecked"),
        (host_config(), b"", "gcc is unchecked: the header does not check it"),
        (host_config(), b'#include "crt/host_config.h"\n', "gcc is unchecked: the header"),
        (host_config()[-200:], b"", "truncated"),
        (host_config()[700:], b"", "line "),
    ],
)
def test_invalid_header_is_refused(old: bytes, new: bytes, message: str) -> None:
    with pytest.raises(InvalidFileError) as raised:
        read_once(host_config().replace(old, new))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("msc_ver", "year"), [(1800, None), (1900, "2015"), (1939, "2022"), (1959, "2026")]
)
def test_visual_studio_year_follows_msc_ver(msc_ver: int, year: str | None) -> None:
    assert visual_studio(msc_ver) == year


# -- comparison with the preprocessor of gcc


def errors_by_gcc(header: Path, versions: dict[int, dict[str, int]]) -> dict[int, list[int]]:
    """Include the header once per version and group gcc's errors by version."""
    lines: list[str] = []
    include_lines: dict[int, int] = {}
    for version, macros in versions.items():
        # C++ defines the language version itself.
        names = [name for name in macros if name != "__cplusplus"]
        lines += [f"#define {name} {macros[name]}" for name in names]
        lines.append(f'#include "{header.name}"')
        include_lines[len(lines)] = version
        lines += [f"#undef {name}" for name in [*names, "__HOST_CONFIG_H__", "__THROW", "OPTION"]]
    main = header.with_suffix(".cpp")
    main.write_text("\n".join(lines))
    result = subprocess.run(
        ["gcc", "-E", "-undef", "-nostdinc", "-std=c++17", "-o", "/dev/null", main.name],
        cwd=header.parent,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "LC_ALL": "C"},
    )
    error_lines: dict[int, list[int]] = {version: [] for version in versions}
    current = 0
    for line in result.stderr.splitlines():
        included = re.match(rf"In file included from {main.name}:(\d+)", line)
        complaint = re.match(rf"{header.name}:(\d+):\d+: error: (.*)", line)
        if included:
            current = include_lines[int(included[1])]
        elif complaint:
            assert complaint[2].startswith("#error"), line
            error_lines[current].append(int(complaint[1]))
    return error_lines


def macros_of(compiler: str, *, gcc: int, clang: int) -> dict[int, dict[str, int]]:
    """Return the macros of every evaluated version of a compiler."""
    # The keys are literals for mypy, but the test parameters are plain strings.
    model = next(value for name, value in COMPILERS.items() if name == compiler)
    return {version: dict(model.macros(version, gcc, clang)) for version in model.versions}


@pytest.mark.slow
@needs("gcc")
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("era", ERAS)
def test_header_evaluation_agrees_with_gcc(era: str, compiler: str, tmp_path: Path) -> None:
    checks = ERAS[era]
    # The include is the only directive of gcc that is removed here.
    data = host_config(checks).replace(b"#include <features.h>", b"")
    (tmp_path / "host_config.h").write_bytes(data)
    header = Header(data)
    versions = macros_of(compiler, gcc=checks.gcc, clang=checks.clang)
    by_gcc = errors_by_gcc(tmp_path / "host_config.h", versions)
    ours = {
        version: [error.line for error in header.run(macros).errors]
        for version, macros in versions.items()
    }
    assert ours == by_gcc


# -- policy


def test_stricter_documented_lower_bound_is_used() -> None:
    compilers = release().compilers
    assert compilers["gcc"].model_dump() == {
        "status": "range",
        "min": 6,
        "max": 11,
        "min_basis": "documented",
        "max_basis": "derived",
        "documented_by": {
            "policy": "policy/nvcc.json",
            "reference": policy().lower_bounds["gcc"].reference,
        },
    }
    clang = compilers["clang"]
    assert isinstance(clang, CompilerRange)
    assert (clang.min, clang.min_basis, clang.header_min) == (7, "documented", "3.3")


@pytest.mark.parametrize(
    ("check", "of_header", "of_release"),
    [
        (b"(__clang_major__ < 9)", (9, "derived", "9.0"), (9, "derived", None)),
        (b"0", (None, None, None), (7, "documented", None)),
    ],
)
def test_stricter_lower_bound_of_header_overrides_documentation(
    check: bytes, of_header: tuple[object, ...], of_release: tuple[object, ...]
) -> None:
    data = host_config().replace(b"(__clang_major__ < 3)", check)
    ranges = read_once(data.replace(b"__clang_minor__ < 3", b"0"))
    release = make_release(None, header_source("1.2.3"), ranges, policy())
    for clang, expected in ((ranges["clang"], of_header), (release.compilers["clang"], of_release)):
        assert isinstance(clang, CompilerRange)
        assert (clang.min, clang.min_basis, clang.header_min) == expected


def test_unseen_minors_come_from_documentation() -> None:
    table = make_compat({"11.6.2": release(), "13.4.0": release()}, policy())
    assert sorted(table.releases) == [
        *("11.0", "11.1", "11.2", "11.3", "11.4", "11.5", "11.6.2", "11.7", "13.4.0")
    ]
    documented = table.releases["11.4"]
    assert documented.nvcc is None
    gcc = documented.compilers["gcc"]
    assert isinstance(gcc, CompilerRange)
    assert (gcc.min, gcc.max, gcc.min_basis, gcc.max_basis) == (6, 10, *["documented"] * 2)
    assert gcc.note is not None
    assert make_compat(table.releases, policy()) == table


def test_nvcc_table_is_a_valid_own_file() -> None:
    table = make_compat({"13.4.0": release(stated_gcc=3)}, policy())
    data = canonical_json(table.model_dump(mode="json"))
    assert read_own_file(data, NvccCompat) == table
    assert b'": null' not in data.replace(b'"nvcc": null', b"")


@pytest.mark.parametrize(
    ("name", "label"), [("12.2", "12.2.10"), ("12.2.1", "12.2.1"), ("11.0", "11.0")]
)
def test_minor_is_represented_by_newest_patch(name: str, label: str) -> None:
    table = make_compat({"12.2.1": release(), "12.2.10": release(), "12.2.2": release()}, policy())
    assert newest_release(name, table) == label


def test_unknown_release_suggests_nearest() -> None:
    with pytest.raises(NotInDataError, match=r"CUDA 12\.7 is not in the data") as raised:
        newest_release("12.7", compat(v12_6_1=release()))
    assert raised.value.hint == "the data ends with 12.6.1"


# -- changes


def test_decreased_bound_is_found_once() -> None:
    before, after = release(gcc=12, msvc=(1920, 1949)), release(icc="refused")
    table = compat(v12_0_0=before, v12_1_0=after)
    changes = findings(None, table)
    assert [str(finding) for finding in changes] == [
        "12.1.0: gcc max was 12 in 12.0.0 and is 11",
        "12.1.0: icc status was range in 12.0.0 and is refused",
        "12.1.0: msvc min was 1920 in 12.0.0 and is 1910",
        "12.1.0: msvc max was 1949 in 12.0.0 and is 1939",
    ]
    assert {finding.kind for finding in changes} == {"goes-down"}
    assert findings(table, table) == ()
    assert findings(compat(v12_0_0=before), table) == changes


def test_missing_bound_is_highest() -> None:
    releases = {"v1_0": gcc_only(None), "v1_1": gcc_only(9, None), "v1_2": gcc_only(None, 5)}
    changes = findings(None, compat(**releases))
    assert [(f.release, f.field, f.new) for f in changes] == [
        ("1.1", "min", None),
        ("1.1", "max", 9),
    ]


def gcc_only(high: int | None, low: int | None = 6, *, refused: bool = False) -> NvccRelease:
    gcc: CompilerRange | CompilerVerdict = CompilerRange(status="range", min=low, max=high)
    if refused:
        gcc = CompilerVerdict(status="refused")
    return NvccRelease(nvcc=None, source=header_source("1.2.3"), compilers={"gcc": gcc})


def releases_of(bounds: str) -> dict[str, NvccRelease]:
    """Parse `12.1:14 12.2:-`, the newest gcc of each release or `-` if refused."""
    pairs = (each.split(":") for each in bounds.split())
    return {
        label: gcc_only(None if high == "-" else int(high), refused=high == "-")
        for label, high in pairs
    }


@pytest.mark.parametrize(
    ("listed", "updates", "left_out"),
    [
        pytest.param("", "12.1:12 12.2:13", "", id="up"),
        pytest.param("", "12.10:13 12.9:12", "", id="up, in numeric order"),
        pytest.param("", "12.1:13 12.2:12 12.3:14", "12.2", id="down"),
        pytest.param("12.1:13", "12.2:12 12.3:12 12.4:13", "12.2 12.3", id="later releases too"),
        pytest.param("12.1:13 12.2:12", "12.1:13 12.2:12", "", id="already in table"),
        pytest.param("12.1:13 12.2:12", "12.3:12", "", id="already in table, with a later release"),
        pytest.param("12.1:13 12.3:12", "12.2:13", "", id="within an existing decrease, high"),
        pytest.param("12.1:13 12.3:12", "12.2:12", "", id="within an existing decrease, low"),
        pytest.param("12.1:13 12.3:11", "12.2:12", "12.2", id="decrease in two steps"),
        pytest.param("12.1:13 12.3:12", "12.2:11", "12.2", id="below an existing decrease"),
        pytest.param("12.1:12 12.3:12", "12.2:13", "12.2", id="older release is higher"),
        pytest.param("12.2:12", "12.1:13", "12.1", id="the oldest is higher"),
        pytest.param("12.1:13", "12.1:12", "12.1", id="changed"),
        pytest.param("12.1:13 12.2:13", "12.1:14 12.2:13", "12.1", id="changed, then down"),
        pytest.param("12.1:12 12.2:13", "12.1:14 12.3:13", "12.1", id="down but for a change"),
        pytest.param("12.1:13", "12.2:- 12.3:-", "12.2 12.3", id="refused"),
        pytest.param("12.1:-", "12.2:13", "", id="no longer refused"),
    ],
)
def test_release_with_finding_is_not_written(listed: str, updates: str, left_out: str) -> None:
    policy = NvccPolicy(schema_version=1, lower_bounds={}, unseen_releases={})
    old = NvccCompat(schema_version=1, releases=releases_of(listed))
    read = releases_of(updates)
    table, without = hold_back(old, read, policy)
    assert without == set(left_out.split())
    accepted = make_compat({**old.releases, **read}, policy)
    assert bool(findings(old, accepted)) == bool(without)
    accepted_releases = {label: release for label, release in read.items() if label not in without}
    assert table.releases == {**old.releases, **accepted_releases}
    # The table has no findings, now or next time, and the omitted releases are findings again.
    assert findings(old, table) == ()
    assert hold_back(table, read, policy) == (table, without)
    # After acceptance, there are no findings.
    assert hold_back(accepted, read, policy) == (accepted, set())


def test_documented_minor_with_finding_is_not_written() -> None:
    def documented(high: int) -> NvccPolicy:
        gcc = {"min": 6, "max": high}
        unseen = {"reason": "ours", "reference": "a page", "compilers": {"gcc": gcc}}
        return NvccPolicy.model_validate(
            {"schema_version": 1, "lower_bounds": {}, "unseen_releases": {"12.1": unseen}}
        )

    read = {"12.2.0": gcc_only(12)}
    assert hold_back(None, read, documented(12))[1] == set()
    table, without = hold_back(None, read, documented(13))
    assert set(table.releases) == {"12.1"}
    assert without == {"12.2.0"}
    held = make_compat({"12.2.0": gcc_only(12)}, documented(12))
    assert hold_back(held, {}, documented(13)) == (held, {"12.1"})
    # A release that would replace a documented minor is not written, and the minor is kept.
    read = {"12.1.1": gcc_only(13)}
    assert hold_back(held, read, documented(12)) == (held, {"12.1.1"})


def test_change_of_listed_release_is_found() -> None:
    old = compat(v12_0_0=release(grace=(16, 17)), v12_1_0=release())
    new = compat(v12_0_0=release(grace=(16, 18)), v12_1_0=release(icc="refused", gcc=12))
    changes = findings(old, new)
    assert [str(finding) for finding in changes if finding.kind == "changed"] == [
        "12.0.0: grace-clang max was 17 and is 18",
        "12.1.0: gcc max was 11 and is 12",
        "12.1.0: icc status was range and is refused",
    ]


def test_added_or_removed_compiler_is_a_change() -> None:
    whole = release()
    part = whole.model_copy(
        update={"compilers": {"gcc": whole.compilers["gcc"], "icx": whole.compilers["icx"]}}
    )
    changes = findings(compat(v12_0_0=part), compat(v12_0_0=whole))
    assert {finding.compiler for finding in changes} == COMPILERS.keys() - {"gcc", "icx"}
    assert {(finding.field, finding.old) for finding in changes} == {("status", None)}
    gone = findings(compat(v12_0_0=whole), compat(v12_0_0=part))
    assert str(gone[0]) == "12.0.0: clang status was range and is none"
