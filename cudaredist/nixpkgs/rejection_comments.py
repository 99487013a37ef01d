"""Comments on newer releases that do not fit a package set."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cudaredist.exporters.nix_code import nix_comment
from cudaredist.nixpkgs.releases import SetReleases, is_older, released
from cudaredist.nixpkgs.target import Target
from cudaredist.primitives import natural_order


def rejection_comments(sets: Iterable[SetReleases], target: Target) -> dict[str, list[str]]:
    """Return comments with the reasons of rejected releases by package set.

    They are about releases of nixpkgs' table, if this export adds the release or changes the label
    of the rejecting set. The first set with a reason has the comment.
    """
    versions = target.versions
    released_labels = set(released(versions))
    added = {(redist, versions[name][redist][m]) for name, redist, m in target.changed}
    comments: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    written: set[tuple[str, str]] = set()
    for package_set in sorted(sets, key=lambda s: natural_order(s.attribute)):
        attribute = package_set.attribute
        for redist, choice in sorted(package_set.redists.items()):
            for machine in package_set.machines:
                label = versions.get(attribute, {}).get(redist, {}).get(machine)
                if label is None:
                    continue
                for entry in choice.newer_rejected:
                    release = (redist, entry.release)
                    is_new = (attribute, redist, machine) in target.changed or release in added
                    reason = re.split("; published: |, not for CUDA ", entry.reason)[0]
                    text = f"{entry.release}: {reason}, so we keep {label}"
                    is_used = release in released_labels and is_older(label, entry.release)
                    if is_new and is_used and (redist, text) not in written:
                        written.add((redist, text))
                        comments[attribute][redist].append(text)
    return {attribute: list(_comment_lines(redists)) for attribute, redists in comments.items()}


def _comment_lines(redists: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for redist, texts in redists.items():
        yield f"# - {redist}:"
        for text in texts:
            first, *rest = nix_comment(f"- {text}")
            yield f"#   {first.removeprefix('# ')}"
            yield from (f"#     {line.removeprefix('# ')}" for line in rest)
