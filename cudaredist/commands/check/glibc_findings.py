"""Findings about the glibc that nvcc compiles with."""

from collections.abc import Iterable, Iterator
from functools import partial

from cudaredist.cli.configuration import declared_sets, sets_given
from cudaredist.commands.check.findings import finding
from cudaredist.commands.check.report import Finding
from cudaredist.errors import EXIT_INCOMPLETE, UsageError
from cudaredist.hints import again, command_line
from cudaredist.primitives import Platform, Version, parse_label
from cudaredist.redists import CUDA
from cudaredist.sets.read_set import indexed_sets, read_package_set
from cudaredist.store.data_folder import Store
from cudaredist.store.layered_tables import require_layered
from cudaredist.store.table_registry import NVCC_TABLE
from cudaredist.tables.explain_nvcc import glibc_in_words
from cudaredist.tables.nvcc.nvcc_table import compiles_with


def glibc_findings(text: str, store: Store, local: Iterable[Version]) -> Iterator[Finding]:
    """Yield the CUDA releases whose nvcc is not known to compile with a glibc.

    The releases are those of declared sets for Linux, else the `local` ones. Raises `UsageError`
    for a text that is not a version.
    """
    try:
        glibc = Version.parse(text)
    except ValueError as error:
        hint = f"run `{again(require_glibc='2.42')}`"
        raise UsageError(f"--require-glibc {text}: {error}", hint=hint) from None
    releases = require_layered(store, NVCC_TABLE).table.releases
    for label in _releases_in_use(local):
        release = releases.get(str(label))
        bound = None if release is None else release.glibc
        about = partial(finding, "glibc", redist=CUDA, label=label)
        is_compiling = compiles_with(bound, glibc)
        if is_compiling is False:
            command = command_line("explain nvcc", str(label))
            message = f"nvcc compiles with {glibc_in_words(bound)}, not with {glibc}"
            yield about(message, hint=f"run `{command}`")
        elif is_compiling is None:
            message = f"whether nvcc compiles with glibc {glibc} is unknown"
            yield about(message, exit_code=EXIT_INCOMPLETE)


def _releases_in_use(local: Iterable[Version]) -> Iterable[Version]:
    """Return the CUDA releases of declared sets for Linux, else the local ones."""
    if declared_sets() is None:
        return local
    paths = [path for index in sets_given(None) for path in indexed_sets(index)]
    sets = [package_set for package_set, _ in map(read_package_set, paths)]
    return sorted(
        {
            parse_label(one.cuda.release)
            for one in sets
            if Platform(one.platform.redist_system).os != "windows"
        }
    )
