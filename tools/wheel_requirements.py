"""Write what pinned wheels require, and the first wheels: `python -m tools.wheel_requirements`.

`wheels` of `policy/requirements.json` gets the versions in Requires-Dist, for the packages that
need other redistributables. The wheels are those of the shipped manifests. Run it after
`download-manifests --channel wheels`. It reads the METADATA of one wheel of each build.

`first_wheels` of `policy/constraints.json` gets the first release with wheels for each CUDA major.
"""

import json
from collections.abc import Iterator

from cudaredist.jsontext import canonical_json
from cudaredist.primitives import Version
from cudaredist.sources.protocol import Settings
from cudaredist.sources.wheel_index import WheelIndex
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.files import write_file
from cudaredist.store.local_manifests import load_manifest
from cudaredist.wheel_projects import FAMILIES
from cudaredist.wheels import Wheel, newest_builds, parse_wheel, requirements_on

PROJECTS = {
    project: redist for redist, each in FAMILIES.items() for project in each.projects.values()
}


PACKAGES = frozenset({"libcublasmp", "libcufftmp", "libcusolvermp", "libnvtiff"})
"""The packages with wheels that need other redistributables than CUDA."""


def pinned_wheels(store: Store) -> Iterator[Wheel]:
    """Yield one wheel of each project and build in the manifests of these packages."""
    seen = set()
    for redist, family in FAMILIES.items():
        labels = store.manifests(redist).labels() if family.package in PACKAGES else ()
        for label in labels:
            for archive in load_manifest(store, redist, label).archives:
                name = archive.relative_path.rpartition("/")[2]
                wheel = parse_wheel(name, archive.relative_path)
                if wheel is not None and (wheel.project, wheel.version) not in seen:
                    seen.add((wheel.project, wheel.version))
                    yield wheel


def main() -> None:
    """Read the METADATA of the wheels, and write the policy."""
    store = Store(shipped_data(), "wheels")
    wheels = list(pinned_wheels(store))
    index = WheelIndex(Settings())
    listed = index.wheels(sorted({wheel.project for wheel in wheels}))
    by_name = {wheel.file_name: wheel for each in listed.values() for wheel in each}
    metadata = index.metadata([by_name[wheel.file_name] for wheel in wheels])
    first = first_wheels(index)
    index.close()
    required: dict[str, dict[str, dict[str, str]]] = {}
    for wheel, text in zip(wheels, metadata, strict=True):
        versions = {
            project: str(versions)
            for project, versions in requirements_on("linux-x86_64", text.requires).items()
            if project in PROJECTS and str(versions)
        }
        required.setdefault(wheel.project, {})[str(wheel.version)] = versions
    for name, changes in (("requirements", {"wheels": required}), ("constraints", first)):
        path = shipped_data() / "policy" / f"{name}.json"
        write_file(path, canonical_json(json.loads(path.read_bytes()) | changes))


def first_wheels(index: WheelIndex) -> dict[str, dict[str, dict[str, str]]]:
    """Return the first release with wheels, by redistributable and CUDA major."""
    first: dict[str, dict[str, str]] = {}
    for redist, family in FAMILIES.items():
        by_major = {name: variant for variant, name in family.projects.items() if variant}
        listed = {} if family.elsewhere else index.wheels(sorted(by_major))
        for project, wheels in listed.items():
            labels = newest_builds(wheels, family.label)
            if labels:
                major = str(by_major[project]).removeprefix("cuda")
                first.setdefault(redist, {})[major] = min(labels, key=Version.parse)
    return {"first_wheels": first}


if __name__ == "__main__":
    main()
