"""Headers that check host compilers, in the forms of several releases.

The headers are written for these tests and contain no text of NVIDIA."""

from dataclasses import dataclass, replace

OPENING = """\
/* Ours, for tests: checks of host compilers as the real header makes them. */
#if !defined(__CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__)
#warning "not to be included directly"
#endif
#ifndef __HOST_CONFIG_H__
#define __HOST_CONFIG_H__
#if defined(__CUDACC__)
#if defined(__CUDACC_RTC__)
#define __THROW
#else /* __CUDACC_RTC__ */
#if !defined(__GNUC__) && !defined(_WIN32)
#error neither of the two
#endif
#if defined(__PGIC__)
#if !defined(__GNUC__) || !defined(__LP64__) || !defined(__linux__)
#error only Linux
#endif
#endif
"""
CLOSING = """\
#if defined(__HORIZON__)
#define __THROW
#elif defined(__GNUC__)
#include <features.h> /* "quoted /* in a comment */
#elif defined(_WIN32)
#undef OPTION
#define OPTION \\
        1
#if _MSC_VER >= 1500 && OPTION
#define __THROW
#endif
#endif
#endif /* __CUDACC_RTC__ */
typedef const char *text; /* code that is passed over: */ text url = "http://x//y/*";
#endif /* __CUDACC__ */
#endif
"""


@dataclass(frozen=True, slots=True)
class Checks:
    """Newest versions that a header accepts, and the form of its checks."""

    gcc: int = 11
    clang: int = 14
    msvc: tuple[int, int] = (1910, 1939)
    grace: tuple[int, int] | None = None
    horizon: int | None = None
    icc: str = "list"
    refuses_icx: bool = False
    stated_clang: int | None = None
    stated_gcc: int | None = None
    stated_years: str = "between 2017 and 2022 (inclusive)"
    stated_grace: str | None = None


ERAS = {
    "11.8": Checks(),
    "12.2.0": Checks(gcc=12, clang=15, refuses_icx=True),
    "12.2.1": Checks(gcc=12, clang=16, grace=(16, 16), refuses_icx=True, stated_clang=16),
    "12.4": Checks(
        gcc=13, clang=17, msvc=(1910, 1949), grace=(16, 17), horizon=17, refuses_icx=True
    ),
    "13.0": Checks(
        gcc=15,
        clang=20,
        msvc=(1920, 1949),
        grace=(16, 20),
        horizon=20,
        icc="refused",
        refuses_icx=True,
        stated_years="between 2019 and 2022 (inclusive)",
    ),
    "13.4": Checks(
        gcc=16,
        clang=22,
        msvc=(1920, 1959),
        grace=(16, 22),
        horizon=21,
        icc="refused",
        refuses_icx=True,
        stated_years="between 2019 and 2026 (inclusive)",
    ),
}
"""The forms of real headers, by the release that introduced them."""


def host_config(checks: Checks | None = None, **more: object) -> bytes:
    """Return a header with given checks."""
    checks = replace(checks or Checks(), **more)  # type: ignore[arg-type]
    parts = [OPENING]
    if checks.icc == "refused":
        parts.append("#if defined(__ICC)\n#error no ICC\n#endif\n")
    parts.append("#if !__NV_NO_HOST_COMPILER_CHECK\n")
    if checks.icc == "list":
        parts.append(
            "#if defined(__ICC)\n"
            "#if (__ICC != 1500 && __ICC != 1600 && __ICC != 1700 && __ICC != 1800 && \\\n"
            "     !(__ICC >= 1900 && __ICC <= 2021)) || !defined(__GNUC__) || !defined(__LP64__)\n"
            "#error another ICC\n#endif\n#endif\n"
        )
    if checks.grace is not None:
        low, high = checks.grace
        stated = checks.stated_grace or (f"{low}.x to {high}.x" if high > low else f"{low}.x ")
        parts.append(
            "#if defined(__GRCO_CLANG_COMPILER__)\n"
            f"#if (__GRCO_CLANG_COMPILER__ == 1) && ((__clang_major__ < {low}) || "
            f"(__clang_major__ > {high}))\n"
            f"#error Grace clang must be {stated}\n#endif\n#endif\n"
        )
    if checks.refuses_icx:
        parts.append("#if defined(__INTEL_CLANG_COMPILER)\n#error no ICX\n#endif\n")
    parts.append(
        "#if defined(__powerpc__)\n"
        "#if defined(__ibmxl_vrm__) && !(__ibmxl_vrm__ >= 0x0d010000 && __ibmxl_vrm__ < "
        "0x0d020000)\n#error another xlC\n#endif\n#endif\n"
        "#if defined(__GNUC__)\n"
        f"#if __GNUC__ > {checks.gcc}\n\n"
        f"#error gcc later than {checks.stated_gcc or checks.gcc} are not supported\n#endif\n"
    )
    if checks.horizon is not None:
        parts.append(f"#if defined(__HORIZON__)\n{_clang('HOS', checks.horizon + 1)}#endif\n")
    guard = "defined(__clang__) && !defined(__ibmxl_vrm__) && !defined(__ICC)"
    guard += " && !defined(__HORIZON__) && !defined(__APPLE__)"
    if checks.grace is not None:
        guard += " && !defined(__GRCO_CLANG_COMPILER__)"
    low, high = checks.msvc
    parts.append(
        f"#if {guard}\n{_clang('', checks.clang + 1, checks.stated_clang)}#endif /* {guard} */\n"
        "#endif /* __GNUC__ */\n"
        "#if defined(_WIN32)\n"
        f"#if _MSC_VER < {low} || _MSC_VER >= {high + 1}\n"
        f"#error only {checks.stated_years}\n"
        f"#elif _MSC_VER >= {low} && _MSC_VER < {low}\n"
        '#pragma message("it\'s deprecated")\n'
        "#endif\n#endif\n#endif\n"
    )
    return "".join([*parts, CLOSING]).encode()


def _clang(kind: str, above: int, stated: int | None = None) -> str:
    return (
        f"#if (__clang_major__ >= {above}) || (__clang_major__ < 3) || "
        "((__clang_major__ == 3) &&  (__clang_minor__ < 3))\n"
        f"#error {kind} clang must be less than {stated or above} and greater than 3.2 .\n"
        "#endif\n"
    )
