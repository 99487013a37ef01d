"""Diagnostics of requested releases: those that a set cannot use, and those that are allowed."""

from collections.abc import Iterable, Mapping

from cudaredist.formats.packageset import Diagnostic
from cudaredist.sets.draft import Draft
from cudaredist.sets.libraries import warning
from cudaredist.sets.spec import SetSpec
from cudaredist.sets.version_choice import main_packages

UNUSABLE = "requested-unusable"
"""The diagnostic code of a requested release that the set cannot use."""
ALLOWED = "allowed-broken"
"""The diagnostic code of a package that policy calls broken and the user allows."""


def requested_diagnostics(drafts: Mapping[str, Draft], spec: SetSpec) -> Iterable[Diagnostic]:
    """Yield a warning for each requested release that cannot be used, and each allowed package."""
    for manifest in (*spec.pins.values(), *spec.also):
        of_release = [draft for draft in drafts.values() if draft.manifest is manifest]
        names = set(main_packages(manifest, spec.data))
        main = [draft for draft in of_release if draft.pname in names] or of_release
        if any(draft.is_available for draft in main):
            continue
        text = f"{manifest.label} was requested, but the set has no package of it"
        if main:
            refusal = _refusal_text(main[0], spec.request.options.allow)
            text = f"{manifest.label} was requested, but {refusal}"
        yield warning(UNUSABLE, manifest.redist, text)
    for attr, draft in drafts.items():
        if draft.allowed:
            text = f"policy calls it broken, but it is allowed: {'; '.join(draft.allowed)}"
            yield warning(ALLOWED, attr, text)


def _refusal_text(draft: Draft, allow: str) -> str:
    """Describe why a package is not available, with the option that allows it if one does."""
    reasons = "; ".join(reason.text for reason in draft.reasons)
    is_of_policy = draft.status == "broken" and all(
        reason.source.removeprefix("overlay ").startswith("policy/") for reason in draft.reasons
    )
    option = f"; to use it, add `{allow} {draft.redist}`" if is_of_policy else ""
    return f"{draft.pname} is {draft.status}: {reasons}{option}"
