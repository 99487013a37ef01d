"""Other names of options and commands: those of the nixpkgs manual, and former ones."""

from collections.abc import Collection, Mapping, Sequence

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
    "export": {"--target": ["--target-set"]},
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


def after_format(
    words: Sequence[str], name: str, options_with_value: Collection[str]
) -> list[str] | None:
    """Return the words of an export without its format, if this is the format's name.

    Otherwise, returns None. The format is the first word that is neither an option nor its value.
    """
    is_value = False
    for position, word in enumerate(words):
        if is_value:
            is_value = False
        elif word == "-" or not word.startswith("-"):
            return [*words[:position], *words[position + 1 :]] if word == name else None
        else:
            is_value = _takes_next_word(word, options_with_value)
    return None


def _takes_next_word(word: str, options_with_value: Collection[str]) -> bool:
    """Check if the value of an option is the next word.

    Short options can share a word, such as `-qo`.
    """
    if word.startswith("--"):
        return word in options_with_value
    letters = [letter for letter in word[1:] if f"-{letter}" in options_with_value]
    return bool(letters) and word.index(letters[0]) == len(word) - 1
