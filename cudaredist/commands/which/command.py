"""which: find the packages that provide a file or a soname."""

from dataclasses import field
from functools import partial
from pathlib import Path

from cudaredist.cli.options import (
    Data,
    Options,
    argument,
    cache_dir_option,
    cuda_option,
    output_flag,
    platform_option,
    redist_option,
    select_option,
)
from cudaredist.cli.session import Refusal, Session, command, find_redists


class WhichOptions(Options):
    """Options of which."""

    typical = ("symbol", "cuda", "platform", "redist", "data_dir")

    name: str | None = argument(
        "Soname, file name or end of a path. Use * for any characters.", metavar="[FILE|SONAME]"
    )
    symbol: str | None = select_option("Exported symbol to find. Use * for any characters.")
    all: bool = output_flag("Print all rows. Default: group more than 50 rows.")
    demangle: bool = output_flag("With --symbol, match and print C++ names in readable form.")
    cuda: str | None = cuda_option("Find files usable with this CUDA release. Default: all.")
    platform: str | None = platform_option("Platform, such as linux-x86_64. Default: all.")
    redist: list[str] | None = redist_option()
    cache_dir: Path | None = cache_dir_option()
    data: Data = field(default_factory=Data)


REFUSED: tuple[Refusal[WhichOptions], ...] = (
    (
        lambda o: o.name is not None and o.symbol is not None,
        "FILE cannot be combined with --symbol",
        ["--symbol"],
    ),
    (
        lambda o: not o.name and not o.symbol,
        "which requires a file, a soname or --symbol",
        "run `cudaredist which libcublas.so.12`",
    ),
    (lambda o: o.demangle and o.symbol is None, "--demangle requires --symbol", ["--demangle"]),
)


@command(WhichOptions, REFUSED)
def which(options: WhichOptions, session: Session) -> int:
    """Find the packages that provide a file, a soname or a symbol.

    Examples:

        cudaredist which libcublas.so.12
        cudaredist which --symbol cublasLtMatmul
        cudaredist which libcudart.so.13 --cuda 13.0 --platform linux-x86_64

    Lists the package, output and release of every match in the feature files. Libraries of the
    driver and the system are marked. --cuda limits the search to that CUDA release, and to
    archives of other redistributables that are usable with it. NVIDIA's archives and wheels are
    searched, and each row names its kind. The exit code is 1 if no local package provides the file,
    and 3 if archives that may have it were not examined.
    """
    from cudaredist.commands.which.search import Search
    from cudaredist.commands.which.text import which_text

    index = session.open_index(options.data, options.cache_dir)
    names = options.redist or ()
    redists = [redist.name for redist in find_redists(names)] if names else []
    usable = None
    if options.cuda is not None:
        from cudaredist.sets.usable import usable_by_channel

        usable = usable_by_channel(options.cuda, index.stores)
    search = Search(index, redists, options.platform, usable)
    if options.symbol is None:
        from cudaredist.commands.which.find_providers import find_providers

        report = find_providers(options.name or "", search)
    else:
        from cudaredist.commands.which.find_symbols import find_symbols
        from cudaredist.tables.symbols.symbol_pattern import SymbolPattern

        pattern = SymbolPattern(options.symbol, demangle=options.demangle)
        report = find_symbols(pattern, search)
    return session.finish(report, partial(which_text, is_grouped=not options.all))
