"""Read the names of C headers with libclang.

Headers are parsed as C, for Linux on x86_64. Only a header's own declarations count, not those of
headers that it includes. A header that only compiles as C++ gives the names of its functions,
classes, enums and typedefs outside of classes.
"""

import ctypes
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from clang import cindex

from cudaredist.formats.declarations import declaration
from cudaredist.tables.api.header_forms import Declared, HeaderForms
from cudaredist.tables.api.include_tree import MAIN_HEADERS

# libclang has no types.
_Cursor: TypeAlias = Any
_Type: TypeAlias = Any
_Parsed: TypeAlias = Any

_Kind = cindex.CursorKind
_KEEP_GOING = 0x200
"""libclang's `CXTranslationUnit_KeepGoing`: read on after a missing file."""
_OPTIONS = cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES | _KEEP_GOING
_WITH_MACROS = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
_PLATFORM = ("-target", "x86_64-unknown-linux-gnu", "-nostdinc", "-w", "-ferror-limit=0")
_LANGUAGES = {"c": ("-x", "c", "-std=gnu17"), "c++": ("-x", "c++", "-std=gnu++17")}
_RECORDS = {_Kind.STRUCT_DECL: "struct", _Kind.UNION_DECL: "union"}
_CPP_NAMES = frozenset(
    {
        _Kind.CLASS_DECL,
        _Kind.CLASS_TEMPLATE,
        _Kind.CONCEPT_DECL,
        _Kind.ENUM_DECL,
        _Kind.FUNCTION_DECL,
        _Kind.FUNCTION_TEMPLATE,
        _Kind.STRUCT_DECL,
        _Kind.TYPEDEF_DECL,
        _Kind.TYPE_ALIAS_DECL,
        _Kind.TYPE_ALIAS_TEMPLATE_DECL,
        _Kind.UNION_DECL,
        _Kind.USING_DECLARATION,
        _Kind.VAR_DECL,
    }
)
_CPP_TYPES = frozenset(
    {
        _Kind.CLASS_DECL,
        _Kind.CLASS_TEMPLATE,
        _Kind.ENUM_DECL,
        _Kind.STRUCT_DECL,
        _Kind.UNION_DECL,
    }
)
_FUNCTIONS = frozenset({_Kind.FUNCTION_DECL})
_SOURCE = "cudaredist-source.h"
"""The file that includes the headers to parse."""
_PROBE = "cudaredist_defines_"
"""The beginning of the names of variables, each for a macro that is defined."""
_NOTE_LIMIT = 160
_VALUE_LIMIT = 80
_DEPTH_LIMIT = 16
"""Structs inside each other."""

_unnamed = re.compile(r"(?:struct |union |enum )?\((?:unnamed|anonymous)[^()]*\)")
_undefined = re.compile(r"^[ \t]*#[ \t]*undef[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_linkage = re.compile(
    r"#[ \t]{0,8}if[^\n]{0,80}__cplusplus[^\n]{0,80}\n\s{0,8}"
    r"(?:extern\s{1,8}\"C\"\s{0,8}\{|\})?[^\n#]{0,80}"
    r"\s{0,8}#[ \t]{0,8}endif"
)
"""`extern "C" {` and its end, only for C++."""
_is_version = re.compile(
    r"(?:.*_)?(?:VERSION|VER|MAJOR|MINOR|PATCH|PATCHLEVEL|BUILD|REVISION|SUFFIX|UPDATE)(?:_.*)?"
).fullmatch
_is_decoration = re.compile(
    r"(?:__attribute__|__declspec|__inline|inline|extern|static|__host__|__device__|__global__"
    r"|__forceinline|__restrict)\b"
).match
_is_cpp = re.compile(
    r".*unknown type name '(?:namespace|template|class|using|constexpr|bool|typename|__device__)'"
).match
"""Matches the error of a C++ header in C."""
_is_word = re.compile(r"[A-Za-z_]\w*").fullmatch
_marked = re.compile(r"[\\@]deprecated\b[\s:*]*(.*?)(?:\n[\s*]*\n|[\\@]|\*/|$)", re.DOTALL)
_stated = re.compile(r"\bDeprecated\b[.,:]?\s*(.*?)(?:\*/|$)", re.DOTALL)
_is_private = re.compile(r"_|(?:.*_)?(?:details?|impl|internal)(?:_.*)?$", re.IGNORECASE).match


