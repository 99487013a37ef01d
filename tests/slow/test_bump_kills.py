"""Tests of bump killed at random steps."""

import json
import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest
from support.bumps import FIVE, publish
from support.killing import Killer
from support.running import snapshot
from support.server import FaultServer

from cudaredist.formats.registry import kind_of_document, read_own_file
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import sha256_of

pytestmark = pytest.mark.slow

KILLS = 45
STEPS_OF_RUN = 400
"""Rounded number of steps."""
TOLD = ("message", "CHANGELOG.md")


def assert_whole(data: Path, published: dict[str, bytes]) -> None:
    """Assert that every file is complete and that the lock records only these files."""
    for path, content in snapshot(data).items():
        if path.startswith("manifests/") and "redistrib_" in path and path.endswith(".json"):
            assert content == published[path], path
            read_manifest(content)
        elif path.endswith(".json"):
            document = json.loads(content)
            kind = kind_of_document(document)
            assert kind is not None, path
            read_own_file(content, kind.model)
    lock = json.loads((data / "lock.json").read_bytes())["redists"]
    for redist, labels in lock.items():
        for label, entry in labels.items():
            name = f"manifests/{redist}/redistrib_{label}.json"
            assert entry["sha256"] == sha256_of(published[name])
            assert (data / name).exists()


@dataclass(frozen=True)
class Place:
    """Working folder of bump, with calls of bump in it."""

    root: Path
    server: FaultServer
    killer: Killer
    temporary: Path
    """Folder for temporary files of the system."""

    @property
    def data(self) -> Path:
        return self.root / "data"

    def call(self, *more: str, step: int | None = None) -> int:
        places = ("--data-dir", self.data, "--cache-dir", self.root / "cache", "-j", 2, "-q")
        message_options = (
            "--write-commit-message",
            self.root / TOLD[0],
            "--changelog",
            self.root / TOLD[1],
        )
        base = ("--base-url", self.server.url, "--retries", 0)
        return self.killer.run("bump", *base, *places, *message_options, *more, step=step)

    def assert_clean(self) -> None:
        """Assert that no temporary file remains outside the cache."""
        assert not list(self.temporary.iterdir())
        cache = self.root / "cache"
        assert not [path for path in self.root.rglob("*.tmp") if cache not in path.parents]

    def told(self) -> dict[str, bytes]:
        return {name: (self.root / name).read_bytes() for name in TOLD}


@pytest.fixture
def published(server: FaultServer) -> dict[str, bytes]:
    """Serve both releases of each redistributable.

    Return the manifests by their path in the data folder."""
    for redist, labels in FIVE.items():
        publish(server, redist, *labels)
    return {
        "manifests/{2}/{4}".format(*path.split("/")): data
        for path, data in server.files.items()
        if "/redistrib_" in path
    }


@pytest.fixture
def places(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Iterator[Place]]:
    """Yield working folders with one local release of each redistributable."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    for redist, (old, _) in FIVE.items():
        publish(server, redist, old)
    with closing(Killer("place-")) as killer:
        seed = Place(tmp_path / "seed", server, killer, temporary)
        seed.root.mkdir()
        assert seed.call(*(word for name in FIVE for word in ("--redist", name))) == 0
        for name in TOLD:
            (seed.root / name).unlink()

        def copies() -> Iterator[Place]:
            for number in count():
                root = tmp_path / f"place-{number}"
                shutil.copytree(seed.root, root)
                yield replace(seed, root=root)
                shutil.rmtree(root)

        yield copies()


@dataclass(frozen=True)
class Expected:
    """Result of an undisturbed run."""

    data: dict[str, bytes]
    told: dict[str, bytes]

    def assert_reached(self, place: Place, *more: str) -> None:
        """Assert that another run has the result of the undisturbed one."""
        assert not list(place.temporary.iterdir())
        assert place.call(*more) == 0
        place.assert_clean()
        assert snapshot(place.data) == self.data
        assert place.told() == self.told


def test_bump_killed_at_random_steps_loses_no_data_or_message(
    places: Iterator[Place], server: FaultServer, published: dict[str, bytes]
) -> None:
    place = next(places)
    assert place.call() == 0
    expected = Expected(snapshot(place.data), place.told())
    assert expected.told["message"].startswith(
        b"cuda redistributables: 5 new releases of 5 products\n"
    )
    for name, (old, new) in FIVE.items():
        assert f"- {name}: {old} -> {new}\n".encode() in expected.told["CHANGELOG.md"]
    moments = random.Random(20261123)
    place = next(places)
    reached, codes = set(), []
    for _ in range(KILLS):
        codes.append(place.call(step=moments.randrange(STEPS_OF_RUN)))
        assert not list(place.temporary.iterdir())
        assert_whole(place.data, published)
        reached.add((len(snapshot(place.data)), (place.root / "message").exists()))
        # Sometimes the run after a killed run is killed, too.
        if moments.random() < 0.7:
            expected.assert_reached(place)
            place = next(places)
    assert set(codes) <= {0, -9}
    assert codes.count(-9) > KILLS / 2
    assert len(reached) > 5, "the kills hit only the start or the end"


def test_bump_killed_before_every_step_recovers(
    places: Iterator[Place], published: dict[str, bytes]
) -> None:
    place = next(places)
    one = ("--redist", "cudnn")
    assert place.call(*one) == 0
    expected = Expected(snapshot(place.data), place.told())
    assert expected.told["message"].startswith(b"cudnn: 9.10.1 -> 9.10.2\n\n")
    for step in count():
        place = next(places)
        code = place.call(*one, step=step)
        assert_whole(place.data, published)
        expected.assert_reached(place, *one)
        if code == 0:
            break
    assert step > 20
