"""The files that a license text permits to distribute, as the text lists them.

NVIDIA's texts have two forms of lists. The CUDA EULA has an Attachment A with components, each with
names of files for some platforms. Other texts have one sentence: "The following portions of the SDK
are distributable under the Agreement". A text in another form has no list. Anything that a list
contains and that is not understood is an error, never a guess.
"""

import re
from collections.abc import Mapping
from typing import get_args

from cudaredist.errors import InvalidFileError
from cudaredist.formats.license_policy import ListedFiles, Operating

_SYSTEMS: Mapping[str, Operating] = {name: name for name in get_args(Operating)}
_attachment = re.compile(r"^[ \t]*(?:[0-9.]+[ \t]+)?Attachment A[ \t]*$", re.MULTILINE)
_end = re.compile(r"In addition to the rights above|[0-9]+(?:\.[0-9]+)*\.\s").match
_paragraphs = re.compile(r"\n\s*\n").split
_sentence = re.compile(
    r"The following portions of the \w+ are distributable under the Agreement: "
    r"(?P<files>[^:]*?)\.(?: |\Z)"
)
_is_file = re.compile(r"[A-Za-z0-9_+-]*[./][A-Za-z0-9_.+/-]+").fullmatch
_between_files = re.compile(
    r",|\band\b|\bthe runtimes? files\b(?: ending with\b)?|\bas part of your application\b|\s"
)
_is_condition = re.compile(r"The (?P<component>.+?) (?:is|are) only distributable in ").match


def read_distribution_list(text: str) -> tuple[ListedFiles, ...] | None:
    """Return the list in a license text, or None if it has no list.

    Raises `InvalidFileError` for a list that is not understood.
    """
    headings = list(_attachment.finditer(text))
    if headings:
        return _components(text[headings[-1].end() :])
    sentence = _sentence.search(" ".join(text.split()))
    if sentence is None:
        return None
    names = _names(sentence["files"])
    return (ListedFiles(component=None, system="All", files=names),)


def _components(text: str) -> tuple[ListedFiles, ...]:
    """Return the files of each component and platform in an Attachment A."""
    listed: list[ListedFiles] = []
    paragraphs = iter([" ".join(part.split()) for part in _paragraphs(text) if part.strip()])
    for introduction in paragraphs:
        if introduction == "Component":
            break
    component = next(paragraphs, None)
    system: Operating | None = None
    for paragraph in paragraphs:
        if system is not None:
            names = _names(paragraph)
            listed.append(ListedFiles(component=component, system=system, files=names))
            system = None
        elif paragraph in _SYSTEMS:
            system = _SYSTEMS[paragraph]
        elif paragraph == "Component":
            component = next(paragraphs, None)
        elif condition := _is_condition(paragraph):
            listed = [_with_condition(one, condition["component"]) for one in listed]
        elif _end(paragraph):
            return tuple(listed)
        else:
            raise _invalid(paragraph)
    raise _invalid("the end of the text")


def _with_condition(listed: ListedFiles, component: str) -> ListedFiles:
    """Mark the files of a component as distributable under further conditions only."""
    is_own = listed.component == component
    return listed.model_copy(update={"is_conditional": True}) if is_own else listed


def _names(text: str) -> tuple[str, ...]:
    names = [word for word in _between_files.split(text) if word]
    wrong = next((name for name in names if not _is_file(name)), None)
    if wrong is not None or not names:
        raise _invalid(wrong or text)
    return tuple(dict.fromkeys(names))


def _invalid(text: str) -> InvalidFileError:
    return InvalidFileError.of("list of distributable files", f"{text[:60]!a} is not a file", "")
