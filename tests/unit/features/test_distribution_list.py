"""Lists of distributable files in license texts."""

import pytest
from conftest import REPOSITORY

from cudaredist.errors import InvalidFileError
from cudaredist.features.distribution_list import read_distribution_list
from cudaredist.features.distributions import distribution_of
from cudaredist.formats.license_policy import LicensePolicy, LicenseText
from cudaredist.formats.registry import read_own_file

POLICY = read_own_file((REPOSITORY / "data/policy/licenses.json").read_bytes(), LicensePolicy)

ATTACHMENT = """
The portions are listed in Attachment A.

2.6. Attachment A

These files may be distributed.

Component

Example Runtime

Windows

example.dll, example_static.lib

Mac OSX

libexample.dylib, libexample_mac.a

Linux

libexample.so, libexample_static.a
libother.so

Component

Example Headers
on two lines

All

example.h, example/std/tuple

Component

Example Driver

Linux

libdriver.so

The Example Driver is only distributable in
applications that meet this criteria:

  1. It is a test.
"""
SENTENCE = """
2. Distribution. The following portions of the SDK are distributable under the
Agreement: the runtime files .so and .h, example_0.dll and libexample_static.a.
3. Licensing. Other terms.
"""


def text_of(content: str) -> LicenseText:
    listed = read_distribution_list(content)
    entry = next(iter(POLICY.texts.values()))
    return entry.model_copy(update={"has_list": listed is not None, "listed": listed or ()})


@pytest.mark.parametrize(
    ("path", "distribution"),
    [
        ("lib/libexample.so", "listed"),
        ("lib/libexample.so.12.9.79", "listed"),
        ("bin/example64_90.dll", "listed"),
        ("bin/example64_120_0.dll", "listed"),
        ("bin/Example.dll", "listed"),
        ("lib/libother.so.1", "listed"),
        ("include/example.h", "listed"),
        ("include/example/std/tuple", "listed"),
        ("include/tuple", "not-listed"),
        ("lib/libexampleMg.so.12", "not-listed"),
        ("lib/libexample_mac.a", "not-listed"),
        ("lib/libexample.so.alt", "not-listed"),
        ("lib/libdriver.so.1", "conditional"),
    ],
)
def test_file_is_compared_with_attachment(path: str, distribution: str) -> None:
    assert distribution_of(path, text_of(ATTACHMENT)) == distribution


@pytest.mark.parametrize(
    ("path", "distribution"),
    [
        ("lib/libany.so.3", "listed"),
        ("include/any.h", "listed"),
        ("bin/example_0.dll", "listed"),
        ("bin/any.dll", "not-listed"),
        ("lib/libany.a", "not-listed"),
    ],
)
def test_file_is_compared_with_sentence(path: str, distribution: str) -> None:
    assert distribution_of(path, text_of(SENTENCE)) == distribution


def test_components_and_platforms_are_those_of_text() -> None:
    listed = read_distribution_list(ATTACHMENT)
    assert listed is not None
    assert [(one.component, one.system, one.is_conditional) for one in listed] == [
        ("Example Runtime", "Windows", False),
        ("Example Runtime", "Mac OSX", False),
        ("Example Runtime", "Linux", False),
        ("Example Headers on two lines", "All", False),
        ("Example Driver", "Linux", True),
    ]
    assert listed[2].files == ("libexample.so", "libexample_static.a", "libother.so")


def test_text_without_list_has_none() -> None:
    assert read_distribution_list("Redistribution in binary form is permitted.") is None
    assert distribution_of("lib/a.so", text_of("Apache License")) == "no-list"


def test_unread_text_is_unknown() -> None:
    unread = text_of(SENTENCE).model_copy(update={"has_list": None})
    for text in (None, "unknown", unread):
        assert distribution_of("lib/a.so", text) == "unknown"


@pytest.mark.parametrize(
    "content",
    [
        ATTACHMENT.replace("example.dll, ", "example.dll, see the manual: "),
        ATTACHMENT.replace("Mac OSX", "Plan 9"),
        ATTACHMENT.partition("The Example Driver")[0],
        "2.6. Attachment A\n\nNothing.\n",
        SENTENCE.replace("the runtime files", "all of the"),
    ],
    ids=["words", "platform", "truncated", "empty", "sentence"],
)
def test_list_in_unknown_form_is_refused(content: str) -> None:
    with pytest.raises(InvalidFileError):
        read_distribution_list(content)


def test_every_known_text_was_read() -> None:
    lists = {text.title: len(text.listed) for text in POLICY.texts.values() if text.has_list}
    assert lists["CUDA EULA, with the supplement of August 16, 2018"] == 53
    assert lists["CUDA EULA, January 26, 2026 (second version)"] == 60
    assert all(text.has_list is not None for text in POLICY.texts.values())
