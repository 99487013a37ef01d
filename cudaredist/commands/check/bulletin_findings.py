"""Findings about bulletins without a decision in the policy."""

from collections.abc import Iterator

from cudaredist.commands.check.checked_files import CheckedFiles
from cudaredist.commands.check.findings import finding
from cudaredist.commands.check.report import Finding
from cudaredist.errors import CudaRedistError
from cudaredist.primitives import sha256_of
from cudaredist.store.data_folder import Store
from cudaredist.words import shown

_ADVISORIES = "advisories"
_KIND = "advisories and their policy"


def bulletin_findings(store: Store, checked: CheckedFiles) -> Iterator[Finding]:
    """Yield the bulletins and products without a decision in the policy.

    A bulletin that changed after the decisions may need other ones.
    """
    try:
        data, policy = store.read_table(_ADVISORIES), store.read_policy(_ADVISORIES)
        if data is None:
            return
        both = sha256_of(f"{sha256_of(data)} {sha256_of(policy)}".encode())
        if checked.facts(_KIND, both) is not None:
            return
        findings = [*_findings(store)]
    except CudaRedistError as error:
        yield finding("invalid", error.message, path="advisories.json", hint=error.hint)
        return
    if not findings:
        checked.add(_KIND, both, {})
    yield from findings


def _findings(store: Store) -> Iterator[Finding]:
    """Yield the findings. Raises `ReadError` and `InvalidFileError`."""
    # Without new files, an earlier run had no findings, and the models are slow to import.
    from cudaredist.store.known_vulnerabilities import (  # noqa: PLC0415
        read_advisories,
        read_advisory_policy,
    )
    from cudaredist.tables.advisories.products import is_undecided  # noqa: PLC0415

    table, policy = read_advisories(store), read_advisory_policy(store)
    if table is None:
        return
    numbers = {one.bulletin for one in table.vulnerabilities}
    for number, bulletin in sorted(table.bulletins.items()):
        for name in bulletin.unmapped:
            if is_undecided(name, policy):
                message = f"bulletin {number} is about {shown(name)}, maybe a supported product"
                hint = f"read {bulletin.url}, and add it to `products` in policy/advisories.json"
                yield finding("new-bulletin", message, path="advisories.json", hint=hint)
        if number not in numbers:
            continue
        reviewed = policy.reviewed.get(number)
        hint = f"read {bulletin.url}, and add it to `reviewed` in policy/advisories.json"
        if reviewed is None:
            message = f"bulletin {number} is new: policy has no decisions about it"
            yield finding("new-bulletin", message, path="advisories.json", hint=hint)
        elif reviewed != bulletin.sha256:
            message = f"bulletin {number} changed (version {bulletin.version})"
            yield finding("changed-bulletin", message, path="advisories.json", hint=hint)
