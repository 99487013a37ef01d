"""Declarations of names with types, as in C."""

import re

_declarator = re.compile(r"\(\*+(?:const)?(?=[)\[])").search


def declaration(type_text: str, name: str) -> str:
    """Return the declaration of a name with a type, such as `void *data` or `char name[256]`."""
    pointer = _declarator(type_text)
    if pointer:
        return f"{type_text[: pointer.end()]}{name}{type_text[pointer.end() :]}"
    for mark in ("(", "["):
        before, found, after = type_text.partition(mark)
        if found:
            return f"{_joined(before.rstrip(), name)}{mark}{after}"
    return _joined(type_text, name)


def _joined(type_text: str, name: str) -> str:
    return f"{type_text}{name}" if type_text.endswith("*") else f"{type_text} {name}"
