"""The message of an error, as the loader, CUDA or a Python package prints it."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from cudaredist.errors import UsageError
from cudaredist.formats.library_policy import LibraryPolicy
from cudaredist.hints import again
from cudaredist.programs.library_names import NAME_LIMIT
from cudaredist.programs.program import Catalog
from cudaredist.sets.library_names import DRIVER_OWNERS, find_external, stem_of
from cudaredist.store.facts_index import Index
from cudaredist.tables.symbols.symbol_pattern import SymbolPattern, is_symbol
from cudaredist.wheel_projects import other_project

SIZE_LIMIT = 1_000_000
"""Maximum bytes of a message."""
EXAMPLE = "undefined symbol: ncclAlltoAll"
Names: TypeAlias = tuple[str, ...]
Item = TypeVar("Item")

_COUNT = 20
"""Symbols and libraries that are looked up."""
_find_symbols = re.compile(
    r"(?:undefined symbol|undefined reference to|cannot find symbol|symbol)\W{1,3}(\w+)"
).findall
# Each match begins at the beginning of a word, and never returns to a part of one. A search that
# tries every letter again takes hours for a line of a megabyte.
_find_users = re.compile(r"(?<![^\s/:'\"])([^\s/:'\"]++): undefined symbol").findall
_find_files = re.compile(r"(?<![\w+-])([\w+-]++)(\.so(?:\.[0-9]+)*)\b").findall
_find_absent = re.compile(
    r"(?<![\w+-])(lib[\w+-]++\.so[.0-9]*+): cannot open shared object"
    r"|(?:not found(?: at)?:?|binary at) ([^\s:]{1,500})"
).findall
_find_library = re.compile(r"\blib[\w+-]").search
_is_version = re.compile(r"[\w.]*").fullmatch
_find_capabilities = re.compile(
    r"\b(?:(?:sm|compute)_(\d{1,3})(\d)|(?:capability|capabilities) (\d{1,3})\.(\d))"
).findall
_without_supported = partial(
    re.compile(r"supports CUDA capabilities(?: (?:sm|compute)_[0-9]{2,3}[af]?){1,99}").sub, ""
)
"""Leaves out the GPUs that torch supports, after the one that it does not support."""
_is_compiler = re.compile(
    r"Unsupported gpu architecture|is not defined for option 'gpu-name'"
    r"|invalid value for --gpu-architecture",
    re.IGNORECASE,
).search
_is_word = re.compile(r"\w{4,}").fullmatch
_is_gpu = re.compile(
    r"no kernel image|NoKernelImage|NO_BINARY_FOR_GPU|is not compatible with the current"
    r"|kernel image is invalid|no longer supports this GPU"
).search
_is_driver = re.compile(
    r"driver version is insufficient|InsufficientDriver|driver on your system is too old"
    r"|forward compatibility was attempted|no supported devices found for platform CUDA"
    r"|CUDA driver initialization failed|could not find cuda drivers",
    re.IGNORECASE,
).search
_is_mixed_driver = re.compile(
    r"unsupported display driver|SystemDriverMismatch|driver/library version mismatch",
    re.IGNORECASE,
).search
_is_ptx = re.compile(
    r"unsupported toolchain|UNSUPPORTED_?PTX_?VERSION|unsupported \.version", re.IGNORECASE
).search
_find_ptx = re.compile(
    r"unsupported \.version ([0-9]{1,3}\.[0-9]{1,3}); "
    r"current version is '([0-9]{1,3}\.[0-9]{1,3})'",
    re.IGNORECASE,
).search
_find_dlls = re.compile(r"(?<![\w+-])[\w+-]++\.dll\b", re.IGNORECASE).findall
_PRODUCT = r"(cu[A-Za-z]{2,20}|nv[A-Za-z]{2,20}|NCCL)\b"
_find_unloaded = re.compile(
    rf"unable to load {_PRODUCT}|The {_PRODUCT} library was not found"
    r"|lib(NVVM) cannot be found",
    re.IGNORECASE,
).findall
_is_libdevice = re.compile(r"find libdevice|libdevice[^.\n]{0,60} not found", re.IGNORECASE).search
_find_older = re.compile(rf"newer version of {_PRODUCT}").findall
_find_needed = re.compile(
    r"(?<![\w+-])(lib[\w+-]++)\.so[.0-9]*+ is too old; it is version [.0-9]{1,20}, "
    r"need at least (?:version )?([0-9]{1,9}(?:\.[0-9]{1,9}){0,4})"
).findall
_find_compiled_with = re.compile(
    r"Loaded runtime CuDNN library: [.0-9]{1,20} but source was compiled with: "
    r"([0-9]{1,9}(?:\.[0-9]{1,9}){0,4})"
).findall
_find_runtime = re.compile(
    r"compiled\s{1,9}against \(([0-9]{1,9}), ([0-9]{1,9}), ([0-9]{1,9})\) but found runtime version"
).findall
"""Of torch, about cuDNN."""
_is_mixed_cudnn = re.compile(r"SUBLIBRARY_VERSION_MISMATCH").search
_find_statuses = re.compile(r"\b(CU[A-Z]{2,20})_STATUS_[A-Z]").findall
_is_dnn = re.compile(r"DNN library initialization failed|Could not create cudnn handle").search
_find_torch_symbols = re.compile(
    r"undefined symbol: (_ZNK?(?:3c10|2at|5torch|6caffe2)\w{1,4000})"
).findall
_find_supported = re.compile(r"found version (\d{4,6})").findall
_SCALE = 1000
"""CUDA encodes 12.2 as 12020."""


class LibraryClaim(NamedTuple):
    """A library that does not load, or that is too old."""

    names: Names
    """Its known names, of all versions."""
    least: str | None = None
    """The required version."""
    is_old: bool = False
    """Whether the loaded one is too old."""


class ErrorMessage(NamedTuple):
    """The known names in the message of an error."""

    symbols: dict[str, Names]
    """Symbols, with the libraries that export them in any release."""
    libraries: tuple[Names, ...]
    """Names of libraries. Those of one library are alternatives."""
    users: Names
    """Names of the files with undefined symbols."""
    is_gpu: bool
    """Whether the device code does not run on the GPU."""
    is_driver: bool
    """Whether the driver is too old."""
    capabilities: Names
    """Capabilities of GPUs."""
    supported: str | None
    """The CUDA minor that the driver supports, if the message has it."""
    claims: tuple[LibraryClaim, ...] = ()
    """Libraries that do not load or are too old."""
    is_mixed_cudnn: bool = False
    """Whether the loaded libraries of cuDNN are of several versions."""
    torch_symbols: Names = ()
    """Undefined symbols of torch."""
    is_ptx: bool = False
    """Whether the driver does not compile PTX."""
    ptx: tuple[str, str] | None = None
    """The version of the PTX, and the newest one that the driver compiles."""
    is_mixed_driver: bool = False
    """Whether the driver's library and kernel module are of different versions."""
    is_compiler: bool = False
    """Whether a compiler does not know the GPU."""
    driver_symbols: Names = ()
    """Symbols with names like those of the driver."""
    others: Names = ()
    """Libraries of others that are not found. An environment may not explain them."""
    statuses: tuple[Names, ...] = ()
    """The known names of the libraries whose functions return a status code."""

    @property
    def is_known(self) -> bool:
        """Whether it has any known name or error. Libraries of others are not known."""
        return any(value not in ((), {}, None, False) for value in self._replace(others=()))


