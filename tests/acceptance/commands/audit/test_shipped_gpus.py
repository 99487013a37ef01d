"""The GPUs of all shipped wheels: audit has the answers of package sets and `explain gpu`."""

from functools import lru_cache, partial
from pathlib import Path

from conftest import REPOSITORY

from cudaredist.binaries.file_facts import Binary, CodeSection, DeviceImages
from cudaredist.commands.explain.coverage_history import read_coverage
from cudaredist.environments.audit_program import known_libraries
from cudaredist.formats.features import ExaminedArchive, FileCode
from cudaredist.formats.library_policy import LibraryPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import Gpus
from cudaredist.primitives import ArchiveId
from cudaredist.programs.gpu_coverage import Code, cover
from cudaredist.programs.gpu_gaps import find_gaps
from cudaredist.programs.gpu_verdicts import gpu_verdict
from cudaredist.programs.program import Catalog, ProgramFile, WheelMember
from cudaredist.redists import CUDA
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index
from cudaredist.store.read_data import load_features
from cudaredist.tables.gpus.coverage import CoverageRules

DATA = REPOSITORY / "data"
STORE = Store(DATA, "wheels")
GPUS = read_own_file((DATA / "gpus.json").read_bytes(), Gpus)
RULES = CoverageRules(GPUS)
SAMPLE = {"7.0", "7.5", "12.0"}
ANSWERS = {"native": "yes", "ptx": "yes", "partial": "in part", "lto": "no", "none": "no"}


def member(wheel: str, path: str, code: FileCode) -> ProgramFile:
    """Return a file of a wheel with this device code."""
    sizes = {name: (code.bytes[name], size) for name, size in code.unpacked.items()}
    images = DeviceImages(sizes=sizes, modules=code.modules)
    section = CodeSection(section=".nv_fatbin", is_declared=True, counts={}, kernels=code.modules)
    binary = Binary(kind="elf", is_shared=True, device_code=(section,), images=images)
    return ProgramFile(path, binary, frozenset(), WheelMember(f"dist/{wheel}", path))


def test_audit_of_shipped_wheels_agrees_with_explain_gpu(tmp_path: Path) -> None:
    """The oracle is the coverage by feature files, which package sets also use."""
    index = Index(STORE, Cache(tmp_path))
    policy = read_own_file(STORE.read_policy("libraries"), LibraryPolicy)
    libraries = tuple(known_libraries(index, policy))
    catalog = Catalog(libraries)
    wheels = {
        (lib.redist, lib.label, ArchiveId(lib.package, lib.platform, lib.variant)): lib.wheel
        for lib in libraries
        if lib.wheel is not None
    }
    read_features = lru_cache(maxsize=4)(partial(load_features, STORE))
    capabilities = [str(capability) for capability in RULES.capabilities]
    examined = 0
    for one in read_coverage(capabilities, index, GPUS, RULES):
        wheel = wheels.get((one.redist, one.label, one.archive))
        features = read_features(one.redist, one.label)
        if wheel is None or features is None:
            continue
        (codes,) = (
            archive.code_by_file
            for archive in features.packages[one.archive.package].archives
            if isinstance(archive, ExaminedArchive)
            and (archive.platform, archive.variant) == (one.archive.platform, one.archive.variant)
        )
        files = [member(wheel.rpartition("/")[2], *item) for item in (codes or {}).items()]
        gpus = list(one.by_capability)
        build = catalog.nvidia_build(files)
        assert build is not None, wheel
        release = one.label if one.redist == CUDA else RULES.newest_release(build.cuda)
        coverage = cover(Code(files, build), gpus, RULES, release)
        assert coverage == one.by_capability, wheel
        for gpu in SAMPLE.intersection(gpus):
            verdict = gpu_verdict(
                gpu,
                coverage[gpu],
                partial(find_gaps, files, rules=RULES, is_package=True),
                RULES,
                is_nvidia=True,
            )
            assert verdict.answer == ANSWERS[coverage[gpu].value], (wheel, gpu)
            assert (verdict.finding is None) == (verdict.answer == "yes"), (wheel, gpu)
        examined += 1
    assert examined > 500
