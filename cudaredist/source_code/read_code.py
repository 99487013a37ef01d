"""Uses of an API in a file of C, C++ or CUDA."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple, TypeAlias

from cudaredist.source_code.branches import Branches, Context, Evaluator, is_other_platform
from cudaredist.source_code.conditions import Macro
from cudaredist.source_code.tokens import END_OF_LINE, SourceText, Token, decode
from cudaredist.source_code.work_limit import WorkLimit

UseKind: TypeAlias = Literal["name", "call", "field", "header", "text"]

_pair = re.compile(r"\b([A-Za-z_]\w*)(?=[\s&*]+([A-Za-z_]\w*))", re.ASCII).finditer
_header = re.compile(r"\s*([<\"])([^>\"\n]+)[>\"]").match
_is_other_name = re.compile(r"(?:hip|musa|mu|mc|roc|acl)[A-Z_]\w*", re.ASCII).match
_CONDITIONS = frozenset({"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"})
_TEXT_DIRECTIVES = frozenset({"error", "warning", "pragma", "line", "ident", "region"})
_NOT_TYPES = frozenset(
    [
        "return",
        "throw",
        "else",
        "case",
        "goto",
        "new",
        "delete",
        "sizeof",
        "and",
        "or",
        "not",
        "do",
        "co_return",
        "co_await",
        "co_yield",
        "typeof",
        "decltype",
        "alignof",
        "if",
        "while",
        "for",
        "switch",
        "using",
        "namespace",
        "public",
        "private",
        "protected",
        "in",
    ]
)
"""Names before a use that are not its type in a declaration."""
_QUALIFIERS = frozenset(
    {"const", "volatile", "struct", "restrict", "__restrict__", "&", "*", "&&", ">", ">>"}
)
_AFTER_PARAMETERS = frozenset({"{", ";", "noexcept", "const"})
"""Tokens after the parameters of a declaration."""
_ARGUMENTS_LIMIT = 2_000
"""Tokens of a call that are read."""
_STEPS_OF_TOKEN = 5
"""The work to read a token again."""
_DEFINITION_LIMIT = 200
"""Tokens of a macro that a condition can have."""
_CALL_AROUND_LIMIT = 24
"""Tokens between a name and the beginning of the call around it."""
_TEMPLATE_LIMIT = 64
"""Tokens of a template's arguments that are read."""
_COMPARISONS_LIMIT = 16
"""Comparisons with `<` in a call after which no template is expected."""
_VARIANTS = ("_Ctx", "_64", "_v2", "_v3", "_v4")
"""Ends of the names of functions that a source can use instead of those without them."""
_TEMPLATE_MARKS = frozenset({"<", ">", ">>", "::", ",", "*", "&"})
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())


class Interest(NamedTuple):
    """The parts of an API to search for."""

    names: AbstractSet[str]
    """Functions, types, enumerators and macros."""
    fields: AbstractSet[str]
    headers: AbstractSet[str]
    types: AbstractSet[str]
    """Types whose variables matter."""


class Use(NamedTuple):
    """A use of a name."""

    kind: UseKind
    name: str
    line: int
    context: Context
    arguments: tuple[tuple[str, ...], ...] | None = None
    """The tokens of each argument of a call. None: unknown."""
    owner: str | None = None
    """The variable whose field is used. None: it is an expression."""
    macro: str | None = None
    """The macro with the use in its replacement."""
    is_quoted: bool = False
    """Whether a header is included with quotation marks."""
    argument_of: tuple[str, int] | None = None
    """The call whose argument begins with the name, and the number of the argument, from 0."""


class Definition(NamedTuple):
    """A macro of the file."""

    name: str
    macro: Macro
    context: Context


@dataclass(eq=False)
class CodeFile:
    """The facts of one file."""

    path: str = ""
    text: str = ""
    uses: list[Use] = field(default_factory=list)
    own: dict[str, int] = field(default_factory=dict)
    """The names of the API that the file itself declares, with the releases."""
    members: set[str] = field(default_factory=set)
    """The names of fields that it declares as variables or members."""
    types: set[str] = field(default_factory=set)
    """The types that it mentions."""
    variables: dict[str, set[str]] = field(default_factory=dict)
    """Their variables, with the types of each."""
    alternatives: list[tuple[str, Context]] = field(default_factory=list)
    """Uses of another function or header that can replace a name, such as `nvtx3/nvToolsExt.h`."""
    definitions: list[Definition] = field(default_factory=list)
    """Macros that may depend on the release."""
    condition_names: set[str] = field(default_factory=set)
    """The names in its conditions."""

    @cached_property
    def words_before(self) -> Mapping[str, AbstractSet[str]]:
        """The words before each name, which include the types of variables."""
        words: dict[str, set[str]] = defaultdict(set)
        for match in _pair(self.text):
            words[match[2]].add(match[1])
        return words

    @cached_property
    def branches_of_names(self) -> Mapping[tuple[str, int], AbstractSet[int]]:
        """The branches of each unknown condition that use a name or an alternative to it."""
        branches: dict[tuple[str, int], set[int]] = defaultdict(set)
        uses = ((use.name, use.context) for use in self.uses)
        for name, context in chain(uses, self.alternatives):
            for condition, branch in context.branches:
                branches[name, condition].add(branch)
        return branches