class HeaderParser:
    """Parses the headers of a folder."""

    def __init__(self, include: Sequence[Path]) -> None:
        """`include` are the folders to search for headers, in order. The first has the headers."""
        self._folder, self._folders = include[0], include
        self._include = [argument for path in include for argument in ("-I", str(path))]
        self._index = cindex.Index.create()
        self._roots = tuple(f"{path}/" for path in include)
        self._undefined: dict[str, set[str]] = {}
        self._main = [
            name for name in MAIN_HEADERS if any((path / name).is_file() for path in include)
        ]

    def parse(self, headers: Mapping[str, Sequence[str]]) -> dict[str, HeaderForms]:
        """Return the names of headers, by their paths in the folder.

        `headers` has the headers that include each one. Some only parse if one of these includes
        them, or after the main headers of CUDA.
        """
        return {header: self._parse(header, includers) for header, includers in headers.items()}

    def parse_library(self, headers: Mapping[str, Sequence[str]]) -> dict[str, HeaderForms]:
        """Return the names of a C++ library's headers, which are parsed together.

        `headers` has the private headers whose names count as those of each public one.
        """
        unit = self._unit([*self._main, *headers], "c++")
        return {header: self._of_library(unit, header, parts) for header, parts in headers.items()}

    def _of_library(self, unit: "_Unit", header: str, parts: Sequence[str]) -> HeaderForms:
        macros = tuple(self._names(unit, header).macros())
        own = (header, *parts)
        names = sorted({name for path in own for name in _names_in_header(unit, path)})
        error = next(filter(None, map(unit.first_error, own)), "")
        return HeaderForms((*macros, *(Declared("names", "", name, "") for name in names)), error)

    def _parse(self, header: str, includers: Sequence[str]) -> HeaderForms:
        sources = [header]
        unit = self._unit(sources, "c")
        attempts = [*([one] for one in includers), [*self._main, header]]
        while unit.error and not _is_cpp(unit.error) and attempts:
            sources = attempts.pop(0)
            unit = self._unit(sources, "c")
        if unit.error:
            return self._parse_cpp(header)
        declared = tuple(self._names(unit, header).declared())
        if not self._has_cpp(header):
            return HeaderForms(declared)
        known = {one.name for one in declared}
        # Without the header that includes it, cublas_api.h lacks a macro, and `MACRO size_t f();`
        # would declare a variable size_t.
        in_cpp = self._unit(list(dict.fromkeys([*self._main, *sources])), "c++", options=_OPTIONS)
        names = _cpp_names(in_cpp, header)
        return HeaderForms((*declared, *(one for one in names if one.name not in known)))

    def _parse_cpp(self, header: str) -> HeaderForms:
        """Return the names of a header that is not C.

        Without a C++ library and nvcc, some templates have errors, but their names are known.
        """
        unit = self._unit([*self._main, header], "c++")
        names = _cpp_names(unit, header)
        return HeaderForms((*self._names(unit, header).macros(), *names), unit.error)

    def _unit(
        self, sources: Sequence[str], language: str, options: int = _OPTIONS | _WITH_MACROS
    ) -> "_Unit":
        """Parse headers, one after the other."""
        path = str(self._folder / _SOURCE)
        text = "".join(f'#include "{source}"\n' for source in sources)
        probes = "".join(
            f"#ifdef {name}\nint {_PROBE}{name};\n#endif\n"
            for source in sources
            for name in sorted(self._undefined_in(source))
        )
        arguments = [*_LANGUAGES[language], *_PLATFORM, *self._include]
        parsed = self._index.parse(path, arguments, [(path, text + probes)], options)
        return _Unit(parsed, self._roots)

    def _names(self, unit: "_Unit", header: str) -> "_CNames":
        return _CNames(unit, header, self._undefined_in(header))

    def _undefined_in(self, header: str) -> set[str]:
        """Return the macros that a header may undefine."""
        if header not in self._undefined:
            self._undefined[header] = set(_undefined.findall(self._text(header)))
        return self._undefined[header]

    def _has_cpp(self, header: str) -> bool:
        """Check if a C header has more names in C++."""
        return "__cplusplus" in _linkage.sub("", self._text(header))

    def _text(self, header: str) -> str:
        path = next((path / header for path in self._folders if (path / header).is_file()), None)
        return "" if path is None else path.read_text("utf-8", "replace")


