"""Releases and variants that fit a CUDA release. Lookups import no models of package sets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cudaredist.errors import UsageError
from cudaredist.hints import correction_line
from cudaredist.primitives import Version
from cudaredist.sets.bounds import is_within
from cudaredist.similar_names import listed_names, nearest_releases
from cudaredist.words import listed, shown

if TYPE_CHECKING:
    from cudaredist.formats.policy import Constraint, ConstraintPolicy


def missing_release(name: str, text: str, labels: Sequence[Version]) -> UsageError:
    """Suggest nearby local releases, and the call with the first of them."""
    known = [str(label) for label in labels]
    nearest = nearest_releases(text, known)
    noun = "release" if len(nearest) == 1 else "releases"
    hint = f"the nearest local {noun}: {listed(nearest)}"
    if not nearest:
        hint, nearest = f"local releases: {listed_names(known)}", known[-1:]
    hint = correction_line(hint, text, nearest[:1])
    return UsageError(f"no local manifest of {name} {shown(text)}", hint=hint)


def broken_constraints(
    redist: str, label: Version, cuda: Version, policy: "ConstraintPolicy"
) -> "list[Constraint]":
    """Return the constraints that a release breaks with a CUDA release."""
    return [
        entry
        for entry in policy.constraints
        if entry.redist == redist
        and is_within(label, entry.releases)
        and not is_within(cuda, entry.cuda)
    ]


def built_for_other(label: Version, cuda: Version) -> str | None:
    """Return a refusal if a label names another CUDA major.

    NCCL's labels contain the CUDA version of the build. None: no other major.
    """
    if not label.suffix or label.suffix[0] == cuda.components[0]:
        return None
    return f"built for CUDA {label.suffix[0]}"


def is_for_later_cuda(label: Version, cuda: Version) -> bool:
    """Check if a label (of NCCL) names a later CUDA minor."""
    return label.suffix > cuda.components[:2]


def variants_of(cuda: Version) -> tuple[str, ...]:
    """Return the variants for a CUDA release, best first: `cuda12.6.3 cuda12.6 cuda12`."""
    numbers = [str(number) for number in cuda.components]
    return tuple(f"cuda{'.'.join(numbers[:count])}" for count in range(len(numbers), 0, -1))
