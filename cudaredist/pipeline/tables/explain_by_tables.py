"""explain: facts from the tables, with the layer of each."""

from collections.abc import Mapping
from typing import Literal

from cudaredist.errors import CudaRedistError, command_line, worst_exit_code
from cudaredist.manifests.manifest_values import Package
from cudaredist.packagesets.drivers import driver_facts
from cudaredist.pipeline.read_data import load_manifest, process_command
from cudaredist.pipeline.tables.coverage_history import coverage_of_releases
from cudaredist.pipeline.tables.layered_tables import require_gpus, require_nvcc_compat
from cudaredist.pipeline.tables.table_registry import read_gpu_policy, read_nvcc_policy
from cudaredist.primitives import Version, parse_label
from cudaredist.redists import CUDA
from cudaredist.reports.answer_reports import ExplainReport, PackageCoverage
from cudaredist.reports.report import ErrorReport
from cudaredist.schema.policy import DriverPolicy
from cudaredist.schema.registry import read_own_file
from cudaredist.store.data_folder import Layer, Store, shipped_data
from cudaredist.tables.explain_gpu import capabilities_called, explain_cuda, explain_gpu
from cudaredist.tables.explain_nvcc import explain_nvcc
from cudaredist.tables.explanation import Topic
from cudaredist.tables.nvcc_compat.nvcc_table import newest_of


def explain_by_tables(
    subject: Literal["nvcc", "gpu", "cuda"], name: str, store: Store
) -> ExplainReport:
    """Explain an nvcc, a GPU or a CUDA release.

    Manifests that cannot be read are among the errors of the report. Raises `IncompleteError` if no
    layer has the table, and `UnknownNameError` for an unknown name.
    """
    coverage: tuple[PackageCoverage, ...] = ()
    errors: tuple[ErrorReport, ...] = ()
    hint: str | None = None
    if subject == "gpu":
        gpus = require_gpus(store)
        topics = explain_gpu(name, gpus.table, read_gpu_policy(store))
        layers = [gpus.layers] * len(topics)
        coverage = coverage_of_releases(capabilities_called(name, gpus.table), store, gpus.table)
        hint = None if coverage else _hint(store)
    elif subject == "nvcc":
        compat = require_nvcc_compat(store)
        topics = (explain_nvcc(name, compat.table, read_nvcc_policy(store)),)
        layers = [compat.layers]
    else:
        compat, gpus = require_nvcc_compat(store), require_gpus(store)
        minor = parse_label(newest_of(name, compat.table)).line
        topics = explain_cuda(name, compat.table, gpus.table, read_nvcc_policy(store))
        drivers, errors = _drivers(minor, store)
        topics += drivers
        layer: Layer = "shipped" if store.manifest_root == shipped_data() else "local"
        labels = (fact.release or "" for topic in drivers for fact in topic.facts)
        layers = [compat.layers, gpus.layers, dict.fromkeys(labels, layer)]
    return ExplainReport(
        kind=subject,
        asked=name,
        topics=tuple(map(_with_layers, topics, layers)),
        coverage=coverage,
        errors=errors,
        hint=hint,
        exit_code=worst_exit_code(error.exit_code for error in errors),
    )


def _drivers(minor: str, store: Store) -> tuple[tuple[Topic, ...], tuple[ErrorReport, ...]]:
    """Return the known drivers for a CUDA minor, and the errors of its manifests."""
    manifests: dict[Version, tuple[Package, ...]] = {}
    errors: list[ErrorReport] = []
    for label in store.manifests(CUDA).labels():
        if label.line == minor:
            try:
                manifests[label] = load_manifest(store, CUDA, label).packages
            except CudaRedistError as error:
                errors.append(ErrorReport.of(error))
    policy = read_own_file(store.read_policy("drivers"), DriverPolicy)
    facts = tuple(driver_facts(manifests, minor.partition(".")[0], policy))
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
