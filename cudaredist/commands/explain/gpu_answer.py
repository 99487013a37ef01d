"""explain gpu: the answers in the index, and the names of the GPUs that it has.

It imports no models, which take longer to import than all other work of a lookup.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, TypeVar

from cudaredist.commands.explain.newest_releases import NewestReleases
from cudaredist.commands.explain.report import PackageCoverage, ReleaseCoverage, ReleaseSpan
from cudaredist.formats.plain_report import PlainEntry, as_json
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.facts_index import Index, Question
from cudaredist.tables.explanation import Claim, Fact, Topic
from cudaredist.tables.gpus.matching_gpus import NamedGpu

_Entry = TypeVar("_Entry", bound=PlainEntry)


class GpuAnswer(NamedTuple):
    """The answer about a capability."""

    sentence: str
    """The CUDA releases that support it."""
    newest: NewestReleases | None
    """None: the feature files have no release of CUDA."""
    topic: Topic
    coverage: tuple[PackageCoverage, ...]

    def text(self) -> str:
        """Return the answer as JSON."""
        values = {
            "sentence": self.sentence,
            "newest": self.newest and self.newest._asdict(),
            "topic": as_json(self.topic),
            "coverage": as_json(self.coverage),
        }
        return json.dumps(values, ensure_ascii=False)

    @classmethod
    def parse(cls, text: str) -> "GpuAnswer":
        """Return the answer of JSON that `text` returned."""
        values = json.loads(text)
        newest, topic = values["newest"], values["topic"]
        return cls(
            sentence=values["sentence"],
            newest=newest and NewestReleases(**newest),
            topic=Topic(title=topic["title"], facts=tuple(map(_fact, topic["facts"]))),
            coverage=tuple(map(_coverage, values["coverage"])),
        )


def _fact(values: Mapping[str, Any]) -> Fact:
    claims = tuple(_entry(Claim, claim) for claim in values["otherwise"])
    return _entry(Fact, values, otherwise=claims)


def _coverage(values: Mapping[str, Any]) -> PackageCoverage:
    models = {"any": ReleaseSpan, "native": ReleaseSpan, "ptx": ReleaseSpan}
    parts = {
        name: _entry(model, values[name])
        for name, model in (models | {"without": ReleaseCoverage}).items()
        if values[name] is not None
    }
    return _entry(PackageCoverage, values, **parts)


def _entry(model: type[_Entry], values: Mapping[str, Any], **parts: object) -> _Entry:
    """Return a part of a report with the values of JSON, and parts of its own."""
    plain = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    return model(**(plain | parts))


class _StoredAnswer(NamedTuple):
    capability: str
    answer: str


_ANSWERS = Question(
    _StoredAnswer,
    """
    SELECT capability, answer FROM gpu_answers
    WHERE channel = ? AND is_layered = ? AND capability IN (SELECT value FROM json_each(?))""",
)


class _GpuRow(NamedTuple):
    layer: str
    capability: str
    family: str
    products: str
    renamed_to: str | None


_GPUS = Question(
    _GpuRow, "SELECT layer, capability, family, products, renamed_to FROM gpus ORDER BY rowid"
)


def stored_answers(names: Collection[str], store: Store, index: Index) -> dict[str, GpuAnswer]:
    """Return the answers about capabilities that the index has."""
    if not _is_complete(store):
        return {}
    rows = index.ask(_ANSWERS, *_scope(store), names)
    return {row.capability: GpuAnswer.parse(row.answer) for row in rows}


def store_answers(answers: Mapping[str, GpuAnswer], store: Store, index: Index) -> None:
    """Store answers in the index."""
    if not _is_complete(store):
        return
    rows = [(*_scope(store), name, answer.text()) for name, answer in answers.items()]
    query = "INSERT OR REPLACE INTO gpu_answers VALUES (?, ?, ?, ?)"
    index.database.add_answers(lambda connection: connection.executemany(query, rows))


def _is_complete(store: Store) -> bool:
    """Check if the index has all files on which answers depend.

    Shipped policies and wheels are used even without the shipped data.
    """
    return store.layers[-1].root.resolve() == shipped_data().resolve()


def _scope(store: Store) -> tuple[str, str]:
    """Return the channel, and `1` for a data folder over the shipped data.

    Such a folder does not have the shipped releases that were not examined.
    """
    return store.channel, str(int(store.base is not None))


def indexed_gpus(index: Index) -> dict[str, NamedGpu]:
    """Return the names of GPUs by capability, none if several tables have to be merged."""
    rows = index.ask(_GPUS)
    if len({row.layer for row in rows}) > 1:
        return {}
    return {
        row.capability: NamedGpu((*json.loads(row.products), row.family), row.renamed_to)
        for row in rows
    }
