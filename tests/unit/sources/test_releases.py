"""The documents of NVIDIA's second server that list releases."""

import json
from typing import Any

import pytest

from cudaredist.errors import InvalidFileError
from cudaredist.sources.releases import read_nvidia_channels, read_releases


def entry(label: str, **more: Any) -> dict[str, Any]:
    manifest = f"redist/{label}.json"
    return {"version": label, "manifest": manifest, "sha256": "0" * 64, "size": 9, **more}


@pytest.mark.parametrize("channel", ["preview", "a.b", "1"])
@pytest.mark.parametrize("more", [{"note": "a\x01b"}, {"a\x01b": 1}, {"deep": [{"x": "\x7f"}]}])
def test_entry_with_control_character_hides_no_other_entry(
    channel: str, more: dict[str, Any]
) -> None:
    document = {channel: [entry("1.0.0"), entry("1.1.0", **more), entry("1.2.0")]}
    releases, error = read_releases(json.dumps(document).encode(), "nvx", "releases.json")
    assert [str(release.label) for release in releases] == ["1.0.0", "1.2.0"]
    assert error is not None
    assert "[1]" in error.message
    assert "control character" in error.message


def test_entry_with_repeated_key_hides_no_other_entry() -> None:
    wrong = json.dumps(entry("1.1.0")).replace('"size"', '"size": 1, "size"')
    data = f'{{"preview": [{json.dumps(entry("1.0.0"))}, {wrong}]}}'.encode()
    releases, error = read_releases(data, "nvx", "releases.json")
    assert [str(release.label) for release in releases] == ["1.0.0"]
    assert "repeated key" in str(error)


def test_repeated_channel_is_refused() -> None:
    data = f'{{"a": [{json.dumps(entry("1.0.0"))}], "a": []}}'.encode()
    with pytest.raises(InvalidFileError, match="repeated key"):
        read_releases(data, "nvx", "releases.json")


def test_list_of_channels_with_control_character_is_refused() -> None:
    with pytest.raises(InvalidFileError, match="control character"):
        read_nvidia_channels(b'{"a": [{"product": "x", "y": "\\u0001"}]}', "channels.json")
