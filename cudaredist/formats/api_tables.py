"""Model of the tables of APIs: the public names in a package's headers, by release."""

from collections.abc import Iterator
from typing import Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from cudaredist.formats.base import OwnFile, OwnModel, optional
from cudaredist.formats.declarations import declaration
from cudaredist.formats.field_types import InnerPath, Label
from cudaredist.formats.names import Channel, RedistName
from cudaredist.formats.symbol_tables import ArchiveKey, ReleaseRanges
from cudaredist.primitives import API_NAME_PATTERN

ApiPackage = Annotated[
    str, Field(pattern=API_NAME_PATTERN, description="A package, such as `cuda_cudart`")
]
_RELEASES = (
    "One text for each provider with its releases: labels and ranges such as `12.0.1..12.4.1`, "
    "separated by spaces. `*`: all releases. Empty: none. Absent: all releases of all providers"
)


class ApiProvider(OwnModel):
    """The archives of a package with these headers, on one platform."""

    channel: Channel
    redist: RedistName
    platform: str
    variant: str | None = optional("Absent: none")
    releases: dict[Label, ArchiveKey] = Field(description="The archive of each release")


class ApiForm(NamedTuple):
    """One form of a name: its declaration in some releases."""

    kind: str
    """`function`, `struct`, `union`, `enum`, `field`, `enumerator`, `typedef`, `variable` or
    `macro`; in C++ `name`."""
    name: str
    parent: str
    """The struct, union or enum. Empty for others."""
    signature: str
    """The declaration as in C, or only the name."""
    symbol: str
    """The function that a name stands for, such as `cuMemAlloc_v2` for the macro `cuMemAlloc`."""
    deprecated: str | None
    """The note of a deprecation, empty if it has none. None: not deprecated."""


class ApiGroup(OwnModel):
    """Names of a header that the same releases have, in the same form."""

    releases: ReleaseRanges = optional(_RELEASES, ())
    functions: dict[str, str] = optional(
        "Type of each function, such as `cudaError_t (void **devPtr, size_t size)`", {}
    )
    types: dict[str, str] = optional("`struct`, `union` or `enum`, by name", {})
    fields: dict[str, dict[str, str]] = optional(
        "Type of each field, by struct. Fields of an unnamed struct or union in it have a path, "
        "such as `handle.fd`",
        {},
    )
    enumerators: dict[str, dict[str, str]] = optional(
        "Value of each enumerator, by enum. The name of an unnamed enum is empty", {}
    )
    typedefs: dict[str, str] = optional("Type of each typedef", {})
    variables: dict[str, str] = optional("Type of each variable", {})
    macros: dict[str, str] = optional(
        "Value of each macro, or its parameters, such as `(x, y)`. Empty: the value is not an "
        "interface, such as that of a version",
        {},
    )
    names: str = optional(
        "Names of a header that only compiles as C++: its functions, classes, templates, enums, "
        "typedefs and variables outside of classes, sorted, separated by spaces",
        "",
    )
    symbols: dict[str, str] = optional(
        "The function in the library, by the name that a macro gives it: `cuMemAlloc_v2` by "
        "`cuMemAlloc`",
        {},
    )
    deprecated: dict[str, str] = optional(
        "Note of each deprecated name, empty if it has none. Fields are `struct.field`", {}
    )

    def forms(self) -> Iterator[ApiForm]:
        """Yield the forms of all names, those of types after functions and variables."""
        notes, symbols = self.deprecated, self.symbols
        for name, text in self.functions.items():
            signature = declaration(text, name)
            symbol = symbols.get(name, name)
            yield ApiForm("function", name, "", signature, symbol, notes.get(name))
        for name, text in self.variables.items():
            signature = declaration(text, name)
            yield ApiForm("variable", name, "", signature, "", notes.get(name))
        yield from self._types()
        for name, text in self.macros.items():
            space = "" if text.startswith("(") or not text else " "
            yield ApiForm("macro", name, "", f"{name}{space}{text}", "", notes.get(name))
        for name in self.names.split():
            yield ApiForm("name", name, "", name, "", notes.get(name))

    def _types(self) -> Iterator[ApiForm]:
        notes = self.deprecated
        for name, kind in self.types.items():
            yield ApiForm(kind, name, "", f"{kind} {name}", "", notes.get(name))
        for parent, fields in self.fields.items():
            for name, text in fields.items():
                signature = declaration(text, name.rpartition(".")[2])
                note = notes.get(f"{parent}.{name}")
                yield ApiForm("field", name, parent, signature, "", note)
        for parent, values in self.enumerators.items():
            for name, value in values.items():
                note = notes.get(name)
                yield ApiForm("enumerator", name, parent, f"{name} = {value}", "", note)
        for name, text in self.typedefs.items():
            signature = f"typedef {declaration(text, name)}"
            yield ApiForm("typedef", name, "", signature, "", notes.get(name))


class UnreadHeader(OwnModel):
    """The releases in which a header does not parse."""

    releases: ReleaseRanges = optional(_RELEASES, ())
    reason: str = Field(description="The first error of the parser")


class ApiHeader(OwnModel):
    """A header: the releases that have it, and the names that it declares."""

    releases: ReleaseRanges = optional(_RELEASES, ())
    groups: tuple[ApiGroup, ...] = optional("Absent: no names", ())
    unread: tuple[UnreadHeader, ...] = optional("Absent: it parses in all releases", ())


class ApiTable(OwnFile):
    """`api/<package>.json`: the functions, types, variables and macros of a package's headers."""

    package: ApiPackage
    providers: tuple[ApiProvider, ...]
    headers: dict[InnerPath, ApiHeader] = Field(
        description="By path below the folder of headers, as in `#include`"
    )

    @model_validator(mode="after")
    def _check_releases(self) -> Self:
        """Refuse groups with other providers or releases than the table has."""
        for header in self.headers.values():
            self._check(header.releases)
            for group in header.groups:
                self._check(group.releases)
            for unread in header.unread:
                self._check(unread.releases)
        return self

    def _check(self, releases: ReleaseRanges) -> None:
        if releases and len(releases) != len(self.providers):
            raise ValueError(f"{len(releases)} providers, not {len(self.providers)}")
        for text, provider in zip(releases, self.providers, strict=False):
            for label in text.replace("..", " ").split() if text != "*" else ():
                if label not in provider.releases:
                    raise ValueError(f"{provider.redist} has no release {label}")
