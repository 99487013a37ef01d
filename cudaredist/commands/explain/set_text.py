"""The summary of a package set as text."""

import posixpath
from collections.abc import Iterator

from cudaredist.cli.text import columns, counted
from cudaredist.commands.explain.set_report import SetSummary
from cudaredist.formats.names import DISTRIBUTION_WORDS
from cudaredist.formats.tables import span
from cudaredist.grouping import grouped
from cudaredist.tables.advisories.texts import counted_states, vulnerability_lines
from cudaredist.tables.explain_nvcc import glibc_in_words
from cudaredist.tables.gpus.coverage import describe_coverage


def set_text(summary: SetSummary) -> Iterator[str]:
    """Yield a set's packages, output sizes and missing packages."""
    yield (
        f"{summary.attribute}: CUDA {summary.cuda} for {summary.platform} "
        f"({summary.channel} channel), {counted(summary.counts)}"
    )
    yield f"capabilities: {' '.join(summary.capabilities)}"
    gcc, clang = summary.host_compiler.gcc, summary.host_compiler.clang
    named = [("GCC", gcc), ("Clang", clang)]
    ranges = [f"{name} {span(c.min, c.max)}" for name, c in named if c is not None]
    selection = f"; GCC {gcc.selected} is selected" if gcc is not None and gcc.selected else ""
    glibc = summary.host_compiler.glibc
    ranges += [glibc_in_words(glibc)] if glibc is not None else []
    yield f"host compiler: {', '.join(ranges)}{selection}"
    if summary.driver is not None:
        drivers = {
            "published with it": summary.driver.published,
            "the lowest with all features": summary.driver.native,
            "the lowest for its major": summary.driver.lowest,
        }
        texts = [f"{driver.version} is {words}" for words, driver in drivers.items() if driver]
        yield f"driver: {', '.join(texts) or 'unknown'}"
    yield ""
    rows = [("package", "version", "closure, MB", "outputs, MB unpacked")]
    for package in summary.packages:
        sizes = [f"{name} {_megabytes(size)}" for name, size in package.size.items()]
        closure = "unknown" if package.closure is None else _megabytes(package.closure)
        more = package.optional_closure
        closure += f" (+{_megabytes(more)})" if more else ""
        row = (package.package, package.version, closure, ", ".join(sizes or package.outputs))
        rows.append(row)
    yield from columns(rows)
    yield "closure: its libraries and all that they need or open; +: what they can do without"
    yield from _coverage_text(summary)
    if summary.totals:
        yield ""
        totals = [(t.output, f"{t.files:,}", _megabytes(t.size)) for t in summary.totals]
        yield from columns([("output", "files", "MB"), *totals])
    if summary.library_bytes:
        share = 100 * summary.library_lib_bytes / summary.library_bytes
        yield (
            f"at run time, programs need {_megabytes(summary.library_lib_bytes)} MB (lib) of the "
            f"libraries' {_megabytes(summary.library_bytes)} MB, {share:.0f} %"
        )
    yield ""
    missing = ((m.package, m.status, m.reason) for m in summary.missing)
    yield from columns([("missing", "status", "reason"), *missing])
    yield from _distribution_text(summary)
    if summary.vulnerabilities:
        yield ""
        yield f"known vulnerabilities: {counted_states(summary.vulnerabilities)}"
        lines = vulnerability_lines(summary.vulnerabilities, with_package=True)
        yield from (f"  {line}" for line in lines)
    if summary.diagnostics:
        yield ""
    yield from (f"{x.level}: {x.subject}: {x.text}" for x in summary.diagnostics)


def _distribution_text(summary: SetSummary) -> Iterator[str]:
    """Yield how many libraries the license texts list as distributable, and those not listed."""
    kinds = grouped(
        (kind, (package.package, posixpath.basename(path)))
        for package in summary.packages
        for path, kind in package.distribution.items()
    )
    if not kinds:
        return
    yield ""
    known = [(words, kinds.get(kind, ())) for kind, words in DISTRIBUTION_WORDS.items()]
    counts = [f"{len(own)} {words}" for words, own in known if own]
    yield f"libraries by the license texts: {', '.join(counts)}"
    for kind in ("conditional", "not-listed"):
        packages = grouped(kinds.get(kind, ()))
        texts = [f"{package} ({' '.join(names)})" for package, names in packages.items()]
        if texts:
            yield f"{DISTRIBUTION_WORDS[kind]}: {', '.join(texts)}"


def _coverage_text(summary: SetSummary) -> Iterator[str]:
    """Yield the coverage of packages with device code."""
    covered = [p for p in summary.packages if any(c.all_files for c in p.coverage.values())]
    if not covered:
        return
    yield ""
    rows = [("coverage", *summary.capabilities)]
    for package in covered:
        cells = (package.coverage.get(name) for name in summary.capabilities)
        rows.append((package.package, *(c.value if c else "unknown" for c in cells)))
    yield from columns(rows)
    for package in covered:
        for name, coverage in package.coverage.items():
            if coverage.value in {"partial", "none"}:
                yield f"{package.package} on {name}: {describe_coverage(coverage)}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f}"
