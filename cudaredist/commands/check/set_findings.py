"""Compare the package sets of a distribution with those that `build` would write."""

from collections.abc import Iterator

from cudaredist.commands.build.build_sets import write_sets
from cudaredist.commands.build.declared_sets import declared_groups, declared_sets, make_groups
from cudaredist.commands.check.findings import finding
from cudaredist.commands.check.report import Finding
from cudaredist.errors import CudaRedistError
from cudaredist.sets.spec import Request
from cudaredist.store.data_folder import Store
from cudaredist.store.symbol_folder import LayeredSymbols


def set_findings(store: Store) -> Iterator[Finding]:
    """Yield the declared sets that are not current, or that cannot be built."""
    declared = declared_sets()
    if declared is None:
        return
    try:
        groups = declared_groups(declared, store, Request())
        attempts = make_groups(groups, LayeredSymbols(store.symbol_paths))
        report = write_sets(attempts, declared.folder, may_write=False, is_complete=True)
    except CudaRedistError as error:
        yield finding("stale-set", error.message, hint=error.hint, exit_code=error.exit_code)
        return
    reasons = {
        "would-write": "is not what `build` writes now",
        "would-remove": "is no longer declared",
    }
    for outcome in report.sets:
        if outcome.status in reasons:
            message = f"{outcome.path} {reasons[outcome.status]}"
            yield finding("stale-set", message, hint="run `cudaredist build`")
        elif outcome.error is not None:
            name = f"package set of CUDA {outcome.cuda} for {outcome.platform}"
            message, hint = f"{name}: {outcome.error.message}", outcome.error.hint
            yield finding("stale-set", message, hint=hint, exit_code=outcome.exit_code)
