"""Libraries of CUDA that an archive of another redistributable needs."""

import re
from collections import defaultdict
from collections.abc import Mapping

from cudaredist.formats.features import ExaminedArchive
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Platform, Version
from cudaredist.redists import CUDA
from cudaredist.sets.file_outputs import is_for_other_cuda
from cudaredist.sets.inputs import SetData
from cudaredist.sets.library_names import find_external
from cudaredist.sets.outputs import nested_refusal
from cudaredist.sets.platforms import select_archive
from cudaredist.words import listed

_is_versioned = re.compile(r"(?P<stem>.+)\.so\.\d[\d.]*", re.IGNORECASE).fullmatch
_is_versioned_dll = re.compile(r"(?P<stem>.+?)_\d+(_\d+)?\.dll", re.IGNORECASE).fullmatch


class CudaLibraries:
    """The libraries of a CUDA release on a platform."""

    def __init__(self, cuda: Version, platform: Platform, data: SetData) -> None:
        """Read the sonames of the release. Without its feature file, they are unknown."""
        self.cuda = cuda
        self._policy = data.policies.libraries
        self._sonames = _sonames(cuda, platform, data)

    def refusal(self, examined: ExaminedArchive) -> str | None:
        """Return a refusal if an archive's files are for other CUDA releases, or None."""
        return nested_refusal(examined, self.cuda) or self._needed_refusal(examined)

    def _needed_refusal(self, examined: ExaminedArchive) -> str | None:
        """Return a refusal if an archive needs a library of another CUDA release, or None.

        An archive with files for several CUDA releases is usable if some are for this one.
        """
        needed: dict[str, list[tuple[str, str]]] = defaultdict(list)
        bundled = {file.soname for file in examined.libraries}
        for file in examined.libraries:
            if not file.stub and not is_for_other_cuda(
                file.path, examined.cuda_versions_in_lib, self.cuda
            ):
                for soname in set(file.needed) - bundled:
                    needed[_stem(soname)].append((soname, file.path))
        for stem, files in sorted(needed.items()):
            own = self._sonames.get(stem, frozenset())
            # Tools of CUDA have own copies of the system's libraries.
            is_external = any(find_external(soname, self._policy) for soname, _ in files)
            if own and not is_external and own.isdisjoint(soname.lower() for soname, _ in files):
                soname, path = min(files)
                return f"{path} needs {soname}, but CUDA {self.cuda} has {listed(sorted(own))}"
        return None


def _sonames(cuda: Version, platform: Platform, data: SetData) -> Mapping[str, frozenset[str]]:
    """Return the sonames of a CUDA release, in lower case, by the name without its version."""
    features = data.read_features(CUDA, cuda)
    found: dict[str, set[str]] = defaultdict(set)
    for name, package in data.manifests[CUDA][cuda].packages.items():
        archive = select_archive(package, platform, cuda)
        if features is None or not isinstance(archive, Archive):
            continue
        examined = features.examined.get((name, archive.sha256 or ""))
        for library in examined.libraries if examined else ():
            soname = library.soname or library.path.rpartition("/")[2]
            found[_stem(soname)].add(soname.lower())
    return {stem: frozenset(names) for stem, names in found.items() if stem}


def _stem(soname: str) -> str:
    """Return a library's name without its version, in lower case; empty without a version."""
    match = _is_versioned(soname) or _is_versioned_dll(soname)
    return match["stem"].lower() if match else ""
