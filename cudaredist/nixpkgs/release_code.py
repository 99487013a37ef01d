"""The code of nixpkgs' table of releases.

nixpkgs selects releases with conditions on the machine. A release is changed in the form of the
file, so that its conditions and comments stay.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from cudaredist.exporters.nix_code import (
    LINE_WIDTH,
    NixExpression,
    NixValue,
    nix_binding,
    nix_indented,
    nix_string,
)
from cudaredist.nixpkgs.machines import MACHINES, ORIN, SERVER_ARM, THOR
from cudaredist.nixpkgs.nix_file import NixFile
from cudaredist.nixpkgs.releases import EvaluatedReleases, Labels, Versions, labels_by_set, model_of

_JETSON_TEST, _ARM_TEST = "hasJetsonCudaCapability", "hostPlatform.isAarch64"
_ORIN_TEST = "hasPreThorJetsonCudaCapability"
_ORIN_CALL = f"{_ORIN_TEST} requestedJetsonCudaCapabilities"
_NAMES = r"(?:#[^\n]*+|(?!\binherit\b)[^;#])*"
"""The names before another one in an `inherit`, with comments."""
_OWN_NAMES = r"(?:#[^\n]*+|(?!\binherit\b)[^;()#])*"
"""The same names without those of another set."""
_DEFINITIONS = {
    "hasPreThorJetsonCudaCapability": (
        "hasPreThorJetsonCudaCapability = lib.any (",
        "  name:",
        '  lib.versionOlder name "10.1" && _cuda.db.cudaCapabilityToInfo.${name}.isJetson or false',
        ") (config.cudaCapabilities or [ ]);",
    ),
    "hasJetsonCudaCapability": (
        "hasJetsonCudaCapability = lib.any (",
        "  name: _cuda.db.cudaCapabilityToInfo.${name}.isJetson or false",
        ") (config.cudaCapabilities or [ ]);",
    ),
    "hostPlatform": ("hostPlatform = callPackage ({ stdenv }: stdenv.hostPlatform) { };",),
}
"""The variables of the conditions."""


def release_code(labels: Labels, orin_test: str = _ORIN_TEST, scope: str = "") -> NixValue:
    """Return a redistributable's release, with conditions if machines differ.

    `scope` precedes the variables of a set's `backendStdenv`.
    """
    fallback = next(labels[machine] for machine in MACHINES if machine in labels)
    server = labels.get(SERVER_ARM, fallback)
    thor = labels.get(THOR, labels.get(ORIN, server))
    orin = labels.get(ORIN, thor)
    tests = []
    if orin != thor:
        tests.append((orin_test, orin))
    if thor != server:
        tests.append((f"{scope}{_JETSON_TEST}", thor))
    if server != fallback:
        tests.append((f"{scope}{_ARM_TEST}", server))
    if not tests:
        return fallback
    branches = [f"if {test} then\n  {nix_string(label)}\nelse" for test, label in tests]
    code = f"{' '.join(branches)}\n  {nix_string(fallback)}"
    return NixExpression(code if len(branches) > 1 else " ".join(code.split()))


def merge_versions(
    file: NixFile,
    target: Versions,
    theirs: EvaluatedReleases,
    comments: Mapping[str, Sequence[str]],
) -> None:
    """Add the missing package sets, and change the releases that differ.

    Adds comments above the sets with changed releases.
    """
    before = file.text
    current = labels_by_set(theirs)
    for attribute, redists in target.items():
        is_new = attribute not in current
        model = _add_set(file, attribute, current) if is_new else attribute
        old = current.get(model, {})
        current[attribute] = redists
        for redist in old.keys() - redists.keys() if is_new else ():
            file.remove(attribute, redist)
        changes = {
            redist: labels for redist, labels in redists.items() if labels != old.get(redist, {})
        }
        siblings = {*old, *redists}
        for redist, labels in changes.items():
            _put_release(file, (attribute, redist), old.get(redist, {}), labels, siblings)
        if changes or is_new:
            _inherit_variables(file, attribute)
            _add_comment(file, attribute, comments.get(attribute, ()))
    for name, lines in _DEFINITIONS.items():
        # In a set's scope, such as `backendStdenv.hostPlatform`, the set defines it.
        use = re.compile(rf"(?<![\w.]){name}\b")
        is_added = len(use.findall(file.text)) > len(use.findall(before))
        if is_added and not _defines(file, name):
            start, let, end = file.text.partition("let\n")
            file.text = "".join([start, let, *(f"  {line}\n" for line in lines), "\n", end])


def _defines(file: NixFile, name: str) -> bool:
    """Check if a file defines or inherits a variable."""
    inherited = re.search(rf"\binherit\b{_NAMES}\s{re.escape(name)}\b", file.text)
    return inherited is not None or file.find(name) is not None


def _put_release(
    file: NixFile,
    names: tuple[str, str],
    old: Labels,
    new: Labels,
    siblings: Iterable[str],
) -> None:
    """Set a release. Keeps the conditions of the file if they fit."""
    binding = file.find(*names)
    if binding is None:
        attribute, redist = names
        lines = nix_binding(redist, _code(file, attribute, new))
        file.add([attribute], redist, lines, siblings=siblings)
        return
    pairs = {(label, new[machine]) for machine, label in old.items()}
    renamed = dict(pairs)
    # The conditions fit if each old label becomes one new label, which differs from all others.
    is_one_to_one = len(pairs) == len(renamed) == len(set(new.values()))
    if old and is_one_to_one:
        file.rename_strings(binding, renamed)
    else:
        file.put(names, _code(file, names[0], new))


def _code(file: NixFile, attribute: str, labels: Labels) -> NixValue:
    """Return a release in the form of the file.

    It may have a function for Jetsons before Thor, and sets that name their own `backendStdenv` in
    conditions.
    """
    scope = f"{attribute}.backendStdenv."
    binding = file.find(attribute)
    code = "" if binding is None else file.text[binding.value : binding.end]
    is_scoped = f"{scope}{_JETSON_TEST}" in code or f"{scope}hostPlatform" in code
    orin_test = _ORIN_CALL if _ORIN_CALL in file.text else _ORIN_TEST
    return release_code(labels, orin_test, scope if is_scoped else "")


def _inherit_variables(file: NixFile, attribute: str) -> None:
    """Update the variables of conditions in a set's own `inherit`, if it has one.

    An `inherit` without variables is removed, and `let` and `in` with it if nothing else is there.
    """
    binding = file.find(attribute)
    if binding is None:
        return
    code = file.text[binding.value : binding.end]
    match = re.search(
        rf"\binherit\s*\(\s*{re.escape(attribute)}\.backendStdenv\s*\)({_NAMES});", code
    )
    if match is None:
        return
    start, end = (binding.value + offset for offset in match.span())
    names = file.words(binding.value + match.start(1), end - 1)
    comments = file.comments(start, end)
    body = code[match.end() :]
    variables = ("hasJetsonCudaCapability", "hostPlatform", "requestedJetsonCudaCapabilities")
    used = {name for name in (*variables, *names) if re.search(rf"\b{re.escape(name)}\b", body)}
    kept = used | {name for name in names if name not in variables}
    if kept and kept != set(names):
        source, inherited = f"inherit ({attribute}.backendStdenv)", sorted(kept)
        lines = [f"{source} {' '.join(inherited)};"]
        if len(lines[0]) > LINE_WIDTH:
            lines = [source, *nix_indented([*inherited, ";"])]
        file.replace(start, end, file.indented([*comments, *lines], start).lstrip())
    elif not kept and not comments:
        only = re.match(rf"\s*let\s+{re.escape(match[0])}\s+in\n[ \t]+(?=\S)", code)
        if only is not None:
            rest = re.sub(r"(?m)^  ", "", code[only.end() :])
            file.replace(binding.value, binding.end, f" {rest}")


def _add_comment(file: NixFile, attribute: str, lines: Sequence[str]) -> None:
    """Add lines of a comment above a set."""
    binding = file.find(attribute)
    if binding is not None and lines:
        start = file.text.rfind("\n", 0, binding.start) + 1
        file.replace(start, start, file.indented(lines, binding.start) + "\n")


def _add_set(file: NixFile, attribute: str, known: Iterable[str]) -> str:
    """Add a package set with the code of the one before it, without its comments.

    Returns that set, or an empty text if the file has no set.
    """
    models = {
        name: binding
        for name in known
        if (binding := file.find(name)) and "{" in file.text[binding.value : binding.end]
    }
    model = model_of(attribute, models)
    if not model:
        file.add([], attribute, [f"{attribute} = packageSet {{", "};"])
        return model
    binding = models[model]
    code = file.without_comments(binding.start, binding.end)
    code = re.sub(rf"(?<![\w'-]){re.escape(model)}(?![\w'-])", attribute, code)
    file.add_after(binding, [code], gap="\n\n")
    inherited = re.search(
        rf"\binherit\b{_OWN_NAMES}?(?<!\s)(\s++){re.escape(model)}(?=[\s;])", file.text
    )
    if inherited:
        file.replace(inherited.end(), inherited.end(), inherited[1] + attribute)
    return model
