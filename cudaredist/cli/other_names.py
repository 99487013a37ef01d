"""Other names of options: those of the nixpkgs manual, and former ones for one release."""

from collections.abc import Mapping, Sequence

_MANUAL: Mapping[str, Sequence[str]] = {
    "--parallel": [],
    "--no-parallel": ["--jobs", "1"],
    "--cleanup": [],
}
OTHER_NAMES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "audit": {
        "--cuda": ["--require-cuda"],
        "--driver": ["--require-driver"],
        "--gpu": ["--require-gpu", "host"],
        "--max-glibc": ["--require-glibc"],
    },
    "build": {"--capability": ["--gpu"]},
    "bump": {"--print-commit-message": ["--format", "commit-message"]},
    "check": {"--driver": ["--require-driver"]},
    # Manifests need no cleanup.
    "download-manifests": {**_MANUAL, "--no-cleanup": [], "--accept-changed": ["--replace"]},
    "export": {"--allow-downgrade": ["--replace"], "--target": ["--target-set"]},
    "manifest": {"--accept-changed": ["--replace"]},
    "materialize": {
        "--format": ["--layout"],
        "--root": ["--output"],
        "--target": ["--target-set"],
    },
    "mirror": {"--accept-changed": ["--replace"]},
    "process-manifests": {**_MANUAL, "--no-cleanup": ["--keep-archives"]},
    "runfile": {"--accept-changed": ["--replace"]},
    "update-gpus": _MANUAL,
    "update-nvcc-compat": {**_MANUAL, "--accept-changed": ["--replace"]},
}
"""The words for each other name, by command. A name without words is ignored."""


def without_other_names(words: Sequence[str]) -> list[str]:
    """Return the words of a call, which begin with the command, with the names of the help."""
    names = OTHER_NAMES.get(words[0], {}) if words else {}
    new: list[str] = []
    for position, word in enumerate(words):
        if word == "--":
            return [*new, *words[position:]]
        name, equals, value = word.partition("=")
        if name not in names:
            new.append(word)
        elif names[name]:
            option, *more = names[name]
            new += [f"{option}{equals}{value}", *more]
    return new
