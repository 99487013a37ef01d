"""JSON in, with the care that foreign JSON needs; JSON out, in the one form of our data files."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NoReturn, TypeAlias

from cudaredist.errors import InvalidFileError, Problem, shown

_is_plain_key = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,79}").fullmatch

# Control characters of both sets, and halves of surrogate pairs.
_find_unprintable = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]").search

_NUMBER_LIMIT = 20
_PATH_LIMIT = 300
_PROBLEMS_GATHERED = 1000


def parse_json(data: bytes, *, what: str, limit: int) -> object:
    """Read JSON strictly: UTF-8, no key twice, no control characters, bounded depth and numbers.

    Raises `InvalidFileError` about a `what` for everything else, and beyond `limit` bytes.
    """

    def refuse(*problems: Problem) -> NoReturn:
        raise InvalidFileError(what, problems)

    if len(data) > limit:
        refuse(Problem("", f"{len(data):,} bytes, more than {limit:,}"))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        refuse(Problem("", f"not UTF-8: byte {error.start} is 0x{data[error.start]:02x}"))
    try:
        document: object = _DECODER.decode(text)
        # A colon stands behind every key: as many colons as keys means that no key stands twice.
        # Where there are more (in a text, in a list, or behind such a key) it is looked at closely.
        is_suspect = text.count(":") != _count_keys(document)
        if is_suspect:
            document = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        refuse(Problem("", _syntax_problem(text, error)))
    except _RejectedNumberError as error:
        refuse(Problem("", str(error)))
    except RecursionError:
        refuse(Problem("", "nested deeper than any such file is"))
    # In plain ASCII, escapes are the only way to odd characters; NVIDIA's files have none.
    if is_suspect or "\\" in text or not text.isascii():
        problems = list(islice(_hidden_problems(document), _PROBLEMS_GATHERED))
        if problems:
            refuse(*problems)
    return document


def canonical_json(value: object) -> bytes:
    """Return the one form of a data file: two spaces, sorted keys, final newline, UTF-8.

    `schema_version` of the outermost object comes first. The same value gives the same bytes.
    """
    if isinstance(value, dict):
        value = _sorted(value, first="schema_version")
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _sorted(value: object, first: str | None = None) -> object:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value, key=lambda k: (k != first, k))}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value


def join_path(path: str, key: str) -> str:
    """Return the path to a field, `package.platform.sha256`; odd keys are quoted and cut."""
    name = key if _is_plain_key(key) else shown(key)
    return f"{path}.{name}" if path else name


def kind_of(value: object) -> str:
    """Say in JSON's words what kind of value this is."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "an object"


class _Repeated(dict[str, object]):
    """An object in which a key stands twice; `keys_twice` says which."""

    keys_twice: list[str]


class _RejectedNumberError(ValueError):
    """A number that is refused while the JSON is parsed."""


def _syntax_problem(text: str, error: json.JSONDecodeError) -> str:
    if text.startswith("\ufeff"):
        return "begins with a byte order mark, expected plain UTF-8"
    kind = "HTML, not JSON" if text.lstrip()[:1] == "<" else "not JSON"
    return f"{kind}: {error.msg} at line {error.lineno}, column {error.colno}"


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    built = dict(pairs)
    if len(built) == len(pairs):
        return built
    counts = Counter(key for key, _ in pairs)
    marked = _Repeated(built)
    marked.keys_twice = [key for key, count in counts.items() if count > 1]
    return marked


def _count_keys(document: object) -> int:
    """Count the keys of objects in objects; those inside lists are left out."""
    level = [document] if isinstance(document, dict) else []
    count = 0
    while level:
        count += sum(map(len, level))
        level = [item for value in level for item in value.values() if type(item) is dict]
    return count


def _integer(digits: str) -> int:
    if len(digits) > _NUMBER_LIMIT:
        raise _RejectedNumberError(f"a number of {len(digits)} digits")
    return int(digits)


def _constant(name: str) -> NoReturn:
    raise _RejectedNumberError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(parse_int=_integer, parse_constant=_constant)


_Trail: TypeAlias = "tuple[_Trail, str | int] | None"
"""The way to a value, last step outside: shared between neighbours, so that it costs no memory."""


def _hidden_problems(document: object) -> Iterator[Problem]:
    """Find keys that stand twice and text that no file name may hold, anywhere in the document."""
    odd = "a control character or a lone surrogate"
    waiting: list[tuple[_Trail, object]] = [(None, document)]
    while waiting:
        trail, value = waiting.pop()
        if isinstance(value, _Repeated):
            for key in value.keys_twice:
                yield Problem(_path((trail, key)), "stands twice")
        if isinstance(value, dict):
            for key, item in value.items():
                if _find_unprintable(key):
                    yield Problem(_path((trail, key)), f"the key has {odd}")
                waiting.append(((trail, key), item))
        elif isinstance(value, list):
            waiting.extend(((trail, index), item) for index, item in enumerate(value))
        elif isinstance(value, str) and _find_unprintable(value):
            yield Problem(_path(trail), f"has {odd}")


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
