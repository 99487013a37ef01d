"""Tests of the first and last releases with something, and of what was not examined."""

import pytest

from cudaredist.primitives import Version
from cudaredist.store.absence import Unexamined, inspect_command, since, until

OLD = Unexamined("redist", "local", "cuda", "11.0.3", archives=4, unread=4)


def labels(text: str) -> set[Version]:
    return {Version.parse(label) for label in text.split()}


@pytest.mark.parametrize(
    ("first", "examined", "known", "answer"),
    [
        # The release before was examined, and no patch between them can be missing.
        ("12.3.0", "12.2.2 12.3.0", "12.2.2 12.3.0", "12.3.0"),
        ("12.3.2", "12.3.1 12.3.2", "12.3.1 12.3.2", "12.3.2"),
        # Patches before the first one are not in the data.
        ("12.3.2", "12.2.2 12.3.2", "12.2.2 12.3.2", "12.3.2 or an earlier patch"),
        # The release before is in the data, but not examined.
        ("12.3.2", "12.2.2 12.3.2", "12.2.2 12.3.1 12.3.2", "12.3.2 or an earlier patch"),
        ("12.3.0", "12.3.0", "12.2.2 12.3.0", "12.3.0 or an earlier release"),
        # Nothing is before it.
        ("11.8.0", "11.8.0", "11.8.0", "11.8.0 or an earlier release"),
        ("2.13.4", "2.13.4", "2.13.4", "2.13.4 or an earlier patch"),
    ],
)
def test_first_release_is_as_exact_as_known(
    first: str, examined: str, known: str, answer: str
) -> None:
    assert since(Version.parse(first), labels(examined), labels(known)) == answer


@pytest.mark.parametrize(
    ("last", "examined", "known", "answer"),
    [
        ("12.3.0", "12.3.0", "12.2.2 12.3.0", "12.3.0"),
        ("12.3.0", "12.3.0 12.4.0", "12.3.0 12.4.0", "12.3.0"),
        ("12.3.0", "12.3.0 12.4.0", "12.3.0 12.3.1 12.4.0", "12.3.0 or a later patch"),
        ("12.3.0", "12.3.0", "12.3.0 12.4.0", "12.3.0 or a later release"),
    ],
)
def test_last_release_is_as_exact_as_known(
    last: str, examined: str, known: str, answer: str
) -> None:
    assert until(Version.parse(last), labels(examined), labels(known)) == answer


def test_local_archives_are_examined_before_shipped_ones() -> None:
    wheels = OLD._replace(channel="wheels")
    assert inspect_command([wheels, OLD]) == "cudaredist process-manifests"
    assert inspect_command([wheels]) == "cudaredist process-manifests --channel wheels"
    assert inspect_command([]) is None


def test_shipped_manifests_are_downloaded_before_their_archives_are_examined() -> None:
    shipped = OLD._replace(layer="shipped")
    assert inspect_command([shipped], ["cuda"], "linux-sbsa") == (
        "cudaredist download-manifests --redist cuda --version 11.0.3 && "
        "cudaredist process-manifests --redist cuda --platform linux-sbsa"
    )
    many = [shipped._replace(label=f"11.{minor}.0") for minor in range(4)]
    assert inspect_command(many, ["cuda"], packages=["cuda_nvcc"]) == (
        "cudaredist download-manifests --redist cuda --version all && "
        "cudaredist process-manifests --redist cuda --package cuda_nvcc"
    )