def read_code(data: bytes, interest: Interest, evaluator: Evaluator) -> CodeFile:
    """Return the uses of an API, and the declarations of its names, in a file.

    Raises `TooMuchWorkError` for a hostile file.
    """
    evaluator.work = WorkLimit(len(data))
    reader = _Reader(SourceText(decode(data)), interest, Branches(evaluator))
    reader.read()
    return reader.file


class _Reader:
    def __init__(self, source: SourceText, interest: Interest, branches: Branches) -> None:
        self._source, self._interest, self._branches = source, interest, branches
        self._work = branches.evaluator.work
        self.file = CodeFile(text=source.text)
        self._code: list[Token] = []
        self._contexts: list[Context] = []

    def read(self) -> None:
        """Read all tokens, first those of the directives."""
        directive: list[Token] | None = None
        for token in self._source.tokens():
            if directive is not None:
                if token.text == END_OF_LINE:
                    self._read_directive(directive)
                    directive = None
                else:
                    directive.append(token)
            elif token.kind == "directive":
                directive = []
            else:
                self._code.append(token)
                self._contexts.append(self._branches.context)
        self._read_names(self._code, self._contexts)

    def _read_directive(self, tokens: Sequence[Token]) -> None:
        """Follow a directive, and read the replacement of a macro."""
        if not tokens or tokens[0].kind != "name":
            return
        name, context = tokens[0].text, self._branches.context
        start = tokens[0].start + len(name)
        if name in _CONDITIONS:
            end = tokens[-1].start + len(tokens[-1].text)
            self.file.condition_names.update(t.text for t in tokens[1:] if t.kind == "name")
            self._branches.read(name, self._source.text[start:end])
        elif name.startswith("include") or name == "import":
            header = _header(self._source.rest_of_line(start))
            if header and context.releases:
                self._read_include(header[2], start, context, is_quoted=header[1] == '"')
        elif name == "define" and len(tokens) > 1:
            self._read_definition(tokens[1:], context)
        elif name == "undef" or name in _TEXT_DIRECTIVES:
            return

    def _read_include(self, path: str, start: int, context: Context, *, is_quoted: bool) -> None:
        """Add the use of a header, or of one with the same name in another folder."""
        name = path.rpartition("/")[2]
        if path in self._interest.headers:
            line = self._source.line(start)
            self.file.uses.append(Use("header", path, line, context, is_quoted=is_quoted))
        elif name in self._interest.headers:
            self.file.alternatives.append((name, context))

    def _read_definition(self, tokens: Sequence[Token], context: Context) -> None:
        """Read the macro that a `#define` defines."""
        name, *rest = tokens
        parameters: list[str] | None = None
        if rest and rest[0].text == "(" and rest[0].start == name.start + len(name.text):
            end = next((i for i, token in enumerate(rest) if token.text == ")"), len(rest))
            inner = rest[1:end]
            parameters = [one.text for one in inner if one.kind == "name" or one.text == "..."]
            rest = rest[end + 1 :]
        macro = Macro([token.text for token in rest], parameters)
        if len(rest) <= _DEFINITION_LIMIT:
            self.file.definitions.append(Definition(name.text, macro, context))
        if name.text in self._interest.names:
            # A header for another platform gives its functions the names of CUDA.
            first = next((token.text for token in rest if token.kind == "name"), "")
            if not is_other_name(first):
                self._declare(name.text, context)
        self._read_names(rest, [context] * len(rest), name.text)

    def _declare(self, name: str, context: Context) -> None:
        self.file.own[name] = self.file.own.get(name, 0) | context.releases

    def _read_names(
        self, tokens: Sequence[Token], contexts: Sequence[Context], macro: str | None = None
    ) -> None:
        """Read the uses and declarations in code, or in the replacement of a macro."""
        names, fields, types = self._interest.names, self._interest.fields, self._interest.types
        for position, token in enumerate(tokens):
            if token.kind != "name":
                continue
            text = token.text
            if text in types:
                self.file.types.add(text)
                self._read_variables(tokens, position)
            if not contexts[position].releases:
                continue
            if text in fields:
                self._read_field(tokens, contexts, position, macro)
            if text in names:
                self._read_name(tokens, contexts, position, macro)
            if text.endswith(_VARIANTS) and text.rpartition("_")[0] in names:
                self.file.alternatives.append((text.rpartition("_")[0], contexts[position]))

    def _read_variables(self, tokens: Sequence[Token], position: int) -> None:
        """Add the variables that are declared with a type."""
        type_name = tokens[position].text
        position += 1
        while position < len(tokens):
            self._work.spend(1)
            text = tokens[position].text
            if text in _QUALIFIERS:
                position += 1
                continue
            if tokens[position].kind != "name":
                return
            self.file.variables.setdefault(text, set()).add(type_name)
            # The other variables of the declaration, as in `cudaDeviceProp a, *b`.
            position += 1
            while position < len(tokens) and tokens[position].text == "[":
                position = self._end_of(tokens, position) + 1
            if position >= len(tokens) or tokens[position].text != ",":
                return
            position += 1

    def _read_field(
        self,
        tokens: Sequence[Token],
        contexts: Sequence[Context],
        position: int,
        macro: str | None,
    ) -> None:
        """Add the use of a field, or the declaration of a variable with its name."""
        token, before = tokens[position], _text(tokens, position - 1)
        after = _text(tokens, position + 1)
        if before in {".", "->"}:
            owner = self._owner(tokens, position - 2)
            line = self._source.line(token.start)
            use = Use("field", token.text, line, contexts[position], owner=owner, macro=macro)
            if after != "(":
                self.file.uses.append(use)
        elif after in {";", "=", "{", ",", "[", ":"} and _is_type(tokens, position - 1):
            self.file.members.add(token.text)

    def _read_name(
        self,
        tokens: Sequence[Token],
        contexts: Sequence[Context],
        position: int,
        macro: str | None,
    ) -> None:
        """Add the use of a name, unless the file declares it or means another one."""
        token, before = tokens[position], _text(tokens, position - 1)
        after = _text(tokens, position + 1)
        context = contexts[position]
        if before in {".", "->", "#"} or after == "#" or before == "goto":
            return
        space = tokens[position - 2] if before == "::" and position > 1 else None
        # A name of another namespace. Enumerators can have the name of their type.
        if space and space.kind == "name" and not self._is_type_of_api(space.text):
            return
        if self._declares(tokens, position):
            self._declare(token.text, context)
            return
        arguments = None
        kind: UseKind = "name"
        if after == "(":
            kind = "call"
            end = self._end_of(tokens, position + 1)
            if end < len(tokens) and self._is_plain(contexts[position : end + 1]):
                arguments = _arguments(tokens[position + 2 : end])
        elif (before, after, _text(tokens, position + 2)) == ("(", ",", "("):
            # A macro can combine both, as in `CHECK(cuCtxCreate, (&context, 0, device))`.
            end = self._end_of(tokens, position + 2)
            if end < len(tokens) and self._is_plain(contexts[position : end + 1]):
                arguments = _arguments(tokens[position + 3 : end])
        line = self._source.line(token.start)
        around = self._call_around(tokens, position) if before in {"(", ","} else None
        use = Use(kind, token.text, line, context, arguments, macro=macro, argument_of=around)
        self.file.uses.append(use)

    def _call_around(self, tokens: Sequence[Token], position: int) -> tuple[str, int] | None:
        """Return the call whose argument begins at a position, and the number of the argument."""
        depth = number = 0
        for index in range(position - 1, max(0, position - _CALL_AROUND_LIMIT), -1):
            self._work.spend(1)
            text = tokens[index].text
            if depth == 0 and text == "(":
                name = tokens[index - 1]
                return (name.text, number) if name.kind == "name" else None
            depth += text in _CLOSING
            depth -= text in _OPENING
            if depth < 0 or text == ";":
                return None
            number += depth == 0 and text == ","
        return None

    def _is_plain(self, contexts: Sequence[Context]) -> bool:
        """Check if no condition divides some tokens."""
        distinct = {id(each): each for each in contexts}
        self._work.spend(sum(len(each.branches) for each in distinct.values()))
        return len(distinct) == 1 or len(set(distinct.values())) == 1

    def _end_of(self, tokens: Sequence[Token], start: int) -> int:
        """Return the position of the mark that closes the one at `start`, or the last position."""
        end = _end_of(tokens, start)
        self._work.spend(min(end - start, _ARGUMENTS_LIMIT))
        return end

    def _owner(self, tokens: Sequence[Token], position: int) -> str | None:
        """Return the variable before a `.` or `->`, None for another expression."""
        depth = 0
        for index in range(position, max(-1, position - _ARGUMENTS_LIMIT), -1):
            self._work.spend(1)
            token = tokens[index]
            depth += token.text == "]"
            if depth == 0:
                return token.text if token.kind == "name" else None
            depth -= token.text == "["
        return None

    def _is_in_enum(self, tokens: Sequence[Token], position: int) -> bool:
        """Check if the braces around a position are those of an enum."""
        depth = 0
        for index in range(position - 1, max(-1, position - _ARGUMENTS_LIMIT), -1):
            self._work.spend(1)
            text = tokens[index].text
            depth += text in _CLOSING
            depth -= text in _OPENING
            if depth < 0:
                return "enum" in [_text(tokens, index - back) for back in range(1, 6)]
            if text == ";":
                return False
        return False

    def _is_type_of_api(self, name: str) -> bool:
        return name in self._interest.types or name in self._interest.names

    def _declares(self, tokens: Sequence[Token], position: int) -> bool:
        """Check if a name is declared there: a function, type, variable or enumerator."""
        before, after = _text(tokens, position - 1), _text(tokens, position + 1)
        if before in {"struct", "class", "union", "enum"}:
            return after in {"{", ":"}
        if before == "*" and _text(tokens, position - 2) == "(" and after == ")":
            # A pointer to a function, as in `cudaError_t (*cudaFree)(void *)`.
            return _text(tokens, position + 2) == "("
        is_after_type = _is_type(tokens, position - 1)
        if after == "(":
            end = self._end_of(tokens, position + 1)
            return is_after_type and _text(tokens, end + 1) in _AFTER_PARAMETERS
        if after == "=" and before in {"{", ","}:
            return self._is_in_enum(tokens, position)
        is_alias = before == "using" and after == "="
        return is_alias or (is_after_type and after in {";", "=", "["})


