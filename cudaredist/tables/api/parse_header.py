"""Read the names of C headers with libclang.

A header is parsed alone, as C, for Linux on x86_64. Only its own declarations count, not those of
headers that it includes. A header that only compiles as C++ gives the names of its functions,
classes, enums and typedefs outside of classes.
"""

import ctypes
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from clang import cindex

from cudaredist.formats.api_tables import declaration
from cudaredist.tables.api.header_forms import Declared, HeaderForms

# libclang has no types.
_Cursor: TypeAlias = Any
_Type: TypeAlias = Any
_Unit: TypeAlias = Any

_Kind = cindex.CursorKind
_OPTIONS = (
    cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
    | cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES
)
_PLATFORM = ("-target", "x86_64-unknown-linux-gnu", "-nostdinc", "-w", "-ferror-limit=0")
_LANGUAGES = {"c": ("-x", "c", "-std=gnu17"), "c++": ("-x", "c++", "-std=gnu++17")}
_RECORDS = {_Kind.STRUCT_DECL: "struct", _Kind.UNION_DECL: "union"}
_CPP_NAMES = frozenset(
    {
        _Kind.CLASS_DECL,
        _Kind.CLASS_TEMPLATE,
        _Kind.ENUM_DECL,
        _Kind.FUNCTION_DECL,
        _Kind.FUNCTION_TEMPLATE,
        _Kind.STRUCT_DECL,
        _Kind.TYPEDEF_DECL,
        _Kind.TYPE_ALIAS_DECL,
        _Kind.TYPE_ALIAS_TEMPLATE_DECL,
        _Kind.UNION_DECL,
    }
)
_NOTE_LIMIT = 160
_VALUE_LIMIT = 80
_DEPTH_LIMIT = 16
"""Structs inside each other."""

_unnamed = re.compile(r"(?:struct |union |enum )?\((?:unnamed|anonymous)[^()]*\)")
_undefined = re.compile(r"^[ \t]*#[ \t]*undef[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_is_version = re.compile(
    r"(?:.*_)?(?:VERSION|VER|MAJOR|MINOR|PATCH|PATCHLEVEL|BUILD|REVISION|SUFFIX|UPDATE)(?:_.*)?"
).fullmatch
_is_decoration = re.compile(
    r"(?:__attribute__|__declspec|__inline|inline|extern|static|__host__|__device__|__global__"
    r"|__forceinline|__restrict)\b"
).match
_is_word = re.compile(r"[A-Za-z_]\w*").fullmatch
_marked = re.compile(r"[\\@]deprecated\b[\s:*]*(.*?)(?:\n[\s*]*\n|[\\@]|\*/|$)", re.DOTALL)
_stated = re.compile(r"\bDeprecated\b[.,:]?\s*(.*?)(?:\*/|$)", re.DOTALL)
_is_private = re.compile(r"_|.*\b(?:details?|impl|internal)\b", re.IGNORECASE).match


class HeaderParser:
    """Parses the headers of a folder."""

    def __init__(self, folder: Path, include: Iterable[Path]) -> None:
        """`include` are all folders to search for headers, in order."""
        self._folder = folder
        self._include = [argument for path in include for argument in ("-I", str(path))]
        self._index = cindex.Index.create(excludeDecls=True)
        self._roots = tuple(f"{path}/" for path in include)

    def parse(self, header: str) -> HeaderForms:
        """Return the names of a header, by its path in the folder."""
        unit = self._unit(header, "c")
        error = self._error_of(unit)
        if not error:
            names = _CNames(unit, self._is_defined(header, "c"))
            return HeaderForms(tuple(names.declared()))
        unit = self._unit(header, "c++")
        if self._error_of(unit):
            return HeaderForms(error=error)
        names = _CNames(unit, self._is_defined(header, "c++"))
        return HeaderForms((*names.macros(), *_cpp_names(unit)))

    def _unit(self, header: str, language: str, more: str = "") -> _Unit:
        arguments = [*_LANGUAGES[language], *_PLATFORM, *self._include]
        path = str(self._folder / header)
        files = None
        if more:
            files = [(str(self._folder / "probe.h"), f'#include "{header}"\n{more}')]
            path = str(self._folder / "probe.h")
        return self._index.parse(path, arguments, files, _OPTIONS)

    def _error_of(self, unit: _Unit) -> str:
        """Return the first error of a header, without the paths of this machine."""
        for included in unit.get_includes():
            if not str(included.include.name).startswith(self._roots):
                return "includes a file outside of the packages"
        for diagnostic in unit.diagnostics:
            if diagnostic.severity >= cindex.Diagnostic.Error:
                file = diagnostic.location.file
                name = "" if file is None else str(file.name)
                for root in self._roots:
                    name = name.removeprefix(root)
                return f"{name}:{diagnostic.location.line}: {diagnostic.spelling}"
        return ""

    def _is_defined(self, header: str, language: str) -> frozenset[str]:
        """Return the macros that a header undefines again."""
        text = (self._folder / header).read_text("utf-8", "replace")
        names = sorted(set(_undefined.findall(text)))
        if not names:
            return frozenset()
        probes = "\n".join(f"#ifdef {name}\nint probe_{name};\n#endif" for name in names)
        unit = self._unit(header, language, probes)
        defined = {cursor.spelling.removeprefix("probe_") for cursor in unit.cursor.get_children()}
        return frozenset(names) - defined


