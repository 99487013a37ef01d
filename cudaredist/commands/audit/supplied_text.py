"""The answer to --supplied-by as text: a verdict, and a table of the libraries."""

from collections.abc import Iterator

from cudaredist.programs.report import AuditReport, RequiredLibrary, Substitution
from cudaredist.words import listed, plural

SUBSTITUTION_COLUMNS = ("library", "pinned", "supplied", "symbols", "GPUs lost")
_SHOWN = 2


def substitution_verdict(report: AuditReport) -> Iterator[str]:
    """Yield the answer in one line."""
    substitution = report.substitution
    if substitution is not None:
        parts = ", ".join(_problems(substitution)) or _success(substitution, report)
        mark = "," if substitution.answer == "yes" else ":"
        yield f"runs with {substitution.supplied_by}: {substitution.answer}{mark} {parts}"


def _problems(substitution: Substitution) -> Iterator[str]:
    """Yield the reasons for another answer than yes."""
    libraries = substitution.libraries
    missing = [row.soname for row in libraries if row.status == "missing" and not row.is_optional]
    missing += (part for row in libraries for part in row.missing_parts)
    if missing:
        yield f"{listed(missing, _SHOWN)} {'is' if len(missing) == 1 else 'are'} missing"
    lacking = [row for row in libraries if row.missing_symbols]
    if lacking:
        count = sum(len(row.missing_symbols) for row in lacking)
        names = listed([row.soname for row in lacking], _SHOWN)
        yield f"{plural(count, 'symbol')} of {names} {'is' if count == 1 else 'are'} missing"
    unknown = [row.soname for row in libraries if row.status == "unknown"]
    if unknown:
        verb = "was" if len(unknown) == 1 else "were"
        yield f"{listed(unknown, _SHOWN)} {verb} not examined"


def _success(substitution: Substitution, report: AuditReport) -> str:
    """Return the number of libraries that the set supplies, or why there are none."""
    supplied = [row for row in substitution.libraries if row.status == "supplied"]
    if substitution.answer == "unknown" and not substitution.libraries and report.device_code:
        return "no file or requirement names a library of the set, but it may load some"
    if substitution.answer != "yes":
        return "see the findings"
    if not supplied:
        return "it needs no library of the set"
    symbols = sum(row.symbols for row in supplied)
    loaded = sum(row.kind in {"opened", "declared"} for row in supplied)
    text = f"with {plural(len(supplied), 'library', 'libraries')}"
    text += f" and {plural(symbols, 'symbol')} that its files use" if symbols else ""
    if loaded:
        text += f"; it may load {loaded} of them when it runs, whose symbols are not compared"
    return text


def substitution_rows(substitution: Substitution) -> Iterator[tuple[str, ...]]:
    """Yield a row for each library."""
    for row in substitution.libraries:
        yield (
            row.soname,
            ", ".join(row.pinned) or "-",
            _supplied(row),
            _symbols(row),
            _gpus(row),
        )


def _supplied(row: RequiredLibrary) -> str:
    if row.package is None:
        return {"bundled": "own copy", "unknown": "unknown"}.get(row.status, "missing")
    change = "" if row.change is None else f" ({row.change})"
    return f"{row.package} {row.version}{change}"


def _symbols(row: RequiredLibrary) -> str:
    """Return the symbols that files use, and those that are missing."""
    if row.package is None:
        return "-"
    texts = []
    if row.missing_parts:
        texts.append(f"without {listed(row.missing_parts, 1)}")
    if row.status == "unknown":
        texts.append("unknown")
    elif row.missing_symbols:
        names = listed(row.missing_symbols, 1)
        texts.append(f"{len(row.missing_symbols)} of {row.symbols:,} missing: {names}")
    elif row.symbols:
        texts.append(f"all {row.symbols:,}")
    if len(row.parts) > 1 and not row.missing_parts:
        texts.append(f"all {len(row.parts)} parts")
    return "; ".join(texts) or {"opened": "may be opened", "declared": "no file has its name"}.get(
        row.kind, "-"
    )


def _gpus(row: RequiredLibrary) -> str:
    if row.package is None or row.gpus_lost == ():
        return "-"
    if row.gpus_lost is None:
        return "unknown"
    return " ".join(row.gpus_lost)
