"""explain WORD: find the subject of a word by its form.

Each subject has a line in `FORMS`. The forms that need no data are tried first. If several of them
match, the first one is the answer, and the others are listed as candidates.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, get_args

from cudaredist.cli.options import Data
from cudaredist.cli.session import Session, open_cache
from cudaredist.commands.explain.explain_api import is_api_name
from cudaredist.commands.explain.explain_package import package_names
from cudaredist.errors import UnknownNameError, UsageError
from cudaredist.formats.names import Channel
from cudaredist.formats.tables import Gpus
from cudaredist.hints import quoted
from cudaredist.primitives import Version, find_release, parse_label
from cudaredist.redists import CUDA
from cudaredist.similar_names import misspelled_names, typed_release
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index
from cudaredist.store.layered_tables import require_layered
from cudaredist.store.locate import channels_to_read
from cudaredist.store.table_registry import GPU_TABLE, NVCC_TABLE
from cudaredist.tables.explain_compiler import is_compiler
from cudaredist.tables.explain_jetpack import parse_jetson
from cudaredist.tables.gpus.gpu_names import capabilities_called
from cudaredist.tables.symbols.symbol_pattern import SymbolPattern
from cudaredist.wheel_projects import METAPACKAGES, package_of_project
from cudaredist.words import shown

_OLDEST_DRIVER = 100
"""The branches of drivers have three digits, the releases of CUDA have two."""
_is_version = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})*").fullmatch
_is_target = re.compile(
    r"(sm|compute|lto)_?[0-9]{2,3}[af]?|[0-9]{2,3}[af]|[0-9]{1,2}\.[0-9][af]", re.IGNORECASE
).fullmatch
_is_series = re.compile(
    r"(geforce|rtx|gtx|quadro|tesla|titan|jetson) ?[0-9a-z ]*", re.IGNORECASE
).fullmatch
_is_project = re.compile(r"nvidia-.+|.+-cu[0-9]+").fullmatch
_is_file = re.compile(
    r".*([/*]|\.(so|dll|a|lib|h|hpp|cuh|hxx|pc|cmake|exe|bc|fatbin)(\.|\Z)).*"
).fullmatch
_set_file = re.compile(r"(.*\.json)(?:\s+(\S+))?").fullmatch
"""Matches the file of a package set, and a package of it if there is one."""
_has_form_of_name = re.compile(r"[A-Za-z_]\w{3,}(\.[\w.]+)?").fullmatch
_is_symbol = re.compile(r"[A-Za-z_]\w{3,}").fullmatch


class Facts:
    """The data that recognizes words. Each part is read when it is first needed."""

    def __init__(self, session: Session, data: Data, cache_dir: Path | None) -> None:
        self._session, self._data, self._cache_dir = session, data, cache_dir

    @cached_property
    def _store(self) -> Store:
        return self._session.read_store(self._data, is_channel_used=False, with_unexamined=True)

    @cached_property
    def gpus(self) -> Gpus:
        """The table of GPUs."""
        return require_layered(self._store, GPU_TABLE).table

    @cached_property
    def cuda_releases(self) -> tuple[Version, ...]:
        """The CUDA releases of the manifests and of the table of host compilers."""
        releases = {
            label
            for layer in (self._store, self._store.base)
            if layer is not None
            for channel in get_args(Channel)
            for label in Store(layer.root, channel).manifests(CUDA).labels()
        }
        releases.update(map(parse_label, require_layered(self._store, NVCC_TABLE).table.releases))
        return tuple(sorted(releases))

    @cached_property
    def packages(self) -> frozenset[str]:
        """The names of packages, products and projects."""
        return package_names(self._index)

    @cached_property
    def _index(self) -> Index:
        channels = channels_to_read(self._store, self._data.channel)
        store = self._store.of_channel(channels[0])
        progress = self._session.progress("indexing")
        return Index(store, open_cache(self._cache_dir), progress, channels)

    def products_with(self, release: str) -> list[str]:
        """Return the products with a release."""
        index = self._index
        names = index.redists()
        return [name for name in names if find_release(release, index.labels(name)) is not None]

    def declares(self, name: str) -> bool:
        """Check if headers declare a name."""
        return is_api_name(name, self._index)

    def exports(self, symbol: str) -> bool:
        """Check if a library exports a symbol."""
        return bool(self._index.exporting(SymbolPattern(symbol)))


class Form(NamedTuple):
    """The form of the words of one subject."""

    title: str
    """The subject with its article."""
    command: str
    """The command that answers."""
    name_of: Callable[[str, Facts], str | None]
    """Returns the name to pass to the command, or None for other words."""


class Meaning(NamedTuple):
    """A subject that a word can mean."""

    form: Form
    name: str

    @property
    def call(self) -> str:
        """The command that answers, in the form of a shell."""
        file = _set_file(self.name)
        words = [word for word in file.groups() if word] if file else [self.name]
        return " ".join(["cudaredist", self.form.command, *map(quoted, words)])


def _set(text: str, _: Facts) -> str | None:
    return text if _set_file(text) else None


def _compiler(text: str, _: Facts) -> str | None:
    return text if is_compiler(text) else None


def _jetpack(text: str, _: Facts) -> str | None:
    name = parse_jetson(text)
    return name.version if name and name.subject == "jetpack" else None


def _l4t(text: str, _: Facts) -> str | None:
    name = parse_jetson(text)
    return name.version if name and name.subject == "l4t" else None


def _driver(text: str, _: Facts) -> str | None:
    match = re.fullmatch(r"[rRvV]?([0-9]{3}(\.[0-9]{1,9}){0,2})", text)
    return match[1] if match and int(match[1][:3]) > _OLDEST_DRIVER else None


def _release(text: str, facts: Facts) -> str | None:
    """Return the release in `cuda@12.9`, or the newest one for `cuda` and `cuda-toolkit`."""
    product, _, label = text.lower().partition("@")
    if METAPACKAGES.get(product, product) != CUDA:
        return None
    return label or str(facts.cuda_releases[-1])


def _version(text: str, facts: Facts) -> str | None:
    label = typed_release(text)
    is_known = _is_version(label) and find_release(label, facts.cuda_releases) is not None
    return label if is_known else None


def _capability(text: str, facts: Facts) -> str | None:
    # A wrong target, such as sm_95, is still one of a GPU.
    if _is_target(text):
        return text
    is_known = _is_version(text) is not None and _is_gpu(text, facts)
    return text if is_known else None


def _file(text: str, _: Facts) -> str | None:
    return text if _is_file(text) and "@" not in text else None


def _gpu(text: str, facts: Facts) -> str | None:
    return text if _is_series(text) or _is_gpu(text, facts) else None


def _is_gpu(text: str, facts: Facts) -> bool:
    try:
        capabilities_called(text, facts.gpus)
    except UsageError:
        return False
    return True


def _package(text: str, facts: Facts) -> str | None:
    """Return the package, with the release in `cudnn 9.10` and `cudnn@9.10`."""
    name = re.sub(r"(?<!\s)\s+v?(?=[0-9])", "@", text.lower(), count=1)
    typed, at, release = name.partition("@")
    package = package_of_project(typed)
    if typed in facts.packages or (_is_project(typed) and package in facts.packages):
        return name
    # `cublas` and `nvtx` are libcublas and cuda_nvtx.
    return f"{package}{at}{release}" if package in facts.packages else None


def _symbol(text: str, facts: Facts) -> str | None:
    return text if _is_symbol(text) and facts.exports(text) else None


def _api(text: str, facts: Facts) -> str | None:
    return text if _has_form_of_name(text) and facts.declares(text) else None


_CUDA = Form("a CUDA release", "explain cuda", _version)
_PACKAGE = Form("a package", "explain package", _package)
_FILE = Form("a file", "which", _file)
_SYMBOL = Form("a symbol", "which --symbol", _symbol)
_UNKNOWN_FILE = Form("not a known name, so it is searched as a file", "which", _file)
_UNKNOWN_SYMBOL = Form("not a known name, so it is searched as a symbol", "which --symbol", _symbol)
_EXAMPLES = {
    "gpu": "gpu T4",
    "driver": "driver 580.95",
    "jetpack": "jetpack 6.2",
    "l4t": "l4t 36.4.3",
    "package": "package libcublas",
    "set": "set --help",
    "api": "api cudaMalloc",
}
"""Example calls for a subject without a name."""
FORMS = (
    Form("a package set", "explain set", _set),
    Form("a compiler", "explain nvcc", _compiler),
    Form("a release of JetPack", "explain jetpack", _jetpack),
    Form("a release of Jetson Linux", "explain l4t", _l4t),
    Form("a driver", "explain driver", _driver),
    Form("a CUDA release", "explain cuda", _release),
    _CUDA,
    Form("a GPU", "explain gpu", _capability),
    _FILE,
)
"""Forms that are recognized without the index, the likeliest first."""

NAMES = (
    Form("a GPU", "explain gpu", _gpu),
    _PACKAGE,
    _SYMBOL,
    Form("a name of an API", "explain api", _api),
)
"""Forms that are recognized by their names. The first one that matches is the answer."""


def meanings_of(text: str, facts: Facts, subjects: Sequence[str]) -> Sequence[Meaning]:
    """Return the subjects that a word can mean, the likeliest first.

    A word of no known form is a file, such as the name of a program. Raises `UsageError` for an
    unknown version, a misspelled name, and several words of no known form.
    """
    if not text.strip():
        hint = "name a GPU, CUDA release or library, such as `cudaredist explain T4`"
        raise UsageError("explain requires a word", hint=hint)
    if text.lower() in _EXAMPLES:
        hint = f"run `cudaredist explain {_EXAMPLES[text.lower()]}`"
        raise UsageError(f"the subject {text} requires a name", hint=hint)
    meanings = list(_meanings(FORMS, text, facts)) or list(_meanings(NAMES, text, facts))[:1]
    if meanings:
        return meanings
    release = typed_release(text)
    if _is_version(release):
        products = [Meaning(_PACKAGE, f"{name}@{release}") for name in facts.products_with(release)]
        # Without any, the answer lists the nearest releases of CUDA.
        return products or [Meaning(_CUDA, release)]
    first, *more = text.lower().split()
    likely = misspelled_names(first, subjects) if more else ()
    if likely:
        call = " ".join(map(quoted, ["cudaredist", "explain", likely[0], *more]))
        known = ", ".join(map(repr, subjects))
        raise UsageError(f"{shown(first)} is not one of {known}.", hint=f"run `{call}`")
    similar = misspelled_names(text.lower(), facts.packages)
    if similar:
        raise UnknownNameError("subject", text, facts.packages, similar)
    if more:
        hint = "use one name, such as `cudaredist explain libcublas.so.12`"
        raise UsageError(f"{shown(text)} is not a known name", hint=hint)
    is_symbol = _is_symbol(text) and re.search(r"[a-z][A-Z]|_v[0-9]", text)
    return [Meaning(_UNKNOWN_SYMBOL if is_symbol else _UNKNOWN_FILE, text)]


def _meanings(forms: Sequence[Form], text: str, facts: Facts) -> Iterator[Meaning]:
    """Yield the meanings of a word in the order of some forms."""
    for form in forms:
        name = form.name_of(text, facts)
        if name is not None:
            yield Meaning(form, name)
