"""explain cuda: facts from the tables, with the layer of each."""

from functools import cache, partial

from cudaredist.commands.explain.report import ExplainReport
from cudaredist.commands.explain.table_answers import cuda_answer
from cudaredist.errors import EXIT_INCOMPLETE, CudaRedistError, worst_exit_code
from cudaredist.formats.driver_policy import DriverPolicy
from cudaredist.formats.error_report import ErrorReport
from cudaredist.formats.names import CHANNEL_SUBJECTS
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import Gpus, NvccCompat
from cudaredist.hints import command_line
from cudaredist.manifests.manifest_values import Package
from cudaredist.primitives import Version, find_release, parse_label
from cudaredist.redists import CUDA
from cudaredist.store.data_folder import Store, layer_of
from cudaredist.store.known_vulnerabilities import known_vulnerabilities
from cudaredist.store.layered_tables import LayeredTable, require_layered
from cudaredist.store.local_manifests import load_manifest
from cudaredist.store.locate import channels_to_read
from cudaredist.store.table_registry import GPU_TABLE, NVCC_TABLE, read_nvcc_policy
from cudaredist.tables.advisories.topics import release_answer, release_topic
from cudaredist.tables.explain_gpu import explain_cuda
from cudaredist.tables.explanation import Topic, with_layers
from cudaredist.tables.nvcc.nvcc_table import newest_release
from cudaredist.tables.release_drivers import driver_facts
from cudaredist.words import plural


def explain_cuda_release(name: str, store: Store) -> ExplainReport:
    """Explain a CUDA release.

    Manifests that cannot be read are among the errors of the report. Raises `IncompleteError` if no
    layer has the tables, and `UnknownNameError` for an unknown name.
    """
    compat = require_layered(store, NVCC_TABLE)
    tables = CudaTables(compat, require_layered(store, GPU_TABLE), store)
    if not tables.has(name) and (answer := _without_compilers(name, store)) is not None:
        return ExplainReport(
            kind="cuda", asked=name, answer=answer, topics=(), exit_code=EXIT_INCOMPLETE
        )
    all_topics, errors = tables.explain(name)
    code = worst_exit_code(error.exit_code for error in errors)
    known = known_vulnerabilities(store)
    label = parse_label(newest_release(name, compat.table))
    answer = "\n".join(cuda_answer(name, compat.table, tables.gpus, all_topics))
    about, vulnerabilities = release_answer(known, label), release_topic(known, label)
    return ExplainReport(
        kind="cuda",
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
        # The releases of a minor have the same facts about drivers.
        self._manifest = cache(partial(load_manifest, store, CUDA))

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
                    manifests[label] = self._manifest(label).packages
                except CudaRedistError as error:
                    errors.append(ErrorReport.of(error))
        facts = tuple(driver_facts(manifests, minor, self._driver_policy))
        if facts:
            topics.append(Topic(title=f"drivers for CUDA {minor}", facts=facts))
        of_manifests = {
            str(label): layer_of(self._store.layer_of(CUDA, label).root) for label in manifests
        }
        layers = compat.layers, gpus.layers, of_manifests
        return tuple(map(with_layers, topics, layers)), tuple(errors)
