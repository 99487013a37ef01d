"""The names of headers by GCC and a plain reader, which have nothing in common with libclang."""

import re
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_token = re.compile(r"[A-Za-z_]\w*|\"(?:[^\"\\]|\\.)*\"|[0-9][\w.]*|\S")
_marker = re.compile(r"# \d+ \"([^\"]*)\"")
_define = re.compile(r"#define (\w+)(\(?)[^\n]*?\)?(?: (.*))?$")
_is_word = re.compile(r"[A-Za-z_]\w*").fullmatch
_error = re.compile(r"^(.+?):(\d+):(?:\d+:)? (?:fatal )?error:", re.MULTILINE)
_RECORDS = frozenset({"struct", "union"})
_KEYWORDS = frozenset({"char", "double", "float", "inline", "int", "long", "short", "void"})
_ATTRIBUTE = "__attribute__"
_DECORATIONS = ("__attribute__", "__declspec", "extern", "static", "inline", "__inline", "__host__")

_SAME = "template<class A, class B> struct same; template<class A> struct same<A, A> {};"


@dataclass
class HeaderText:
    """The names that may be declared in a header's own lines."""

    macros: set[str] = field(default_factory=set)
    """Macros with a value or parameters."""
    words: dict[str, str] = field(default_factory=dict)
    """Words outside of parentheses and structs, with `struct`, `union` or `enum` before them."""
    fields: set[tuple[str, str]] = field(default_factory=set)
    """Structs with the words that end a declaration in them."""


