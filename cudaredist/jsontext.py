"""Strict JSON parsing, and the canonical JSON of data files."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import accumulate, islice
from typing import Any, NoReturn, TypeAlias

import pydantic_core

from cudaredist.errors import InvalidFileError, Problem
from cudaredist.words import shown

_is_plain_key = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,79}").fullmatch

# Control characters of both sets, and halves of surrogate pairs.
_find_unprintable = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]").search
_find_escape = re.compile(rb'\\[^"\\/]').search
_find_c1_control = re.compile(rb"\xc2[\x80-\x9f]").search

_KINDS = {
    type(None): "null",
    bool: "true or false",
    str: "a string",
    list: "a list",
    int: "a number",
    float: "a number",
}
OWN_FILE_LIMIT = 256 << 20
"""Maximum size of one of our files in bytes."""
DEPTH_LIMIT = 64
"""Maximum nesting of objects and lists. Versions of Python have other limits."""

_TOO_DEEP = f"nested more than {DEPTH_LIMIT} levels deep"
_BYTES_OF_VALUE = 16
_NUMBER_LIMIT = 20
_PATH_LIMIT = 300
_NESTED = (dict, list)
_PROBLEMS_GATHERED = 1000


def parse_json(data: bytes, *, what: str, limit: int) -> object:
    """Parse untrusted JSON strictly.

    Requires UTF-8, unique keys, no control characters, bounded depth and numbers, at most `limit`
    bytes, and at most one value for 16 bytes of `limit`. Raises `InvalidFileError`, with `what` as
    the kind of file.
    """
    document, problems = parse_json_parts(data, what=what, limit=limit)
    if problems:
        raise InvalidFileError(what, problems)
    return document


def parse_json_parts(data: bytes, *, what: str, limit: int) -> tuple[object, list[Problem]]:
    """Parse untrusted JSON, and return it with the problems of its parts.

    These are repeated keys, control characters and lone surrogates. The caller omits the parts with
    problems. Raises `InvalidFileError` for everything else that `parse_json` refuses.
    """

    def refuse(*problems: Problem) -> NoReturn:
        raise InvalidFileError(what, problems)

    if len(data) > limit:
        refuse(Problem("", f"{len(data):,} bytes, more than {limit:,}"))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        refuse(Problem("", f"not UTF-8: byte {error.start} is 0x{data[error.start]:02x}"))
    if is_too_deep(data):
        refuse(Problem("", _TOO_DEEP))
    most = limit // _BYTES_OF_VALUE
    # Small values take many times the memory of their text.
    if len(data) > most and sum(map(data.count, (b",", b"[", b"{"))) > most:
        refuse(Problem("", f"more than {most:,} values"))
    try:
        repeats: list[_Repeated] = []
        make_object = partial(_object, repeats)
        document: object = json.loads(
            text, object_pairs_hook=make_object, parse_int=_integer, parse_constant=_constant
        )
    except ValueError as error:
        refuse(Problem("", _syntax_problem(text, error)))
    is_suspect = bool(repeats) or not is_plain(data)
    hidden = _hidden_problems(document) if is_suspect else iter(())
    return document, list(islice(hidden, _PROBLEMS_GATHERED))


def load_json(data: bytes) -> Any:  # noqa: ANN401 - the caller checks the form
    """Parse JSON of another program in UTF-8.

    Raises `ValueError` if it is invalid or nested too deeply. Unlike `parse_json`, accepts repeated
    keys and all characters.
    """
    if is_too_deep(data):
        raise ValueError(_TOO_DEEP)
    return json.loads(data.decode("utf-8"))


def is_too_deep(data: bytes) -> bool:
    """Check if JSON exceeds `DEPTH_LIMIT`, without parsing it."""
    if b"\\" in data:
        data = _ESCAPES.sub(b"", data)
    # Two quotes are an empty string, or the end of a string and the start of the next one.
    marks = data.translate(_STEPS, _NOT_MARKS).replace(b'""', b"")
    steps = memoryview(_STRINGS.sub(b"", marks)).cast("b")
    return max(accumulate(steps), default=0) > DEPTH_LIMIT


def is_plain(data: bytes) -> bool:
    """Check that valid JSON cannot contain forbidden characters."""
    # The plain searches for one byte take a fifth of the time of the regular expressions.
    return (
        b"\x7f" not in data
        and (b"\\" not in data or not _find_escape(data))
        and (data.isascii() or not _find_c1_control(data))
    )


def canonical_json(value: object) -> bytes:
    """Return canonical JSON: two spaces, sorted keys, final newline, UTF-8.

    The outermost object begins with `schema_version`. The same value gives the same bytes.
    """
    ordered = _sorted(value)
    if isinstance(ordered, dict) and "schema_version" in ordered:
        ordered = {"schema_version": None, **ordered}
    # With an indent, the standard library walks the values in Python: 2.5 times slower.
    return pydantic_core.to_json(ordered, indent=2) + b"\n"


def manifest_json(document: Mapping[str, object]) -> bytes:
    """Return a manifest in the form of NVIDIA's and nixpkgs' manifests.

    Four spaces, keys in their order, UTF-8, and a final newline, which NVIDIA's own files lack.
    """
    return (json.dumps(document, indent=4, ensure_ascii=False) + "\n").encode()


def _sorted(value: object) -> object:
    # A call for each of the many texts and numbers would take longer than the sorting.
    if isinstance(value, dict):
        return {
            key: _sorted(own) if isinstance(own := value[key], _NESTED) else own
            for key in sorted(value)
        }
    if isinstance(value, list):
        return [_sorted(item) if isinstance(item, _NESTED) else item for item in value]
    return value


def join_path(path: str, key: str) -> str:
    """Return the path to a field, such as `package.platform.sha256`.

    Unusual keys are quoted and shortened.
    """
    name = key if _is_plain_key(key) else shown(key)
    return f"{path}.{name}" if path else name


def kind_of(value: object) -> str:
    """Return the JSON type of a value, such as "a string"."""
    return _KINDS.get(type(value), "an object")


class _Repeated(dict[str, object]):
    """An object with repeated keys."""

    repeated_keys: list[str]


# Each bracket as a signed byte: 1 for an opening one, -1 for a closing one.
_STEPS = bytes.maketrans(b"[{]}", b"\1\1\xff\xff")
_NOT_MARKS = bytes(set(range(256)) - set(b'[{]}"'))
_ESCAPES = re.compile(rb'\\[\\"]')
_STRINGS = re.compile(rb'"[^"]*"?')


def _syntax_problem(text: str, error: Exception) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    if text.startswith("\ufeff"):
        return "begins with a byte order mark, expected plain UTF-8"
    if not text.strip():
        return "empty, expected JSON"
    kind = "HTML, not JSON" if text.lstrip()[:1] == "<" else "not JSON"
    return f"{kind}: {error.msg} at line {error.lineno}, column {error.colno}"


def _object(repeats: list[_Repeated], pairs: list[tuple[str, object]]) -> dict[str, object]:
    built = dict(pairs)
    if len(built) == len(pairs):
        return built
    counts = Counter(key for key, _ in pairs)
    marked = _Repeated(built)
    marked.repeated_keys = [key for key, count in counts.items() if count > 1]
    repeats.append(marked)
    return marked


def _integer(digits: str) -> int:
    if len(digits) > _NUMBER_LIMIT:
        raise ValueError(f"a number with {len(digits)} digits")
    return int(digits)


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_Trail: TypeAlias = "tuple[_Trail, str | int] | None"
"""The path to a value, as nested pairs with the last step outside.

Siblings share their parent's path, to save memory.
"""


def _hidden_problems(document: object) -> Iterator[Problem]:
    """Yield repeated keys, and text with control characters or lone surrogates."""
    forbidden = "a control character or a lone surrogate"
    waiting: list[tuple[_Trail, object]] = [(None, document)]
    while waiting:
        trail, value = waiting.pop()
        if isinstance(value, _Repeated):
            for key in value.repeated_keys:
                yield Problem(_path((trail, key)), "repeated key")
        if isinstance(value, dict):
            for key, item in value.items():
                if _find_unprintable(key):
                    yield Problem(_path((trail, key)), f"the key has {forbidden}")
                waiting.append(((trail, key), item))
        elif isinstance(value, list):
            waiting.extend(((trail, index), item) for index, item in enumerate(value))
        elif isinstance(value, str) and _find_unprintable(value):
            yield Problem(_path(trail), f"has {forbidden}")


def _path(trail: _Trail) -> str:
    steps: list[str | int] = []
    while trail is not None:
        trail, step = trail
        steps.append(step)
    path = ""
    for step in reversed(steps):
        if len(path) > _PATH_LIMIT:
            return f"{path}…"
        path = f"{path}[{step}]" if isinstance(step, int) else join_path(path, step)
    return path
