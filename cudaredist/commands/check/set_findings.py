"""Compare the package sets of a distribution with those that `build` would write."""

from collections.abc import Iterator, Mapping, Sequence

from cudaredist.cli.configuration import declared_sets, sets_given
from cudaredist.cli.options import parse_size
from cudaredist.commands.build.build_sets import BUILD_OPTIONS, write_sets
from cudaredist.commands.build.declared_sets import declared_groups, make_groups
from cudaredist.commands.check.findings import finding
from cudaredist.commands.check.report import Finding
from cudaredist.errors import CudaRedistError, UnknownNameError, UsageError
from cudaredist.hints import again
from cudaredist.sets.closures import closure_of
from cudaredist.sets.read_set import indexed_sets, read_package_set
from cudaredist.sets.spec import Request
from cudaredist.store.data_folder import Store


def set_findings(store: Store) -> Iterator[Finding]:
    """Yield the declared sets that are not current, or that cannot be built."""
    declared = declared_sets()
    if declared is None:
        return
    try:
        groups = declared_groups(declared, store, Request(options=BUILD_OPTIONS))
        attempts = make_groups(groups)
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


def closure_limits(texts: Sequence[str]) -> dict[str, int]:
    """Return the limits in bytes by package. Raises `UsageError`."""
    limits = {}
    for text in texts:
        name, equals, size = text.partition("=")
        limit = parse_size(size) if equals and size else None
        if limit is None:
            hint = f"run `{again('--max-closure cudnn=1.2G', without=['--max-closure'])}`"
            raise UsageError(f"--max-closure {text}: expected NAME=SIZE", hint=hint)
        limits[name] = limit
    if limits and declared_sets() is None:
        hint = "declare them in `[[tool.cudaredist.sets]]` of pyproject.toml"
        raise UsageError("--max-closure requires declared package sets", hint=hint)
    return limits


def closure_findings(limits: Mapping[str, int]) -> Iterator[Finding]:
    """Yield the packages of declared sets whose closure is above its limit, or unknown.

    Raises `UnknownNameError` for a package that no set has.
    """
    if not limits:
        return
    sets = [read_package_set(path) for index in sets_given(None) for path in indexed_sets(index)]
    for name, limit in limits.items():
        known = {attr for package_set, _ in sets for attr in package_set.packages}
        if name not in known:
            raise UnknownNameError("package of the declared sets", name, known)
        for package_set, _ in sets:
            if name not in package_set.available:
                continue
            closure = closure_of(package_set, name)
            place = f"{package_set.full_name} for {package_set.platform.redist_system}"
            if closure is None:
                yield finding("closure", f"the closure of {name} in {place} is unknown")
            elif closure.size > limit:
                sizes = f"{closure.size / 1e9:,.2f} GB unpacked, more than {limit / 1e9:,.2f} GB"
                message = f"the closure of {name} in {place} has {sizes}"
                details = tuple(sorted(closure.packages))
                yield finding("closure", message, details=details)
