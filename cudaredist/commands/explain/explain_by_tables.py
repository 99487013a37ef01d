"""explain: facts from the tables, with the layer of each."""

from collections.abc import Mapping
from typing import Literal

from cudaredist.commands.explain.coverage_history import coverage_of_releases, read_coverage
from cudaredist.commands.explain.newest_together import newest_together
from cudaredist.commands.explain.report import ExplainReport
from cudaredist.errors import CudaRedistError, worst_exit_code
from cudaredist.formats.policy import DriverPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.report import ErrorReport
from cudaredist.formats.tables import Gpus, NvccCompat
from cudaredist.hints import command_line
from cudaredist.manifests.manifest_values import Package
from cudaredist.primitives import Version, parse_label
from cudaredist.redists import CUDA
from cudaredist.sets.drivers import driver_facts
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Layer, Store, layer_of
from cudaredist.store.facts_index import Index
from cudaredist.store.layered_tables import LayeredTable, require_layered
from cudaredist.store.read_data import load_manifest, process_command
from cudaredist.store.table_registry import GPU_TABLE, NVCC_TABLE, read_gpu_policy, read_nvcc_policy
from cudaredist.tables.explain_driver import gpu_facts
from cudaredist.tables.explain_gpu import explain_cuda, explain_gpu
from cudaredist.tables.explain_nvcc import explain_nvcc
from cudaredist.tables.explanation import Topic
from cudaredist.tables.gpus.coverage import CoverageRules
from cudaredist.tables.gpus.gpu_names import capabilities_called
from cudaredist.tables.nvcc.nvcc_table import newest_of


def explain_by_tables(
    subject: Literal["nvcc", "gpu", "cuda"], name: str, store: Store, cache: Cache
) -> ExplainReport:
    """Explain an nvcc, a GPU or a CUDA release.

    Manifests that cannot be read are among the errors of the report. Raises `IncompleteError` if no
    layer has the table, and `UnknownNameError` for an unknown name.
    """
    about: dict[str, object] = {}
    errors: tuple[ErrorReport, ...] = ()
    if subject == "gpu":
        gpus = require_layered(store, GPU_TABLE)
        explained = explain_gpu(name, gpus.table, read_gpu_policy(store))
        drivers = read_own_file(store.read_policy("drivers"), DriverPolicy)
        topics = tuple(_with_layers(topic, gpus.layers) for topic in explained)
        names = capabilities_called(name, gpus.table)
        topics = tuple(
            topic.model_copy(
                update={
                    "facts": (*topic.facts, *gpu_facts(gpus.table.capabilities[called], drivers))
                }
            )
            for topic, called in zip(topics, names, strict=True)
        )
        archives = read_coverage(names, Index(store, cache), gpus.table, CoverageRules(gpus.table))
        coverage = coverage_of_releases(names, archives, gpus.table)
        about = {
            "newest": tuple(newest_together(names, archives, store, gpus.table)),
            "coverage": coverage,
            "hint": None if coverage else _hint(store),
        }
    elif subject == "nvcc":
        compat = require_layered(store, NVCC_TABLE)
        topic = explain_nvcc(name, compat.table, read_nvcc_policy(store))
        topics = (_with_layers(topic, compat.layers),)
    else:
        tables = CudaTables(
            require_layered(store, NVCC_TABLE), require_layered(store, GPU_TABLE), store
        )
        topics, errors = tables.explain(name)
    about |= {"kind": subject, "asked": name, "topics": topics, "errors": errors}
    code = worst_exit_code(error.exit_code for error in errors)
    return ExplainReport.model_validate(about | {"exit_code": code})


class CudaTables:
    """The tables and policies with facts about CUDA releases, read once."""

    def __init__(
        self, compat: LayeredTable[NvccCompat], gpus: LayeredTable[Gpus], store: Store
    ) -> None:
        """Raise `InvalidFileError` for a broken policy."""
        self._compat, self._gpus, self._store = compat, gpus, store
        self._nvcc_policy = read_nvcc_policy(store)
        self._driver_policy = read_own_file(store.read_policy("drivers"), DriverPolicy)
        self._lines = {parse_label(label).line for label in compat.table.releases}

    def has_line(self, label: Version) -> bool:
        """Check if the table of host compilers has the minor of a release."""
        return label.line in self._lines

    def explain(self, name: str) -> tuple[tuple[Topic, ...], tuple[ErrorReport, ...]]:
        """Return the facts about a release, and the errors of its manifests.

        Raises `UnknownNameError`.
        """
        compat, gpus = self._compat, self._gpus
        minor = parse_label(newest_of(name, compat.table)).line
        topics = explain_cuda(name, compat.table, gpus.table, self._nvcc_policy)
        drivers, errors = self._drivers(minor)
        layer = layer_of(self._store.manifest_root)
        labels = (fact.release for topic in drivers for fact in topic.facts if fact.release)
        layers = compat.layers, gpus.layers, dict.fromkeys(labels, layer)
        return tuple(map(_with_layers, (*topics, *drivers), layers)), errors

    def _drivers(self, minor: str) -> tuple[tuple[Topic, ...], tuple[ErrorReport, ...]]:
        """Return the known drivers for a CUDA minor, and the errors of its manifests."""
        manifests: dict[Version, tuple[Package, ...]] = {}
        errors: list[ErrorReport] = []
        for label in self._store.manifests(CUDA).labels():
            if label.line == minor:
                try:
                    manifests[label] = load_manifest(self._store, CUDA, label).packages
                except CudaRedistError as error:
                    errors.append(ErrorReport.of(error))
        facts = tuple(driver_facts(manifests, minor, self._driver_policy))
        topics = (Topic(title=f"drivers for CUDA {minor}", facts=facts),) if facts else ()
        return topics, tuple(errors)


def _hint(store: Store) -> str | None:
    """Return the command to create feature files, or None if there are some."""
    if any(layer.feature_redists() for layer in store.feature_stores()):
        return None
    if store.redists():
        return process_command(store)
    return command_line("download-manifests", channel=store.channel)


def _with_layers(topic: Topic, layers: Mapping[str, Layer]) -> Topic:
    """Add the layer of its release to each fact of a topic."""
    facts = (
        fact.model_copy(update={"layer": layers.get(fact.release or "")}) for fact in topic.facts
    )
    return topic.model_copy(update={"facts": tuple(facts)})