def is_other_name(name: str) -> bool:
    """Check if a function is one of another platform, such as hipMalloc."""
    return bool(_is_other_name(name)) or is_other_platform(name)


def _text(tokens: Sequence[Token], position: int) -> str:
    return tokens[position].text if 0 <= position < len(tokens) else ""


def _is_type(tokens: Sequence[Token], position: int) -> bool:
    """Check if a type may end there, so that a declared name follows."""
    while _text(tokens, position) in {"*", "&"}:
        position -= 1
    if not 0 <= position < len(tokens):
        return False
    token = tokens[position]
    if token.text == ">":
        return True
    if token.text == "}":
        return True
    return token.kind == "name" and token.text not in _NOT_TYPES


def _end_of(tokens: Sequence[Token], start: int) -> int:
    """Return the position of the mark that closes the one at `start`, or the last position."""
    depth = 0
    limit = min(len(tokens), start + _ARGUMENTS_LIMIT)
    for position in range(start, limit):
        depth += tokens[position].text in _OPENING
        depth -= tokens[position].text in _CLOSING
        if depth == 0:
            return position
    return len(tokens)


def arguments_after(text: str, work: WorkLimit) -> tuple[tuple[str, ...], ...] | None:
    """Return the arguments of a call whose parentheses begin a text, None if it is no call.

    Raises `TooMuchWorkError` for a hostile text.
    """
    if not text.startswith("("):
        return None
    tokens: list[Token] = []
    depth = 0
    for token in SourceText(text).tokens():
        work.spend(_STEPS_OF_TOKEN)
        depth += token.text in _OPENING
        depth -= token.text in _CLOSING
        if depth == 0:
            return _arguments(tokens[1:])
        tokens.append(token)
    return None


