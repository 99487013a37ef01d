"""Packages whose CUDA major nothing states."""

from cudaredist.formats.packageset import InSet
from cudaredist.redists import CUDA, REDISTS
from cudaredist.sets.bounds import is_within
from cudaredist.sets.cuda_majors import states_cuda
from cudaredist.sets.draft import Draft
from cudaredist.sets.file_outputs import nested_folder
from cudaredist.sets.spec import SetSpec


def is_cuda_known(draft: Draft, spec: SetSpec) -> bool:
    """Check if manifests, policy or files state the CUDA major of an available package."""
    manifest, archive = draft.manifest, draft.archive
    if manifest is None or archive is None:
        return True
    redist, label = manifest.redist, manifest.label
    majors = spec.data.cuda_majors
    return (
        states_cuda(redist, label, archive.id)
        or majors.is_stated(redist, label, draft.pname, spec.cuda)
        or any(
            entry.redist == redist and entry.cuda.max and is_within(label, entry.releases)
            for entry in spec.policies.constraints.constraints
        )
        or _is_shown_by_files(draft, spec)
    )


def _is_shown_by_files(draft: Draft, spec: SetSpec) -> bool:
    """Check if files show a package's CUDA major, or that it does not depend on CUDA.

    That is a folder such as `lib/12`, a needed library of CUDA, or no device code. If the package
    was not examined, only the main packages of NVIDIA's CUDA libraries are known to depend on it.
    """
    if draft.split is None:
        known = REDISTS.get(draft.redist or "")
        return known is None or draft.pname not in known.packages[:1]
    examined = draft.split.examined
    if (
        not examined.device_code
        or nested_folder(examined.cuda_versions_in_lib, spec.cuda) is not None
    ):
        return True
    names = spec.data.names
    return any(
        need.kind == "needed"
        and isinstance(need.satisfied_by, InSet)
        and need.satisfied_by.attr in names
        and names[need.satisfied_by.attr].redist == CUDA
        for need in draft.needs
    )