class Compiler:
    """GCC with some folders of headers."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._include = [f"-I{folder}" for folder in folders]

    def wrong_lines(
        self, header: str, lines: Sequence[str], language: str = "c"
    ) -> set[int] | None:
        """Return the lines with an error, from 0. None: the header itself has one."""
        text = "\n".join([f'#include "{header}"', _SAME if language == "c++" else "", *lines])
        standard = "-std=gnu++17" if language == "c++" else "-std=gnu17"
        options = ["-fsyntax-only", "-w", "-fmax-errors=0", "-fno-diagnostics-show-caret"]
        # An error in a name that a macro gives belongs to the line that uses the macro.
        options += ["-ftrack-macro-expansion=0"]
        result = self._run(["-x", language, standard, *options], text)
        errors = _error.findall(result.stderr)
        if any(file != "<stdin>" or int(line) < 3 for file, line in errors):
            return None
        return {int(line) - 3 for _, line in errors}

    def text(self, header: str, path: Path) -> HeaderText:
        """Return the names in a header's own lines. `path` is its file."""
        source = f'#include "{header}"\n'
        result = self._run(["-x", "c", "-std=gnu17", "-E", "-dD"], source)
        own: list[str] = []
        is_own = False
        for line in result.stdout.splitlines():
            marker = _marker.match(line)
            if marker:
                is_own = Path(marker[1]) == path
            elif is_own:
                own.append(line)
        found = HeaderText()
        for line in own:
            define = _define.match(line)
            if define and (define[2] or (define[3] and not define[3].startswith(_DECORATIONS))):
                found.macros.add(define[1])
            undefined = re.match(r"#undef (\w+)", line)
            if undefined:
                found.macros.discard(undefined[1])
        code = "\n".join(line for line in own if not line.startswith("#"))
        _read_block(_token.findall(code), 0, found)
        return found

    def _run(self, arguments: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["gcc", *arguments, *self._include, "-"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )


def _read_block(tokens: Sequence[str], start: int, found: HeaderText) -> int:
    """Read declarations up to the brace that closes, and return its position."""
    position, kind, tag = start, "", ""
    while position < len(tokens):
        text = tokens[position]
        if text == "}":
            return position
        if text in {"(", "["}:
            end = _end(tokens, position)
            if "*" in tokens[position + 1 : position + 3]:  # a pointer to a function
                found.words |= dict.fromkeys(filter(_is_word, tokens[position:end]), "")
            position = end
        elif text == "{":
            if kind in _RECORDS:
                members: set[str] = set()
                position = _read_record(tokens, position + 1, found, members)
                # The name of an unnamed struct follows.
                name = tag or next(_words_until_semicolon(tokens, position + 1), "")
                found.fields |= {(name, member) for member in members if name}
            elif kind == "enum":
                end = _end(tokens, position)
                found.words |= dict.fromkeys(filter(_is_word, tokens[position:end]), "")
                position = end
            else:  # the body of a function
                position = _end(tokens, position)
            kind = ""
        elif text == ";":
            kind = ""
        elif text in _RECORDS or text == "enum":
            kind, tag = text, ""
        elif _is_word(text) and text != _ATTRIBUTE:
            found.words.setdefault(text, "")
            if kind:
                tag = text
                found.words[text] = kind
        position += 1
    return position


def _read_record(tokens: Sequence[str], start: int, found: HeaderText, members: set[str]) -> int:
    """Read the members of a struct, and return the position of the brace that closes it."""
    position, last, kind, tag = start, "", "", ""
    while position < len(tokens) and tokens[position] != "}":
        text = tokens[position]
        if text == "{":
            inner: set[str] = set()
            if kind == "enum":
                end = _end(tokens, position)
                found.words |= dict.fromkeys(filter(_is_word, tokens[position:end]), "")
                position = end
            else:
                position = _read_record(tokens, position + 1, found, inner)
                found.fields |= {(tag, member) for member in inner if tag}
                if tokens[position + 1 : position + 2] == [";"]:
                    members |= inner
            last, kind = "", ""
        elif text == "(" and tokens[position + 1 : position + 2] == ["*"]:
            last = next(filter(_is_word, tokens[position + 1 :]), "")
            position = _end(tokens, position)
            if tokens[position + 1 : position + 2] == ["("]:
                position = _end(tokens, position + 1)
        elif text in {"(", "["}:
            position = _end(tokens, position)
        elif text in {";", ",", ":"}:
            members |= {last} - {""}
            last = "" if text == ";" else last
            while text == ":" and tokens[position + 1] not in {";", ","}:
                position += 1
            kind = "" if text == ";" else kind
        elif text in _RECORDS or text == "enum":
            kind, tag = text, ""
        elif _is_word(text) and text != _ATTRIBUTE:
            tag = text if kind and not tag else tag
            last = text
            found.words |= {tag: kind} if kind and tag else {}
        position += 1
    return position


def _words_until_semicolon(tokens: Sequence[str], start: int) -> Iterator[str]:
    for text in tokens[start:]:
        if text == ";":
            return
        if _is_word(text):
            yield text


def _end(tokens: Sequence[str], start: int) -> int:
    """Return the position of the bracket that closes the one at `start`."""
    depth = 0
    for position in range(start, len(tokens)):
        depth += tokens[position] in {"(", "[", "{"}
        depth -= tokens[position] in {")", "]", "}"}
        if depth == 0:
            return position
    return len(tokens)


def declared(compiler: Compiler, header: str, words: Mapping[str, str]) -> set[str] | None:
    """Return the words that a header declares, without macros. None: unknown.

    `words` has the kind of each tag. A type without a definition, which is only announced, does not
    count.
    """
    lines: list[str] = []
    names: list[str] = []
    for name, kind in sorted(words.items()):
        # GCC would skip the line after the one with an attribute.
        if name in _KEYWORDS or name == _ATTRIBUTE:
            continue
        # GCC reports an unknown name of an expression only once, so a type is first.
        types = [f"extern char tag_{name}[sizeof({kind} {name})];"] if kind else []
        types += [] if kind else [f"extern {name} *use_{name};"]
        types.append(f"extern char size_{name}[sizeof({name})];")
        lines += types
        names += [name] * len(types)
    wrong = compiler.wrong_lines(header, lines)
    if wrong is None:
        return None
    return {name for line, name in enumerate(names) if line not in wrong}


def fields_of(
    compiler: Compiler, header: str, pairs: Collection[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return the fields that exist after a header, of pairs of struct and field."""
    ordered = sorted(pairs)
    lines = [
        f"typedef decltype((({parent} *)0)->{name}) use_{number};"
        for number, (parent, name) in enumerate(ordered)
    ]
    wrong = compiler.wrong_lines(header, lines, "c++")
    return set() if wrong is None else {ordered[line] for line in set(range(len(lines))) - wrong}


def functions_of_types(
    compiler: Compiler, header: str, signatures: Sequence[tuple[str, str]]
) -> set[str] | None:
    """Return the functions that have a type after a header, of pairs of name and declaration.

    Those with overloads count as such. None: the header does not compile.
    """
    lines = [
        f"same<decltype(&{name}), {signature.replace(f'{name}(', '(*)(', 1)}> use_{number};"
        for number, (name, signature) in enumerate(signatures)
    ]
    # The address of a function with overloads has no type.
    lines += (f"typedef decltype(&{name}) address_{name};" for name, _ in signatures)
    wrong = compiler.wrong_lines(header, lines, "c++")
    if wrong is None:
        return None
    count = len(signatures)
    return {
        name
        for line, (name, _) in enumerate(signatures)
        if line not in wrong or line + count in wrong
    }
