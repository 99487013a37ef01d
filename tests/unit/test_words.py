"""Messages without the credentials of addresses."""

import pytest

from cudaredist.words import shown, without_secrets


@pytest.mark.parametrize(
    ("message", "public"),
    [
        ("https://u:SECRET@h/x: no such file", "https://h/x: no such file"),
        ("https:/u:SECRET@h/x", "https:/h/x"),
        ("//u:SECRET@h", "//h"),
        ("https://SECRET@h/x", "https://h/x"),
        ("https://u:SEC/RET@h/x", "https://h/x"),
        ("https://u:SEC RET@h/x", "https://h/x"),
        ("https://u:SECRET@x@h:80/", "https://h:80/"),
        ("https://u:12@h/", "https://h/"),
        ("{'a': 'https://u:SECRET@h/x'}", "{'a': 'https://h/x'}"),
        ("git+https://u:SECRET@h/, https://v:SECRET@i/", "git+https://h/, https://i/"),
        ("run `x 'https://h/x?token=SECRET&a=b'`", "run `x 'https://h/x'`"),
    ],
)
def test_message_loses_credentials_of_addresses(message: str, public: str) -> None:
    assert without_secrets(message) == public


@pytest.mark.parametrize(
    "message",
    [
        "cuda@13.0.2: no such release",
        "https://h/x: expected cuda@13.0.2",
        "https://h: expected cuda@13.0.2",
        "https://h:8080/x@y",
        "https://h/a@b/c",
        "did you mean https://h/x?",
        "pkg:pypi/x@1.0",
        "/home/u/x@y",
        "name <user@host>",
    ],
)
def test_message_without_credentials_is_unchanged(message: str) -> None:
    assert without_secrets(message) == message


def test_shortened_address_has_no_credentials() -> None:
    assert shown(f"https://u:{'SECRET' * 20}@h/") == "'https://h/'"