class _CNames:
    """The names that the main file of a unit declares."""

    def __init__(self, unit: _Unit, undefined: frozenset[str]) -> None:
        self._undefined = undefined
        self._all = list(unit.cursor.get_children())
        self._own = [cursor for cursor in self._all if _is_own(cursor)]
        self._names: dict[int, str] = {}
        """The typedefs that name unnamed structs and enums, by the hash of the declaration."""
        for cursor in self._own:
            if cursor.kind == _Kind.TYPEDEF_DECL:
                of = cursor.underlying_typedef_type.get_declaration()
                if _is_unnamed(of):
                    self._names.setdefault(of.hash, cursor.spelling)

    def declared(self) -> Iterator[Declared]:
        """Yield all names."""
        for cursor in self._own:
            if cursor.kind == _Kind.FUNCTION_DECL:
                text, note = _function_type(cursor), _deprecation(cursor)
                yield Declared("functions", "", cursor.spelling, text, "", note)
            elif cursor.kind in _RECORDS and cursor.is_definition():
                yield from self._record(cursor)
            elif cursor.kind == _Kind.ENUM_DECL and cursor.is_definition():
                yield from self._enum(cursor)
            elif cursor.kind == _Kind.TYPEDEF_DECL:
                yield from self._typedef(cursor)
        yield from self.macros()

    def _name_of(self, cursor: _Cursor) -> str:
        """Return a type's tag, or the typedef that names it. Empty: unnamed."""
        if _is_unnamed(cursor):
            return self._names.get(cursor.hash, "")
        return str(cursor.spelling)

    def _record(self, cursor: _Cursor) -> Iterator[Declared]:
        name = self._name_of(cursor)
        if name:
            note = _deprecation(cursor)
            yield Declared("types", "", name, _RECORDS[cursor.kind], "", note)
            yield from self._fields(cursor, name, "", 0)

    def _fields(self, cursor: _Cursor, parent: str, path: str, depth: int) -> Iterator[Declared]:
        """Yield the fields of a struct or union, and the types that it declares."""
        if depth > _DEPTH_LIMIT:
            return
        members = list(cursor.get_children())
        fields = [member for member in members if member.kind == _Kind.FIELD_DECL]
        of_fields: set[int] = set()
        for member in fields:
            of = _element(member.type).get_declaration()
            field_path, text = f"{path}{member.spelling}", _field_type(member, of)
            if _is_unnamed_record(of):
                of_fields.add(of.hash)
                yield from self._fields(of, parent, f"{field_path}.", depth + 1)
            if member.spelling:
                note = _deprecation(member, in_words=True)
                yield Declared("fields", parent, field_path, text, "", note)
        for member in members:
            if _is_unnamed_record(member):
                if member.hash not in of_fields:
                    yield from self._fields(member, parent, path, depth + 1)
            elif member.kind in _RECORDS and member.is_definition():
                yield from self._record(member)
            elif member.kind == _Kind.ENUM_DECL:
                yield from self._enum(member)

    def _enum(self, cursor: _Cursor) -> Iterator[Declared]:
        name = self._name_of(cursor)
        if name:
            yield Declared("types", "", name, "enum", "", _deprecation(cursor))
        for one in cursor.get_children():
            if one.kind == _Kind.ENUM_CONSTANT_DECL:
                note = _deprecation(one, in_words=True)
                yield Declared("enumerators", name, one.spelling, str(one.enum_value), "", note)

    def _typedef(self, cursor: _Cursor) -> Iterator[Declared]:
        of = cursor.underlying_typedef_type
        declared = of.get_declaration()
        is_name = of.kind == cindex.TypeKind.ELABORATED and (
            self._names.get(declared.hash) == cursor.spelling
            or declared.spelling == cursor.spelling
        )
        if not is_name:
            yield Declared("typedefs", "", cursor.spelling, _text_of(of), "", _deprecation(cursor))

    def macros(self) -> Iterator[Declared]:
        """Yield the macros, except those without a value and those of declarations."""
        functions: dict[str, _Cursor] | None = None
        last = {
            cursor.spelling: cursor for cursor in self._own if cursor.kind == _Kind.MACRO_DEFINITION
        }
        for name, cursor in last.items():
            if name.startswith("_") or name in self._undefined:
                continue
            tokens = [str(token.spelling) for token in cursor.get_tokens()][1:]
            if cindex.conf.lib.clang_Cursor_isMacroFunctionLike(cursor):
                parameters = tokens[1 : tokens.index(")")] if ")" in tokens else []
                words = [word for word in parameters if word != ","]
                yield Declared("macros", "", name, f"({', '.join(words)})")
                continue
            if not tokens or _is_decoration(tokens[0]):
                continue
            if functions is None:
                functions = {
                    one.spelling: one for one in self._all if one.kind == _Kind.FUNCTION_DECL
                }
            target = _renamed(tokens)
            if target in functions:
                if target != name:
                    function = functions[target]
                    note, text = _deprecation(function), _function_type(function)
                    yield Declared("functions", "", name, text, target, note)
                continue
            value = _joined(tokens)
            is_value = len(value) <= _VALUE_LIMIT and not _is_version(name.upper())
            yield Declared("macros", "", name, value if is_value else "")


