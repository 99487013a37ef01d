"""explain gpu: the answers in the index, and the names of the GPUs that it has.

It imports no models, which take longer to import than all other work of a lookup.
"""

import json
from collections.abc import Collection, Mapping
from typing import NamedTuple

from cudaredist.commands.explain.newest_releases import NewestReleases
from cudaredist.commands.explain.report import PackageCoverage, ReleaseCoverage, ReleaseSpan
from cudaredist.formats.plain_report import Parts, as_json, from_json
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.facts_index import Index, Question
from cudaredist.tables.explanation import Claim, Fact, Topic
from cudaredist.tables.gpus.matching_gpus import NamedGpu

_PARTS: Parts = {
    Topic: {"facts": Fact},
    Fact: {"otherwise": Claim},
    PackageCoverage: {
        **dict.fromkeys(("any", "native", "ptx"), ReleaseSpan),
        "without": ReleaseCoverage,
    },
}


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
        newest = values["newest"]
        return cls(
            sentence=values["sentence"],
            newest=newest and NewestReleases(**newest),
            topic=from_json(Topic, values["topic"], _PARTS),
            coverage=tuple(from_json(PackageCoverage, x, _PARTS) for x in values["coverage"]),
        )


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
