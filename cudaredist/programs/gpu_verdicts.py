"""Whether required GPUs run the device code of a program or package."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, Self, get_args

from cudaredist.formats.coverage import Coverage
from cudaredist.primitives import Platform
from cudaredist.programs.finding import Finding, some_of
from cudaredist.programs.gpu_coverage import RUNS
from cudaredist.programs.gpu_gaps import GpuGaps, find_gaps
from cudaredist.programs.judge import JudgedProgram
from cudaredist.programs.report import GpuAnswer, RequiredGpu
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.coverage import CoverageRules, describe_share

WITHOUT_CODE = "no device code of its own; its libraries decide"
_WORST_FIRST = tuple(reversed(get_args(GpuAnswer)))
_SELECTED = "code for other GPUs only, which those of capability"


class GpuVerdict(NamedTuple):
    """Whether a GPU runs a program or package."""

    gpu: str
    answer: GpuAnswer
    reason: str
    finding: Finding | None = None

    @classmethod
    def unknown(cls, gpu: str) -> Self:
        """Return the verdict on an unknown GPU."""
        message = f"GPUs of capability {gpu} are unknown"
        return cls(gpu, "unknown", message, Finding("unknown", message))

    @property
    def rank(self) -> int:
        """Its position, 0 for the worst."""
        return _WORST_FIRST.index(self.answer)

    def of_package(self, title: str) -> Self:
        """Return the verdict with the title of the package that it is about."""
        finding = self.finding
        if finding is not None:
            message = f"{title}: {finding.message}"
            finding = finding._replace(message=message, package=title)
        return self._replace(reason=f"{title}: {self.reason}", finding=finding)

    def report(self, name: str) -> RequiredGpu:
        """Return the entry of the report. `name` is the name of the GPU in the command."""
        return RequiredGpu(gpu=name, capability=self.gpu, answer=self.answer, reason=self.reason)


def may_lack_code(part: Coverage) -> bool:
    """Check if a GPU runs no code of a package, or possibly none."""
    return part.value == "none" or (part.value == "unknown" and part.by_desktop_code)


def program_verdicts(judged: JudgedProgram) -> list[GpuVerdict]:
    """Return whether each required GPU runs a program."""
    gpus, rules = judged.required.gpus, judged.data.rules
    jetsons = jetson_verdicts(gpus, judged.platforms, rules)

    def gaps_of(gpu: str) -> GpuGaps | None:
        """Return the gaps of the best alternative."""
        if rules is None:
            return None
        part = coverage.get(gpu)
        fitting = rules if part is None else rules.rules_for(part)
        found: list[GpuGaps] = []
        for code in judged.codes:
            is_package = all(file.is_packaged for file in code.files)
            gaps = find_gaps(code.files, gpu, fitting, is_package=is_package)
            if gaps is not None:
                found.append(gaps)
        return min(found, key=lambda gaps: (gaps.is_critical, len(gaps.files)), default=None)

    coverage, is_nvidia = judged.coverage or {}, judged.codes[0].nvidia is not None
    return [
        jetsons.get(gpu) or gpu_verdict(gpu, coverage.get(gpu), gaps_of, rules, is_nvidia=is_nvidia)
        for gpu in gpus
    ]


def jetson_verdicts(
    gpus: Iterable[str], platforms: Collection[str], rules: CoverageRules | None
) -> Mapping[str, GpuVerdict]:
    """Return a verdict for each GPU of a Jetson if the program is for other machines."""
    if rules is None or not platforms:
        return {}
    runs = {gpu for name in platforms for gpu in rules.capabilities_on(Platform(name))}
    found = {}
    for name in gpus:
        gpu = Capability.parse(name)
        if gpu in rules.capabilities and gpu not in runs:
            reason = f"it is for {', '.join(sorted(platforms))}"
            message = f"Jetsons of capability {name} do not run it: {reason}"
            found[name] = GpuVerdict(name, "no", reason, Finding("gpu", message))
    return found


def gpu_verdict(
    gpu: str,
    part: Coverage | None,
    gaps_of: Callable[[str], GpuGaps | None],
    rules: CoverageRules | None,
    *,
    is_nvidia: bool = False,
) -> GpuVerdict:
    """Return whether a GPU runs the device code of a program or package.

    `gaps_of` returns the modules that a GPU does not run, of the files that are loaded together.
    `is_nvidia` states that NVIDIA's libraries select their modules.
    """
    if part is None:
        return GpuVerdict.unknown(gpu)
    if part.value == "host-only":
        return GpuVerdict(gpu, "yes", WITHOUT_CODE)
    if part.value == "unknown":
        return _unknown_verdict(gpu, part, rules)
    how = "from PTX" if part.value == "ptx" or not part.native else "natively"
    how += ", by code for other GPUs" if part.by_desktop_code else ""
    gaps = gaps_of(gpu)
    if part.value in RUNS and (is_nvidia or gaps is None or not gaps.files):
        return GpuVerdict(gpu, "yes", how)
    if gaps is not None and gaps.files and part.value not in {"none", "lto"} and gaps.runs:
        return _partial_verdict(gpu, part, gaps, how, is_nvidia=is_nvidia)
    reason = "no code for them"
    if gaps is not None and gaps.files:
        verb = "must be linked first" if part.value == "lto" else "does not run on them"
        reason = f"the code of {some_of([gap.title for gap in gaps.files])} {verb}"
    last = None if rules is None else rules.last_cuda(gpu)
    reason += f"; CUDA {last} is the last release that supports them" if last else ""
    path = gaps.files[0].path if gaps is not None and gaps.files else None
    finding = Finding("gpu", f"GPUs of capability {gpu} do not run it: {reason}", path)
    return GpuVerdict(gpu, "no", reason, finding)


def _unknown_verdict(gpu: str, part: Coverage, rules: CoverageRules | None) -> GpuVerdict:
    """Return the verdict if the device code cannot be read, or may not run on a Tegra part."""
    fact = rules.desktop_code(gpu) if rules is not None and part.by_desktop_code else None
    if fact is None:
        return GpuVerdict(gpu, "unknown", "its device code cannot be read")
    reason = f"only code for other GPUs, which is known to run from CUDA {fact.value} on"
    message = (
        f"whether GPUs of capability {gpu} run it is unknown: it has only code for other GPUs; "
        f"{fact.reason} ({fact.reference})"
    )
    return GpuVerdict(gpu, "unknown", reason, Finding("unknown", message))


def _partial_verdict(
    gpu: str, part: Coverage, gaps: GpuGaps, how: str, *, is_nvidia: bool
) -> GpuVerdict:
    """Return whether a GPU that runs some modules of a program runs it."""
    if is_nvidia:
        share = describe_share(part)
        message = f"GPUs of capability {gpu} run too little of its code: {share}"
        return GpuVerdict(gpu, "in part", f"too little code, {share}", Finding("gpu", message))
    chosen = [gap for gap in gaps.files if gap.is_critical] or gaps.files
    titles, path = some_of([gap.title for gap in chosen]), chosen[0].path
    if gaps.is_critical:
        message = f"GPUs of capability {gpu} do not run {titles}"
        return GpuVerdict(gpu, "in part", f"not {titles}", Finding("gpu", message, path))
    message = f"{_SELECTED} {gpu} do not run: {titles}"
    reason = f"{how}, but not {titles}, which is for other GPUs only"
    return GpuVerdict(gpu, "yes", reason, Finding("gpu", message, path, is_warning=True))


def worst_verdicts(verdicts: Iterable[GpuVerdict]) -> Iterator[GpuVerdict]:
    """Yield the worst verdict for each GPU."""
    by_gpu: dict[str, GpuVerdict] = {}
    for verdict in verdicts:
        worst = by_gpu.setdefault(verdict.gpu, verdict)
        if verdict.rank < worst.rank:
            by_gpu[verdict.gpu] = verdict
    yield from by_gpu.values()