def _is_own(cursor: _Cursor) -> bool:
    return bool(cindex.conf.lib.clang_Location_isFromMainFile(cursor.location))


def _is_unnamed(cursor: _Cursor) -> bool:
    return not cursor.spelling or "(" in cursor.spelling


def _is_unnamed_record(cursor: _Cursor) -> bool:
    return cursor.kind in _RECORDS and _is_unnamed(cursor)


def _field_type(field: _Cursor, declared: _Cursor) -> str:
    """Return the type of a field, with its bits. `declared` is the declaration of the type."""
    if _is_unnamed_record(declared):
        return _unnamed.sub(_RECORDS[declared.kind], str(field.type.spelling)).strip()
    text = _text_of(field.type)
    return f"{text} : {field.get_bitfield_width()}" if field.is_bitfield() else text


def _element(of: _Type) -> _Type:
    """Return the type of an array's elements, or the type itself."""
    while of.kind in {cindex.TypeKind.CONSTANTARRAY, cindex.TypeKind.INCOMPLETEARRAY}:
        of = of.element_type
    return of


def _text_of(of: _Type) -> str:
    """Return a type without tags such as `struct`, which C++ and some releases leave out."""
    text = _unnamed.sub("", str(of.spelling))
    return re.sub(r"\b(?:struct|union|enum) (?=\w)", "", text).strip()


def _function_type(cursor: _Cursor) -> str:
    parameters = [
        declaration(_text_of(one.type), one.spelling) if one.spelling else _text_of(one.type)
        for one in cursor.get_arguments()
    ]
    is_known = cursor.type.kind == cindex.TypeKind.FUNCTIONPROTO
    if is_known and cursor.type.is_function_variadic():
        parameters.append("...")
    if is_known and not parameters:
        parameters = ["void"]
    return f"{_text_of(cursor.result_type)} ({', '.join(parameters)})"


def _renamed(tokens: list[str]) -> str:
    """Return the name that a macro stands for, as in `name` or `MACRO(name)`. Empty: none."""
    match tokens:
        case [name]:
            return name
        case [macro, "(", name, ")"] if _is_word(macro) and _is_word(name):
            return name
    return ""


def _joined(tokens: list[str]) -> str:
    """Join the tokens of a value. Two words have a space between them."""
    text = ""
    for token in tokens:
        is_apart = text and (text[-1].isalnum() or text[-1] == "_") and re.match(r"\w", token)
        text += f" {token}" if is_apart else token
    return text


def _deprecation(cursor: _Cursor, *, in_words: bool = False) -> str | None:
    """Return the note of a deprecation, by an attribute or in the comment.

    With `in_words`, the word `Deprecated` in the comment is enough.
    """
    if cursor.availability == cindex.AvailabilityKind.DEPRECATED:
        return _plain(_attribute_message(cursor))
    comment = cursor.raw_comment or ""
    found = _marked.search(comment)
    if found is None and in_words:
        found = _stated.search(comment)
    return None if found is None else _plain(found[1])


def _attribute_message(cursor: _Cursor) -> str:
    library = cindex.conf.lib
    flags = [ctypes.c_int(), ctypes.c_int()]
    texts = [cindex._CXString(), cindex._CXString()]  # noqa: SLF001 - no other access
    library.clang_getCursorPlatformAvailability(
        cursor,
        *chain.from_iterable(
            (ctypes.byref(flag), ctypes.byref(text))
            for flag, text in zip(flags, texts, strict=True)
        ),
        None,
        0,
    )
    return str(library.clang_getCString(texts[0]) or "")


def _plain(text: str) -> str:
    """Return a comment's text in one line, at most one sentence."""
    words = " ".join(re.sub(r"^[\s*/]+", " ", text, flags=re.MULTILINE).split())
    sentence = re.split(r"(?<=[a-z)])\. ", words, maxsplit=1)[0]
    return sentence[:_NOTE_LIMIT].strip()


def _cpp_names(unit: _Unit) -> Iterator[Declared]:
    own = [cursor for cursor in unit.cursor.get_children() if _is_own(cursor)]
    for name in sorted(set(_names_in(own, ""))):
        yield Declared("names", "", name, "")


def _names_in(cursors: Iterable[_Cursor], space: str) -> Iterator[str]:
    for cursor in cursors:
        name = cursor.spelling
        if cursor.kind == _Kind.NAMESPACE:
            inner = f"{space}{name}::" if name else space
            if not _is_private(name or ""):
                yield from _names_in(cursor.get_children(), inner)
        elif cursor.kind in {_Kind.LINKAGE_SPEC, _Kind.UNEXPOSED_DECL}:
            yield from _names_in(cursor.get_children(), space)
        elif cursor.kind in _CPP_NAMES and not _is_unnamed(cursor) and _is_word(name):
            yield f"{space}{name}"
