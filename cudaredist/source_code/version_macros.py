"""The macros of CUDA's headers and compiler that state a release."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cudaredist.source_code.api import Api, History
from cudaredist.source_code.branches import ReleaseMacros, has_version
from cudaredist.source_code.conditions import Macro
from cudaredist.source_code.read_code import Definition

_NAMES = frozenset(
    ("CUDA_VERSION", "CUDART_VERSION", "__CUDACC_VER_MAJOR__", "__CUDACC_VER_MINOR__")
)


@dataclass(frozen=True)
class _Headers:
    """The headers of one release."""

    histories: Mapping[str, History]
    bit: int

    def __call__(self, name: str) -> int | None:
        """Return whether a header exists, None if it is unknown."""
        history = self.histories.get(name)
        if history is None or not history.known & self.bit:
            return None
        return int(bool(history.present & self.bit))


def release_macros(api: Api, more: Iterable[Definition] = ()) -> list[ReleaseMacros]:
    """Return the macros of each release. `more` are macros of the source."""
    by_name: dict[str, list[Definition]] = defaultdict(list)
    for definition in more:
        by_name[definition.name].append(definition)
    macros = []
    for label in api.releases:
        bit = api.bit(label)
        major, minor = (*label.components, 0)[:2]
        version = Macro([str(1000 * major + 10 * minor)])
        known: dict[str, Macro | None] = {
            "CUDA_VERSION": version,
            "CUDART_VERSION": version,
            "__CUDACC_VER_MAJOR__": Macro([str(major)]),
            "__CUDACC_VER_MINOR__": Macro([str(minor)]),
        }

        for name, definitions in by_name.items():
            own = [one.macro for one in definitions if one.context.releases & bit]
            if all(macro == own[0] for macro in own):
                known[name] = own[0] if own else None
        macros.append(ReleaseMacros(bit, known, _Headers(api.headers, bit)))
    return macros


def dependent_macros(definitions: Sequence[Definition], every: int) -> list[Definition]:
    """Return the macros of a source that depend on the release, with all their definitions.

    Such a macro is defined for some releases only, or its value has a macro of CUDA.
    """
    by_name: dict[str, list[Definition]] = defaultdict(list)
    users: dict[str, set[str]] = defaultdict(set)
    for definition in definitions:
        if definition.name not in _NAMES:
            by_name[definition.name].append(definition)
            for word in definition.macro.body:
                users[word].add(definition.name)
    pending = [name for known in _NAMES for name in users[known]]
    pending += (
        name
        for name, parts in by_name.items()
        if all(part.context.releases != every for part in parts)
    )
    return [part for name in _with_users(pending, users) for part in by_name[name]]


def composed_macros(definitions: Sequence[Definition]) -> frozenset[str]:
    """Return the macros with unknown values, since they form names or take any arguments."""
    users: dict[str, set[str]] = defaultdict(set)
    pending = []
    for name, macro, _ in definitions:
        if "#" in macro.body or "..." in (macro.parameters or ()):
            pending.append(name)
        for word in macro.body:
            users[word].add(name)
    return frozenset(_with_users(pending, users))


def _with_users(names: Iterable[str], users: Mapping[str, Iterable[str]]) -> list[str]:
    """Return macros with those whose replacements use them."""
    found: dict[str, None] = {}
    pending = [*names]
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = None
            pending += users.get(name, ())
    return [*found]


def doubtful_macros(definitions: Sequence[Definition]) -> frozenset[str]:
    """Return the macros of a source whose values have an unknown version, such as NPP_VERSION."""
    return frozenset(
        one.name
        for one in definitions
        if any(has_version(word) and word not in _NAMES for word in one.macro.body)
    )


def pasted_parameters(definitions: Iterable[Definition]) -> dict[tuple[str, int], int]:
    """Return the parameters of macros that only form other names or strings, with the releases.

    An example is the first parameter of `#define CALL(function) pointer_##function`.
    """
    pasted: dict[tuple[str, int], int] = defaultdict(int)
    plain: dict[tuple[str, int], int] = defaultdict(int)
    for name, macro, context in definitions:
        for number, parameter in enumerate(macro.parameters or ()):
            places = [at for at, word in enumerate(macro.body) if word == parameter]
            uses = [
                {*macro.body[max(0, at - 1) : at], *macro.body[at + 1 : at + 2]} for at in places
            ]
            is_pasted = bool(uses) and all("#" in neighbors for neighbors in uses)
            (pasted if is_pasted else plain)[name, number] |= context.releases
    return {key: releases & ~plain[key] for key, releases in pasted.items()}
