"""Small environments of Python packages, made to order."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from support.binaries import Symbol, elf


def install(
    site: Path,
    project: str,
    version: str,
    files: Mapping[str, bytes | str],
    requires: Iterable[str] = (),
    extras: Iterable[str] = (),
) -> None:
    """Install a package with some files into a folder."""
    info = site / f"{project.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    for name, content in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    headers = [f"Name: {project}", f"Version: {version}"]
    lines = [*headers, *(f"Requires-Dist: {line}" for line in requires)]
    lines += (f"Provides-Extra: {name}" for name in extras)
    (info / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines, ""]))
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in files))


def library(soname: str, *exports: str, **facts: object) -> bytes:
    """Return a library with exports that have its soname as version."""
    symbols = [Symbol(name, version=soname) for name in exports]
    return elf(soname=soname, symbols=symbols, defines=[soname], **facts)  # type: ignore[arg-type] # any facts


def user(soname: str, *symbols: str, **facts: object) -> bytes:
    """Return a library that needs another one, and some of its symbols."""
    undefined = [Symbol(name, is_defined=False, version=soname) for name in symbols]
    needs = {soname: [soname]} if symbols else {}
    return elf(needed=[soname], needs=needs, symbols=undefined, **facts)  # type: ignore[arg-type] # any facts