def parse_message(text: str, index: Index, catalog: Catalog, policy: LibraryPolicy) -> ErrorMessage:
    """Return the known names in a message.

    Raises `UsageError` if it is empty or too large.
    """
    if not text.strip():
        raise UsageError("--error: the message is empty", hint=f"run `{again(error=EXAMPLE)}`")
    if len(text.encode(errors="replace")) > SIZE_LIMIT:
        message = f"--error: the message is larger than {SIZE_LIMIT:,} bytes"
        hint = f"run `{again(error=EXAMPLE)}` with the last lines of the message"
        raise UsageError(message, hint=hint)
    named: list[str] = _find_symbols(text)
    # A message of one word may be a symbol alone.
    if _is_word(text.strip()):
        named.append(text.strip())
    symbols: dict[str, Names] = {}
    driver_symbols: list[str] = []
    for name in _first(filter(is_symbol, named)):
        sonames = index.exporting(SymbolPattern(name))
        if sonames:
            symbols[name] = sonames
        elif _is_driver_symbol(name, policy):
            driver_symbols.append(name)
    users = _first(filter(_is_shared_object, _find_users(text)))
    libraries: dict[str, list[str]] = {}
    others = []
    absent = {*_absent_files(text)}
    for name in _first(_libraries_in(text)):
        is_known = catalog.has_family(name) or _is_of_driver(name, policy)
        is_known |= other_project(name) is not None
        if is_known and not (symbols and name in users):
            libraries.setdefault(stem_of(name), []).append(name)
        elif not is_known and name in absent:
            others.append(name)
    supported = [_cuda_of(number) for number in _find_supported(text)]
    versions = _find_ptx(text)
    return ErrorMessage(
        symbols=symbols,
        libraries=tuple(map(tuple, libraries.values())),
        users=users,
        is_gpu=_is_gpu(text) is not None,
        is_driver=_is_driver(text) is not None,
        capabilities=_first(
            f"{sm_major or major}.{sm_minor or minor}"
            for sm_major, sm_minor, major, minor in _find_capabilities(_without_supported(text))
        ),
        supported=supported[0] if supported else None,
        claims=tuple(_claims(text, catalog)),
        is_mixed_cudnn=_is_mixed_cudnn(text) is not None,
        torch_symbols=_first(_find_torch_symbols(text)),
        is_ptx=_is_ptx(text) is not None,
        ptx=None if versions is None else (versions[1], versions[2]),
        is_mixed_driver=_is_mixed_driver(text) is not None,
        is_compiler=_is_compiler(text) is not None,
        driver_symbols=tuple(driver_symbols),
        others=tuple(others),
        statuses=tuple(_statuses(text, catalog)),
    )


