"""Properties of coverage: more code never lowers it, and required coverage holds."""

from functools import cache

from conftest import REPOSITORY, examples
from hypothesis import given
from hypothesis import strategies as st
from support.set_inputs import LINUX, Release, build, cuda, image_sizes, set_data_of, with_code

from cudaredist.formats.features import FileCode
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.tables import Gpus
from cudaredist.tables.gpus.coverage import CoverageRules

WORST_FIRST = ("none", "partial", "lto", "ptx", "native")
GPUS = ("7.0", "7.5", "8.0", "8.6", "9.0", "10.0", "12.0")

images = st.sampled_from(
    [
        *("sm_50", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_90a", "sm_100f", "sm_120"),
        *("compute_50", "compute_70", "compute_75", "compute_80", "compute_90", "lto_75"),
    ]
)
keys = st.lists(images, min_size=1, max_size=4, unique=True).map(" ".join)
modules = st.dictionaries(keys, st.integers(1, 300), min_size=1, max_size=4)


@cache
def rules() -> CoverageRules:
    return CoverageRules(read_own_file((REPOSITORY / "data/gpus.json").read_bytes(), Gpus))


def rank(files: list[dict[str, int]], gpu: str) -> int:
    codes = [
        FileCode(output="lib", modules=each, bytes={}, unpacked=image_sizes(each)) for each in files
    ]
    return WORST_FIRST.index(rules().cover(codes, [gpu])[gpu].value)


@examples(2)
@given(st.lists(modules, min_size=1, max_size=3), st.sampled_from(GPUS), st.data())
def test_coverage_is_not_lowered_by_more_images(
    files: list[dict[str, int]], gpu: str, data: st.DataObject
) -> None:
    before = rank(files, gpu)
    file = data.draw(st.sampled_from(files))
    image = f"sm_{gpu.replace('.', '')}"
    key = data.draw(st.sampled_from(["", *sorted(file)]))
    if key:
        file[key] -= 1
        if not file[key]:
            del file[key]
    more = " ".join(sorted({*key.split(), image}))
    file[more] = file.get(more, 0) + 1
    assert rank(files, gpu) >= before


@examples(1 / 4)
@given(
    st.lists(st.tuples(modules, modules | st.none()), min_size=1, max_size=4),
    st.lists(st.sampled_from(GPUS), min_size=1, max_size=2, unique=True),
)
def test_set_with_required_ptx_contains_no_package_without_it(
    builds: list[tuple[dict[str, int], dict[str, int] | None]], capabilities: list[str]
) -> None:
    releases = [
        Release("cutensor", f"2.{n}.0", {"libcutensor": [LINUX]}, {"libcutensor": with_code(*code)})
        for n, code in enumerate(builds)
    ]
    data = set_data_of(cuda(), *releases)
    made = build(data, capabilities=tuple(capabilities), require_coverage="ptx")
    found = made.packages["libcutensor"]
    values = {part.value for part in found.coverage.values()}
    assert values <= {"native", "ptx", "host-only"}
    assert (found.status == "available") is bool(values)
