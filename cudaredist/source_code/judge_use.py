"""Compare a use of the API with the forms of its name in the requested releases."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, cached_property
from typing import Literal, NamedTuple, TypeAlias

from cudaredist.source_code.api import Api, Form, History, Parameter, argument_changes
from cudaredist.source_code.declarations import Declarations, Includes
from cudaredist.source_code.read_code import CodeFile, Interest, Use, is_other_name

Certainty: TypeAlias = Literal["sure", "perhaps", "deprecated"]
Fit: TypeAlias = Literal["yes", "no", "unknown"]
ChangeKind: TypeAlias = Literal["removed", "added later", "changed", "deprecated"]

_is_nvidia_name = re.compile(r"_*(?:cu|nv|npp|NV|CU|NPP|LIBRARY_|surface|texture)", re.ASCII).match
"""Matches names with a prefix of NVIDIA. Another library can have other names, too."""
_is_literal = re.compile(r"[0-9][\w.']*").fullmatch
_RUNTIME = "cuda"
"""The beginning of the names of the runtime. Others have no default values."""
_OVERLOADED = frozenset({"cudaGraphInstantiate", "cudaGraphExecUpdate", "cudaMemcpyBatchAsync"})
"""Changed functions that cuda_runtime.h declares with other parameters, too, in C++."""
_INTEGERS = frozenset(
    [
        "int",
        "unsigned",
        "short",
        "long",
        "size_t",
        "int32_t",
        "int64_t",
        "uint32_t",
        "uint64_t",
        "Int32",
        "Int64",
        "CUdevice",
        "cudaDevice_t",
        "device_t",
        "bool",
        "char",
    ]
)
_CCCL = "cuda_cccl"
_OWN_RELEASES = ("nvtx3/", "CL/")
"""Folders with the headers of libraries that have releases of their own."""
_UNUSED = frozenset(("attic", "dead", "deadcode", "disabled", "obsolete", "unused"))
"""Folders with code that is not compiled."""
_DEVICES = frozenset(
    {"CU_DEVICE_CPU", "CU_DEVICE_INVALID", "cudaCpuDeviceId", "cudaInvalidDeviceId"}
)
"""Macros with the number of a device."""
_BEST_FIRST: Sequence[Fit] = ("yes", "no", "unknown")


class Change(NamedTuple):
    """The difference between a use and the requested releases."""

    kind: ChangeKind
    certainty: Certainty
    name: str
    releases: int
    """The requested releases in which the use does not compile, or is deprecated."""
    since: int
    """The release that made the change. 0: the first one."""
    old: Form
    """The form of the use."""
    new: Form | None
    """The form in the last of these releases. None: they do not have the name."""
    reason: str
    """Why it is not sure. Empty: it is."""
    advice: str
    """What to write instead. Empty: unknown."""


class Tree(NamedTuple):
    """The facts of all files of a source."""

    own: Declarations
    """The names of the API that the source itself declares."""
    members: AbstractSet[str]
    """The names of fields that it declares."""
    types: AbstractSet[str]
    """The types that it mentions."""
    includes: Includes
    pasted: Mapping[tuple[str, int], int]
    """The parameters of macros that only form other names, with the releases."""


class Judge:
    """Judges uses of an API by some requested releases."""

    def __init__(self, api: Api, requested: int) -> None:
        self.api, self.requested = api, requested

    @cached_property
    def interest(self) -> Interest:
        """The names that differ between the requested releases and others."""
        names = {name for name, history in self.api.names.items() if self._differs(history)}
        fields = {name for (_, name), history in self.api.fields.items() if self._differs(history)}
        structs = {key[0] for key, history in self.api.fields.items() if self._differs(history)}
        headers = {name for name, history in self.api.headers.items() if self._differs(history)}
        types = {
            parameter.type_name
            for name in names
            for form in self.api.names[name].forms
            if form.has_parameters
            for parameter in form.parameters
            if parameter.type_name in self.api.names
        }
        return Interest(names, fields, headers, types | structs)

    def _differs(self, history: History) -> bool:
        """Check if uses of a name may not fit all requested releases."""
        if (history.missing | history.deprecated) & self.requested:
            return True
        return _has_several(form for form in history.forms if form.has_parameters)

    def changes(self, use: Use, file: CodeFile, tree: Tree) -> Iterator[Change]:
        """Yield the changes that concern a use."""
        releases = self.requested & use.context.releases
        if use.argument_of is not None:
            releases &= ~tree.pasted.get(use.argument_of, 0)
        if not releases or _is_own_header(use, file, tree):
            return
        if use.kind == "field":
            yield from self._field_changes(use, file, tree, releases)
            return
        histories = self.api.headers if use.kind == "header" else self.api.names
        history = histories.get(use.name)
        if history is None:
            return
        doubt = self._doubt(use, file, tree, history)
        missing = history.missing & releases
        if missing:
            yield self._missing(history, missing, doubt)
        deprecated = history.deprecated & releases
        if deprecated:
            yield self._deprecated(history, deprecated)
        if use.arguments is not None:
            yield from self._signature_changes(use, file, tree, history, releases & ~missing, doubt)

    def _doubt(self, use: Use, file: CodeFile, tree: Tree, history: History) -> str:
        """Return why a use may not matter, or empty text."""
        declared = tree.own.releases(use.name, file.path)
        is_declared = declared & use.context.releases & self.requested
        doubts = {
            "the file is read as plain text": use.kind == "text",
            "the source declares this name itself": is_declared,
            "another branch of the same condition uses it or an alternative": _has_sibling(
                use, file
            ),
            "the source has a file of this name": use.kind == "header"
            and tree.includes.has_header(use.name),
            "it is not called here": use.kind == "name" and self._is_function(use.name),
            "another library may have this name": _is_of_others(use, history),
        }
        doubt = next((doubt for doubt, is_true in doubts.items() if is_true), "")
        return doubt or _doubt_of_place(use, file)

    def _is_function(self, name: str) -> bool:
        return any(form.kind == "function" for form in self.api.names[name].forms)

    def _missing(self, history: History, missing: int, doubt: str) -> Change:
        """Return the change of a name that some requested releases do not have."""
        last = self.api.labels(missing)[-1]
        before = history.present & (self.api.bit(last) - 1)
        kind: ChangeKind = "removed" if before else "added later"
        form = self._form_at(history, before) if before else self._form_at(history, history.present)
        certainty: Certainty = "perhaps" if doubt else "sure"
        advice = self._replacement(form) if before else ""
        newest = self.api.bit(last)
        if before:
            since = lowest(history.missing & ~((1 << before.bit_length()) - 1))
        else:
            since = lowest(history.present & ~(2 * newest - 1))
        return Change(kind, certainty, form.title, missing, since, form, None, doubt, advice)

    def _deprecated(self, history: History, releases: int) -> Change:
        form = self._form_at(history, releases)
        since = _first_of_run(history.deprecated, releases)
        note = form.deprecated or ""
        title = form.title
        return Change("deprecated", "deprecated", title, releases, since, form, form, "", note)

    def _form_at(self, history: History, releases: int) -> Form:
        """Return the form of the newest of some releases."""
        newest = 1 << (releases & history.present).bit_length() - 1
        return next(form for form in history.forms if form.releases & newest)

    def _replacement(self, form: Form) -> str:
        """Return what to write instead of a removed name, as far as its header states it."""
        if form.kind == "field" and form.parent == "cudaDeviceProp":
            attribute = f"cudaDevAttr{form.name[0].upper()}{form.name[1:]}"
            if attribute in self.api.names:
                return f"call cudaDeviceGetAttribute with {attribute}"
        return form.deprecated or ""

    def _field_changes(
        self, use: Use, file: CodeFile, tree: Tree, releases: int
    ) -> Iterator[Change]:
        """Yield the change of a field, for the struct of the variable or of the file."""
        types = file.variables.get(use.owner or "", set())
        known = self.api.fields_by_name.get(use.name, ())
        doubt = _doubt_of_place(use, file)
        structs = [history for name, history in known if name in types]
        if not structs:
            if types or _has_other_type(use.owner, file):
                return  # a variable of another struct
            structs = [history for name, history in known if name in file.types]
            if use.name in tree.members:
                doubt = "the source declares a field of this name itself"
        if not structs:
            doubt = "the type of the variable is unknown"
            # Other structs can have fields with the names of new ones.
            structs = [history for _, history in known if self._is_removed(history, releases)]
        # If one of the structs still has the field, the use may be right.
        missing = deprecated = releases if structs else 0
        for history in structs:
            missing &= history.missing
            deprecated &= history.deprecated
        if missing:
            yield self._missing(structs[0], missing, doubt)
        elif deprecated and not doubt:
            yield self._deprecated(structs[0], deprecated)

    def _is_removed(self, history: History, releases: int) -> bool:
        """Check if some of the releases do not have a name of earlier ones."""
        missing = history.missing & releases
        return bool(missing and history.present & (missing - 1) & ~releases)

    def _signature_changes(
        self, use: Use, file: CodeFile, tree: Tree, history: History, releases: int, doubt: str
    ) -> Iterator[Change]:
        """Yield the change of a function whose call does not fit the requested releases."""
        functions = [form for form in history.forms if form.has_parameters]
        if not _has_several(functions):
            return
        call = _Call(use.arguments or (), file, tree, self.api)
        certain = uncertain = 0
        for form in functions:
            own = form.releases & releases
            # Several headers of a release can have several forms.
            forms = [one for one in functions if one is form or one.releases & own]
            fits = {call.fit(one, functions) for one in forms} if own else {"yes"}
            if fits == {"no"}:
                certain |= own
            elif "yes" not in fits:
                uncertain |= own
        if certain:
            yield self._changed(history, functions, call, certain, doubt)
        elif uncertain:
            doubt = doubt or "the types of the arguments are unknown"
            yield self._changed(history, functions, call, uncertain, doubt)

    def _changed(
        self,
        history: History,
        functions: Sequence[Form],
        call: "_Call",
        releases: int,
        doubt: str,
    ) -> Change:
        new = self._form_at(history, releases)
        others = [form for form in functions if _types(form) != _types(new)]
        accepting = [form for form in others if call.is_accepted_by(form)]
        old = max(accepting or others, key=lambda form: form.releases)
        certainty: Certainty = "perhaps" if doubt else "sure"
        advice = argument_changes(old, new)
        since = _first_of_run(new.releases, releases)
        return Change("changed", certainty, new.title, releases, since, old, new, doubt, advice)


class _Call:
    """The arguments of a call."""

    def __init__(
        self, arguments: Sequence[Sequence[str]], file: CodeFile, tree: Tree, api: Api
    ) -> None:
        self._arguments, self._file, self._tree, self._api = arguments, file, tree, api
        self._is_c = file.path.lower().endswith(".c")
        """Whether it is C, which has neither default values nor overloads."""

    def is_accepted_by(self, form: Form) -> bool:
        """Check if a function takes this number of arguments."""
        parameters, count = form.parameters, len(self._arguments)
        if any(parameter.text == "..." for parameter in parameters):
            return count >= len(parameters) - 1
        if count >= len(parameters) or self._is_c:
            return count == len(parameters)
        return all(_has_default(parameter, form) for parameter in parameters[count:])

    def fit(self, form: Form, functions: Iterable[Form]) -> Fit:
        """Check if the call fits a form of its function, which can have other forms."""
        if not self.is_accepted_by(form):
            is_overloaded = not self._is_c and form.name in _OVERLOADED
            return "unknown" if is_overloaded else "no"
        fits: set[Fit] = set()
        for other in functions:
            if other is form or not self.is_accepted_by(other):
                continue
            parameters = zip(self._arguments, form.parameters, other.parameters, strict=False)
            fits |= {
                self._compare(argument, own, before)
                for argument, own, before in parameters
                if own.type != before.type
            }
        # One argument that only this form takes is enough.
        return next((fit for fit in _BEST_FIRST if fit in fits), "yes")

    def _compare(self, argument: Sequence[str], own: Parameter, other: Parameter) -> Fit:
        """Check if an argument has the type of a parameter, and not that of another form."""
        fit = self._has_type(argument, own)
        if fit == "unknown" and self._has_type(argument, other) == "no":
            return "yes"
        return fit

    def _has_type(self, argument: Sequence[str], parameter: Parameter) -> Fit:
        """Check if an argument has the type of a parameter."""
        name, type_name = argument[-1] if argument else "", parameter.type_name
        is_struct = "*" not in parameter.type and self._api.is_struct(type_name)
        if type_name in argument or (is_struct and argument[:1] == ("{",)):
            return "yes"
        if type_name in self._file.variables.get(name, ()):
            return "yes"
        if not is_struct:
            return "unknown"
        # Without the name of its type, the source has no value of a struct.
        if type_name not in self._tree.types:
            return "no"
        return "no" if _is_integer(argument, self._file) else "unknown"


def _has_default(parameter: Parameter, form: Form) -> bool:
    """Check if a last parameter has a default value in C++. The tables do not state them."""
    is_optional = parameter.type == "cudaStream_t" or parameter.name == "flags"
    return form.name.startswith(_RUNTIME) and (is_optional or parameter.name.endswith("_out"))


def _has_other_type(name: str | None, file: CodeFile) -> bool:
    """Check if a variable is declared with a type of another platform, such as HIP."""
    return name is not None and any(map(is_other_name, file.words_before.get(name, ())))


def _is_integer(argument: Sequence[str], file: CodeFile) -> bool:
    """Check if an argument is a number, or a variable or pointer that is only declared as one."""
    *sign, name = argument or ("",)
    if sign in ([], ["-"]) and (_is_literal(name) or name in _DEVICES):
        return True
    if sign not in ([], ["*"]) or not name.isidentifier():
        return False
    types = file.words_before.get(name, set())
    return bool(types) and types <= _INTEGERS


def _is_own_header(use: Use, file: CodeFile, tree: Tree) -> bool:
    """Check if an include is about a file in the folder of the file."""
    folder = file.path.rpartition("/")[0]
    path = f"{folder}/{use.name}" if folder else use.name
    return use.kind == "header" and use.is_quoted and tree.includes.has_file(path)


def _doubt_of_place(use: Use, file: CodeFile) -> str:
    """Return why code may not be compiled, or empty text."""
    if use.context.is_doubtful:
        return "a macro of the build selects this code"
    return "its folder has the name of code that is not compiled" if _is_unused(file.path) else ""


def _is_unused(path: str) -> bool:
    """Check if a folder of a file contains code that is not compiled, by its name."""
    return not _UNUSED.isdisjoint(path.lower().split("/")[:-1])


def _is_of_others(use: Use, history: History) -> bool:
    """Check if other libraries can have a name, such as the headers of OpenCL.

    Projects can use a release of CCCL or NVTX of their own.
    """
    headers = [use.name] if use.kind == "header" else [form.header for form in history.forms]
    if all(header.startswith(_OWN_RELEASES) for header in headers):
        return True
    if use.kind == "header":
        return any(form.package == _CCCL for form in history.forms)
    return not _is_nvidia_name(use.name)


def _has_sibling(use: Use, file: CodeFile) -> bool:
    """Check if another branch of an unknown condition uses the same name or an alternative."""
    return any(
        file.branches_of_names[use.name, condition] != {branch}
        for condition, branch in use.context.branches
    )


def lowest(releases: int) -> int:
    """Return the first of some releases."""
    return releases & -releases


def _first_of_run(releases: int, selected: int) -> int:
    """Return the first of the releases without a gap before the last selected one.

    0: it is the first one of all.
    """
    first = 1 << (releases & selected).bit_length() - 1
    while first > 1 and releases & first >> 1:
        first >>= 1
    return 0 if first == 1 else first


def _has_several(functions: Iterable[Form]) -> bool:
    """Check if functions differ in the types of their parameters."""
    return len(set(map(_types, functions))) > 1


@cache
def _types(form: Form) -> tuple[str, ...]:
    return tuple(parameter.type for parameter in form.parameters)