def _claims(text: str, catalog: Catalog) -> Iterator[LibraryClaim]:
    """Yield the libraries that do not load, or are too old."""
    needed = [(stem, version) for stem, version in _find_needed(text)]
    needed += (("libcudnn", version) for version in _find_compiled_with(text))
    needed += (("libcudnn", ".".join(numbers)) for numbers in _find_runtime(text))
    older = [(f"lib{name}", None) for name in _find_older(text)]
    for stem, version in _first([*needed, *older]):
        if names := catalog.named_like(stem):
            yield LibraryClaim(names, version, is_old=True)
    unloaded = ["".join(names) for names in _find_unloaded(text)]
    # The packages with NVVM also contain libdevice.
    unloaded += ["nvvm"] if _is_libdevice(text) else []
    for name in _first(unloaded):
        if names := catalog.named_like(f"lib{name}"):
            yield LibraryClaim(names)


def _statuses(text: str, catalog: Catalog) -> Iterator[Names]:
    """Yield the names of each library with a status code. That of mixed files is known better."""
    products = [] if _is_mixed_cudnn(text) else [*_find_statuses(text)]
    products += ["cudnn"] if _is_dnn(text) else []
    for product in _first(map(str.lower, products)):
        if names := catalog.named_like(f"lib{product}"):
            yield names


def _first(names: Iterable[Item]) -> tuple[Item, ...]:
    """Return the first different items."""
    return tuple(dict.fromkeys(names))[:_COUNT]


def _is_shared_object(name: str) -> bool:
    """Check if a file has the name of a library, perhaps with a version or a part of it."""
    stem, suffix, version = name.rpartition(".so")
    is_name = bool(stem) and bool(suffix) and len(name) <= NAME_LIMIT
    return is_name and _is_version(version) is not None


def _libraries_in(text: str) -> Iterator[str]:
    """Yield the names of libraries in a text."""
    for word, suffix in _find_files(text):
        start = _find_library(word)
        if start is not None and len(word) + len(suffix) <= NAME_LIMIT:
            yield word[start.start() :] + suffix
    yield from (name for name in _find_dlls(text) if len(name) <= NAME_LIMIT)


def _absent_files(text: str) -> Iterator[str]:
    """Yield the names of files that are not found."""
    for name, path in _find_absent(text):
        yield name or path.rpartition("/")[2].rstrip("').,\"")


def _is_of_driver(name: str, policy: LibraryPolicy) -> bool:
    external = find_external(name, policy)
    return external is not None and external.owner == "driver"


def _is_driver_symbol(name: str, policy: LibraryPolicy) -> bool:
    """Check if a symbol is named like a function of the driver, such as `cuMemcpyBatchAsync`."""
    beginnings = (
        beginning
        for entry in policy.external
        if entry.owner in DRIVER_OWNERS
        for beginning in entry.symbols
    )
    return any(fnmatchcase(name, f"{beginning}*") for beginning in beginnings)


def _cuda_of(number: str) -> str:
    """Return the CUDA minor for its number, such as 12.2 for 12020."""
    major, rest = divmod(int(number), _SCALE)
    return f"{major}.{rest // 10}"
