"""What pip says, in its own words: what is made of them, and what must never be shown."""

import pytest

from cudaredist.source.pip import _failure, _shown, _unreached


@pytest.mark.parametrize(
    "said",
    [
        "Could not fetch https://user:secret@host/simple",
        "url='https://user:secret@host/simple'",
        "<https://user:secret@host/simple>",
        "index-url=https://user:secret@host/simple",
        "https://user:secret@host/a and https://user:secret@host/b",
    ],
)
def test_credentials_are_never_shown(said: str) -> None:
    shown = _shown(said)
    assert "secret" not in shown
    assert "host" in shown


@pytest.mark.parametrize(
    ("errors", "kind", "why"),
    [
        ("ERROR: No matching distribution found for x", "not-found", "no wheel of x"),
        ("WARNING: a\nERROR: THE PACKAGES DO NOT MATCH THE HASHES", "archive-mismatch", "SHA-256"),
        ("WARNING: a\nERROR: Disk is full\n", "source", "x: Disk is full"),
        (
            "ERROR: Exception:\nTraceback (most recent call last):\n  File\nOSError: broken pipe\n",
            "source",
            "x: OSError: broken pipe",
        ),
        ("option --use-feature: invalid choice", "source", "x: option --use-feature"),
        ("", "source", "x: pip failed without a word"),
    ],
)
def test_failures(errors: str, kind: str, why: str) -> None:
    failure = _failure("x", errors)
    assert why in failure.message
    assert kind in failure.kind


FETCH = "Could not fetch URL http://h/simple/x/: "


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Found link http://h/x.whl\nSkipping link: not a file", None),
        (f"{FETCH}404 Client Error: Not Found for url: http://h/ - skipping", None),
        (f"{FETCH}500 Server Error - skipping\nmore", "500 Server Error"),
        (f"{FETCH}404 Client Error - skipping\n{FETCH}connection error: gone - skipping", "gone"),
        (
            "WARNING: The repository located at h is not a trusted or secure host and is being "
            "ignored. If this",
            "The repository located at h is not a trusted or secure host",
        ),
        (
            "WARNING: Skipping page http://h/simple/x/ (from b) because the GET request got "
            "Content-Type: text/plain. The only",
            "GET request got Content-Type: text/plain",
        ),
    ],
)
def test_indexes_that_were_not_asked(said: str, why: str | None) -> None:
    found = _unreached(said, ("404 ",))
    assert (found is None) == (why is None)
    assert (why or "") in (found or "")