def _arguments(tokens: Sequence[Token]) -> tuple[tuple[str, ...], ...] | None:
    """Return the arguments between parentheses, None if their number is unknown."""
    if not tokens:
        return ()
    arguments: list[list[str]] = [[]]
    depth = 0
    template_end = comparisons = 0
    for position, token in enumerate(tokens):
        text = token.text
        if text in {"...", "__VA_ARGS__"}:
            return None
        may_be_template = position > template_end and comparisons < _COMPARISONS_LIMIT
        if text == "<" and may_be_template and tokens[position - 1].kind == "name":
            template_end = _end_of_template(tokens, position)
            comparisons += template_end == position
        depth += text in _OPENING
        depth -= text in _CLOSING
        if text == "," and depth == 0 and position > template_end:
            arguments.append([])
        else:
            arguments[-1].append(text)
    return tuple(map(tuple, arguments))


def _end_of_template(tokens: Sequence[Token], start: int) -> int:
    """Return the position of the `>` that closes a `<`, or `start` if it is a comparison."""
    depth = 0
    for position in range(start, min(len(tokens), start + _TEMPLATE_LIMIT)):
        token = tokens[position]
        depth += {"<": 1, "<<": 2, ">": -1, ">>": -2}.get(token.text, 0)
        if depth <= 0:
            return position
        if token.kind == "mark" and token.text not in _TEMPLATE_MARKS:
            break
    return start
