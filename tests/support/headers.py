"""Headers that check host compilers, in the forms of several releases.

The headers are written for these tests and contain no text of NVIDIA."""

from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cudaredist.formats.tables import HeaderSource
from cudaredist.tables.nvcc.compilers import read_header

_TEMPLATE = Environment(  # noqa: S701 - no web page
    loader=FileSystemLoader(Path(__file__).parents[1] / "fixtures" / "headers"),
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
).get_template("host_config.h.jinja")


read_once = cache(read_header)
"""Evaluate a header once, because every version of every compiler takes long."""


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
    return _TEMPLATE.render(asdict(checks)).encode()


def math_functions(sinpi: str = "", rsqrt: str = "", guards: str = "") -> bytes:
    """Return a `math_functions.h` with these exception specifications."""
    return f"""\
#if !defined(__MATH_FUNCTIONS_H__)
#define __MATH_FUNCTIONS_H__
#if defined(__cplusplus) && defined(__CUDACC__)
{guards}
extern "C" {{
/** A function's comment. */
extern __DEVICE__ double                 sin(double x) __THROW;
extern __DEVICE__ double                 sinpi(double x) {sinpi};
extern __DEVICE__ float                  sinpif(float x) {sinpi};
extern __DEVICE__ double                 rsqrt(double x) {rsqrt};
extern __DEVICE__ float                  rsqrtf(float x) {rsqrt};
}}
__MATH_FUNCTIONS_DECL__ float sinpi(const float a);
#endif
#endif
""".encode()


def header_source(version: str) -> HeaderSource:
    """Return the source of facts in a header."""
    return HeaderSource(
        channel="wheels",
        package="cuda_nvcc",
        version=version,
        archive_sha256="a" * 64,
        path="include/crt/host_config.h",
        file_sha256="b" * 64,
    )
