"""Report the package sets of a bump."""

from cudaredist.commands.build.report import SetOutcome
from cudaredist.commands.bump.report import BumpedSet
from cudaredist.commands.validate.validate_files import SetVerdict
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, CudaRedistError
from cudaredist.formats.packageset import PackageSet
from cudaredist.sets.assemble import count_statuses
from cudaredist.sets.spec import RefusedSet, SetSpec


def bumped_set(
    spec: SetSpec | RefusedSet,
    package_set: PackageSet,
    verdict: SetVerdict,
    outcome: SetOutcome | None,
) -> BumpedSet:
    """Report a set with its verdict. The outcome is None if the set is not written."""
    problems = verdict.problems
    code = EXIT_FINDINGS if problems else EXIT_OK
    if outcome is not None and outcome.error is not None:
        problems = (outcome.error.message, *problems)
        code = outcome.error.exit_code
    return BumpedSet(
        cuda=str(spec.cuda),
        platform=spec.platform or "",
        counts=count_statuses(package_set),
        path=None if outcome is None else outcome.path,
        problems=problems,
        warnings=tuple(
            f"{diagnostic.subject}: {diagnostic.text}"
            for diagnostic in package_set.diagnostics
            if diagnostic.level != "note"
        ),
        exit_code=code,
    )


def failed_set(
    spec: SetSpec | RefusedSet, error: CudaRedistError, outcome: SetOutcome | None
) -> BumpedSet:
    """Report a set that could not be built."""
    return BumpedSet(
        cuda=str(spec.cuda),
        platform=spec.platform or "",
        path=None if outcome is None else outcome.path,
        problems=(error.message,),
        exit_code=error.exit_code,
    )
