"""Answers to status codes of NVIDIA's libraries, such as `CUDNN_STATUS_NOT_INITIALIZED`.

Such a code has many causes. The answers are the findings about the library, or else the loaded file
and the other causes.
"""

import re
from collections.abc import Iterator, Sequence

from cudaredist.environments.environment import JudgedEnvironment
from cudaredist.programs.finding import Finding, some_of
from cudaredist.programs.program import Catalog
from cudaredist.programs.report import ErrorAnswer
from cudaredist.sets.library_names import stem_of

_find_names = re.compile(r"(?<![\w.+-])(?:lib)?[\w+-]+(?:\.so|\.dll)").findall
_find_words = re.compile(r"[\w-]+").findall

_WARNINGS = frozenset({"changed-file", "duplicate-library", "library-path", "shared-file"})
"""The kinds of warnings that may be the cause."""


def status_answers(
    sonames: Sequence[str],
    environment: JudgedEnvironment,
    catalog: Catalog,
    findings: Sequence[Finding],
) -> Iterator[ErrorAnswer]:
    """Yield the answers to a status code of a library. `sonames` are its names, newest last."""
    stem = stem_of(sonames[-1])
    projects = {project for name in sonames for project in catalog.projects_with(name)}
    about = [finding for finding in findings if _is_about(finding, stem, projects)]
    counted = [finding for finding in about if finding.exit_code]
    # Other warnings, such as an optional library, are rarely the cause.
    for finding in counted or (finding for finding in about if finding.kind in _WARNINGS):
        yield ErrorAnswer(
            kind="library",
            name=stem,
            message=finding.message,
            path=finding.path,
            hint=finding.hint,
        )
    if not counted:
        yield _loaded(sonames, stem, environment, projects)


def _loaded(
    sonames: Sequence[str],
    stem: str,
    environment: JudgedEnvironment,
    projects: set[str],
) -> ErrorAnswer:
    """Return the loaded file, and the causes that the environment does not show."""
    uses = [use for use in environment.libraries.uses if use.soname in sonames and use.loaded.path]
    loaded = {use.loaded.display_path: use.loaded for use in uses}
    titles = [
        f"{path} ({environment.owners.title_of(each.file) or 'no package'})"
        for path, each in sorted(loaded.items())
    ]
    packages = [
        package.title
        for project, package in environment.environment.distributions.items()
        if project in projects
    ]
    if titles:
        message = f"the loader finds {some_of(titles)}, and no finding explains it"
    elif packages:
        message = f"the environment has {some_of(packages)}, and no finding explains it"
    else:
        message = f"no file of the environment is {stem}"
    message += ". Other causes are a GPU or a driver that it does not support, and too little free "
    message += "memory of the GPU. Add --require-gpu host, and --require-driver with your driver"
    return ErrorAnswer(kind="library", name=stem, message=message, path=next(iter(loaded), None))


def _is_about(finding: Finding, stem: str, projects: set[str]) -> bool:
    """Check if a finding names a library, a part of it such as `libcudnn_ops`, or its package."""
    names = {stem_of(name) for name in _find_names(finding.message)} | finding.opened
    if any(name == stem or name.startswith(f"{stem}_") for name in names):
        return True
    return not projects.isdisjoint(_find_words(finding.message))
