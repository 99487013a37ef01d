"""explain: facts from the tables, with the layer of each."""

from collections.abc import Mapping
from typing import Literal

from cudaredist.commands.explain.coverage_history import coverage_of_releases, read_coverage
from cudaredist.commands.explain.newest_together import newest_together
from cudaredist.commands.explain.report import ExplainReport
from cudaredist.commands.explain.table_answers import cuda_answer, gpu_answer, nvcc_answer
from cudaredist.errors import EXIT_INCOMPLETE, EXIT_OK, CudaRedistError, worst_exit_code
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.names import CHANNEL_SUBJECTS
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.report import ErrorReport
from cudaredist.formats.tables import Gpus, NvccCompat
from cudaredist.hints import command_line
from cudaredist.manifests.manifest_values import Package
from cudaredist.primitives import Version, find_release, parse_label
from cudaredist.progress import NO_PROGRESS, Progress
from cudaredist.redists import CUDA
from cudaredist.sets.drivers import driver_facts
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Layer, Store, layer_of
from cudaredist.store.facts_index import Index
from cudaredist.store.known_vulnerabilities import known_vulnerabilities
from cudaredist.store.layered_tables import LayeredTable, require_layered
from cudaredist.store.local_manifests import process_command
from cudaredist.store.locate import channels_to_read
from cudaredist.store.read_data import load_manifest
from cudaredist.store.table_registry import GPU_TABLE, NVCC_TABLE, read_gpu_policy, read_nvcc_policy
from cudaredist.tables.advisories.topics import release_answer, release_topic
from cudaredist.tables.explain_compiler import explain_compiler, is_compiler
from cudaredist.tables.explain_gpu import explain_cuda, explain_gpu
from cudaredist.tables.explain_nvcc import explain_nvcc
from cudaredist.tables.explanation import Topic
from cudaredist.tables.gpus.coverage import CoverageRules
from cudaredist.tables.gpus.gpu_names import capabilities_called
from cudaredist.tables.nvcc.nvcc_table import newest_release
from cudaredist.words import plural


def explain_by_tables(
    subject: Literal["nvcc", "gpu", "cuda"],
    name: str,
    store: Store,
    cache: Cache,
    progress: Progress = NO_PROGRESS,
) -> ExplainReport:
    """Explain an nvcc, a GPU or a CUDA release.

    Manifests that cannot be read are among the errors of the report. Raises `IncompleteError` if no
    layer has the table, and `UnknownNameError` for an unknown name.
    """
    if subject == "gpu":
        return _explain_gpu(name, store, Index(store, cache, progress))
    compat = require_layered(store, NVCC_TABLE)
    if subject == "nvcc" and is_compiler(name):
        accepted, topic = explain_compiler(name, compat.table)
        return ExplainReport(
            kind=subject, asked=name, answer=accepted, topics=(topic,), exit_code=EXIT_OK
        )
    if subject == "nvcc":
        topic = explain_nvcc(name, compat.table, read_nvcc_policy(store))
        return ExplainReport(
            kind=subject,
            asked=name,
            answer="\n".join(nvcc_answer(name, compat.table)),
            topics=(_with_layers(topic, compat.layers),),
            exit_code=EXIT_OK,
        )
    tables = CudaTables(compat, require_layered(store, GPU_TABLE), store)
    if not tables.has(name) and (answer := _without_compilers(name, store)) is not None:
        return ExplainReport(
            kind=subject, asked=name, answer=answer, topics=(), exit_code=EXIT_INCOMPLETE
        )
    all_topics, errors = tables.explain(name)
    code = worst_exit_code(error.exit_code for error in errors)
    known = known_vulnerabilities(store)
    label = parse_label(newest_release(name, compat.table))
    answer = "\n".join(cuda_answer(name, compat.table, tables.gpus, all_topics))
    about, vulnerabilities = release_answer(known, label), release_topic(known, label)
    return ExplainReport(
        kind=subject,
        asked=name,
        answer=answer if about is None else f"{answer}\n{about}",
        topics=all_topics if vulnerabilities is None else (*all_topics, vulnerabilities),
        errors=errors,
        exit_code=code,
    )