class _Unit:
    """Headers that libclang parsed."""

    def __init__(self, parsed: _Parsed, roots: Sequence[str]) -> None:
        self._roots = roots
        self.error = ""
        """The first error, without the paths of this machine."""
        self._errors: dict[str, str] = {}
        self._error_lines: set[tuple[str, int]] = set()
        for included in parsed.get_includes():
            if not str(included.include.name).startswith(tuple(roots)):
                self._add_error(self._name(included.source), "includes a file of another folder")
        for diagnostic in parsed.diagnostics:
            if diagnostic.severity >= cindex.Diagnostic.Error:
                name, text = self._name(diagnostic.location.file), str(diagnostic.spelling)
                for root in roots:
                    text = text.replace(root, "")
                self._add_error(name, text, diagnostic.location.line)
        self.parsed = parsed

    def _add_error(self, name: str, text: str, line: int = 0) -> None:
        place = f"{name}:{line}" if line else name
        error = f"{place}: {text}"[:_NOTE_LIMIT]
        self._error_lines.add((name, line))
        self.error = self.error or error
        self._errors.setdefault(name, error)

    def first_error(self, header: str) -> str:
        """Return the first error in the lines of one header. Empty: none."""
        return self._errors.get(header, "")

    def is_doubtful(self, cursor: _Cursor, header: str) -> bool:
        """Check if a declaration is a variable in a line with an error.

        Without a macro's definition, `MACRO size_t f();` declares a variable size_t.
        """
        place = (header, cursor.location.line)
        return cursor.kind == _Kind.VAR_DECL and place in self._error_lines

    def _name(self, file: Any) -> str:  # noqa: ANN401 - libclang has no types
        """Return the path of a file as in `#include`."""
        name = "" if file is None else str(file.name)
        for root in self._roots:
            name = name.removeprefix(root)
        return posixpath.normpath(name)

    def own(self, header: str) -> list[_Cursor]:
        """Return the declarations in a header."""
        return self._by_file.get(header, [])

    def inside(self, cursor: _Cursor, header: str) -> Iterator[_Cursor]:
        """Yield the declarations in a namespace or `extern "C"`, without those of other headers."""
        own = {_file_address(one) for one in self.own(header)[:1]}
        return (one for one in cursor.get_children() if _file_address(one) in own)

    @cached_property
    def functions(self) -> dict[str, _Cursor]:
        """All functions by name."""
        functions = (one for one in chain(*self._by_file.values()) if one.kind in _FUNCTIONS)
        return {str(one.spelling): one for one in functions}

    @cached_property
    def defined(self) -> frozenset[str]:
        """The macros that are defined at the end, of those that a header undefines somewhere."""
        names = (str(one.spelling) for one in self.own(_SOURCE))
        return frozenset(name.removeprefix(_PROBE) for name in names if name.startswith(_PROBE))

    @cached_property
    def _by_file(self) -> dict[str, list[_Cursor]]:
        """The declarations by file, also those whose name is from a macro."""
        by_address: dict[int | None, list[_Cursor]] = defaultdict(list)
        for cursor in self.parsed.cursor.get_children():
            # Most of the cursors are uses of macros.
            if cursor.kind != _Kind.MACRO_INSTANTIATION:
                by_address[_file_address(cursor)].append(cursor)
        return {self._name(cursors[0].location.file): cursors for cursors in by_address.values()}


def _file_address(cursor: _Cursor) -> int | None:
    """Return libclang's address of a declaration's file, which is quicker than its name."""
    library, file = cindex.conf.lib, cindex.c_object_p()
    where = library.clang_getCursorLocation(cursor)
    library.clang_getInstantiationLocation(where, ctypes.byref(file), None, None, None)
    return ctypes.cast(file, ctypes.c_void_p).value


class _CNames:
    """The names that a header declares."""

    def __init__(self, unit: _Unit, header: str, undefined: AbstractSet[str]) -> None:
        """`undefined` are the macros that the header may undefine again."""
        self._unit, self._undefined = unit, undefined
        self._own = unit.own(header)
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
            elif cursor.kind == _Kind.VAR_DECL:
                text, note = _text_of(cursor.type), _deprecation(cursor)
                yield Declared("variables", "", cursor.spelling, text, "", note)
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
        undefined = self._undefined - self._unit.defined
        functions = self._unit.functions
        last = {
            cursor.spelling: cursor for cursor in self._own if cursor.kind == _Kind.MACRO_DEFINITION
        }
        for name, cursor in last.items():
            if name.startswith("_") or name in undefined:
                continue
            tokens = list(filter(None, map(_token_text, cursor.get_tokens())))[1:]
            if cindex.conf.lib.clang_Cursor_isMacroFunctionLike(cursor):
                parameters = tokens[1 : tokens.index(")")] if ")" in tokens else []
                words = [word for word in parameters if word != ","]
                yield Declared("macros", "", name, f"({', '.join(words)})")
                continue
            if not tokens or _is_decoration(tokens[0]):
                continue
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


def _is_complete(cursor: _Cursor) -> bool:
    """Check if a cursor is not the mere announcement of a type."""
    return cursor.kind not in _CPP_TYPES or bool(cursor.is_definition())


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


def _token_text(token: Any) -> str:  # noqa: ANN401 - libclang has no types
    """Return a token without the end of a continued line."""
    return re.sub(r"\\\s*\n|[^ -~]", "", str(token.spelling)).strip()


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


def _cpp_names(unit: _Unit, header: str) -> Iterator[Declared]:
    """Yield the names of a header outside of classes."""
    for name in sorted(set(_names_in_header(unit, header))):
        yield Declared("names", "", name, "")


def _names_in_header(unit: _Unit, header: str) -> Iterator[str]:
    yield from _names_in(unit, header, unit.own(header), "")


def _names_in(unit: _Unit, header: str, cursors: Iterable[_Cursor], space: str) -> Iterator[str]:
    for cursor in cursors:
        name = cursor.spelling
        if cursor.kind == _Kind.NAMESPACE:
            is_inline = bool(cindex.conf.lib.clang_Cursor_isInlineNamespace(cursor))
            inner = space if is_inline or not name else f"{space}{name}::"
            if is_inline or not _is_private(name or ""):
                yield from _names_in(unit, header, unit.inside(cursor, header), inner)
        elif cursor.kind in {_Kind.LINKAGE_SPEC, _Kind.UNEXPOSED_DECL}:
            yield from _names_in(unit, header, unit.inside(cursor, header), space)
        elif cursor.kind in _CPP_NAMES and _is_word(name) and _is_complete(cursor):
            # Outside of namespaces, names such as __float2half are public, and declarations such as
            # `using std::size_t` only repeat another name.
            is_private = name.startswith("_") if space else cursor.kind == _Kind.USING_DECLARATION
            if not is_private and not unit.is_doubtful(cursor, header):
                yield f"{space}{name}"