def _without_compilers(name: str, store: Store) -> str | None:
    """Return the answer for a release that only manifests have, None if there is none."""
    for channel in channels_to_read(store, None):
        of_channel = store.of_channel(channel)
        label = find_release(name, of_channel.manifests(CUDA).labels())
        if label is None:
            continue
        kind = CHANNEL_SUBJECTS[channel]
        about = {"redist": CUDA, "version": label}
        command = command_line("update-nvcc-compat", channel=channel)
        if layer_of(of_channel.layer_of(CUDA, label).root) == "shipped":
            command = f"{command_line('download-manifests', channel=channel, **about)} && {command}"
        manifest = load_manifest(of_channel, CUDA, label)
        date = f", {manifest.release_date}" if manifest.release_date else ""
        packages = plural(len(manifest.packages), "package")
        platforms = ", ".join(sorted(manifest.platforms))
        return (
            f"CUDA {label} ({kind}{date}): {packages} for {platforms}\n"
            f"its host compilers are unknown: run `{command}`"
        )
    return None


def _explain_gpu(name: str, store: Store, index: Index) -> ExplainReport:
    layered = require_layered(store, GPU_TABLE)
    gpus, policy = layered.table, read_gpu_policy(store)
    names = capabilities_called(name, gpus)
    drivers = read_own_file(store.read_policy("drivers"), DriverPolicy)
    topics = (explain_gpu(one, gpus, policy, drivers) for one in names)
    archives = read_coverage(names, index, gpus, CoverageRules(gpus))
    coverage = coverage_of_releases(names, archives, gpus, index)
    return ExplainReport(
        kind="gpu",
        asked=name,
        newest=tuple(newest_together(names, archives, store, gpus)),
        answer="\n".join(gpu_answer(names, gpus)),
        topics=tuple(_with_layers(topic, layered.layers) for topic in topics),
        coverage=coverage,
        hint=None if coverage else _hint(store),
        exit_code=EXIT_OK,
    )


class CudaTables:
    """The tables and policies with facts about CUDA releases, read once."""

    def __init__(
        self, compat: LayeredTable[NvccCompat], gpus: LayeredTable[Gpus], store: Store
    ) -> None:
        """Raise `InvalidFileError` for a broken policy."""
        self._compat, self._gpus, self._store = compat, gpus, store
        self.gpus = gpus.table
        self._nvcc_policy = read_nvcc_policy(store)
        self._driver_policy = read_own_file(store.read_policy("drivers"), DriverPolicy)

    def has(self, name: str) -> bool:
        """Check if the table of host compilers has a release or a line."""
        return find_release(name, map(parse_label, self._compat.table.releases)) is not None

    def explain(self, name: str) -> tuple[tuple[Topic, ...], tuple[ErrorReport, ...]]:
        """Return the facts about a release, and the errors of its manifests.

        Raises `UnknownNameError`.
        """
        compat, gpus = self._compat, self._gpus
        minor = parse_label(newest_release(name, compat.table)).line
        topics = list(explain_cuda(name, compat.table, gpus.table, self._nvcc_policy))
        manifests: dict[Version, tuple[Package, ...]] = {}
        errors: list[ErrorReport] = []
        for label in self._store.manifests(CUDA).labels():
            if label.line == minor:
                try:
                    manifests[label] = load_manifest(self._store, CUDA, label).packages
                except CudaRedistError as error:
                    errors.append(ErrorReport.of(error))
        facts = tuple(driver_facts(manifests, minor, self._driver_policy))
        if facts:
            topics.append(Topic(title=f"drivers for CUDA {minor}", facts=facts))
        of_manifests = {
            str(label): layer_of(self._store.layer_of(CUDA, label).root) for label in manifests
        }
        layers = compat.layers, gpus.layers, of_manifests
        return tuple(map(_with_layers, topics, layers)), tuple(errors)


def _hint(store: Store) -> str | None:
    """Return the command to create feature files, or None if there are some."""
    if store.feature_redists():
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
