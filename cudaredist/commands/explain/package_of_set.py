"""explain set FILE PACKAGE: why a package is in a set, or is not available."""

from collections.abc import Iterator

from cudaredist.commands.explain.set_report import PackageInSet
from cudaredist.errors import UnknownNameError
from cudaredist.features.distributions import distribution_in_words
from cudaredist.formats.packageset import PackageSet
from cudaredist.sets.closures import closure_of
from cudaredist.wheel_projects import package_of_project


def explain_in_set(asked: str, name: str, package_set: PackageSet) -> PackageInSet:
    """Return a package of a set, with its status and reasons.

    The name can be an alias, or a project of the package index. Raises `UnknownNameError`.
    """
    packages = package_set.packages
    attr = name if name in packages else package_of_project(name)
    if attr not in packages:
        raise UnknownNameError(f"package of {package_set.full_name}", name, packages)
    attr = packages[attr].alias_of or attr
    package = packages[attr]
    closure = closure_of(package_set, attr) if package.status == "available" else None
    return PackageInSet(
        asked=asked,
        attribute=package_set.full_name,
        cuda=package_set.cuda.release,
        platform=package_set.platform.redist_system,
        channel=package_set.channel,
        package=attr,
        status=package.status,
        version=package.version,
        redist=package.redist,
        release=package.release,
        archive=None if package.archive is None else package.archive.relative_path,
        outputs=package.outputs,
        reasons=package.reasons,
        platforms=package.platforms,
        depends=tuple(dict.fromkeys(entry.attr for entry in package.depends)),
        closure=None if closure is None else closure.size,
        coverage=package.coverage,
        distribution=package.license.distribution,
        diagnostics=tuple(x for x in package_set.diagnostics if x.subject == attr),
    )


def package_in_set_text(report: PackageInSet) -> Iterator[str]:
    """Yield the verdict with its reasons, then the archive and the needs of the package."""
    version = "" if report.version is None else f" {report.version}"
    release = "" if report.release is None else f" ({report.redist} {report.release})"
    yield (
        f"{report.package}{version}{release} is {report.status.replace('-', ' ')} in "
        f"{report.attribute} for {report.platform} ({report.channel} channel)"
    )
    for reason in report.reasons:
        yield f"reason: {reason.text} ({reason.source})"
    if report.reasons and report.platforms:
        yield f"the release has it for {', '.join(report.platforms)}"
    if report.archive is not None:
        yield f"archive: {report.archive}"
    if report.depends:
        yield f"needs {', '.join(report.depends)}"
    if report.closure is not None:
        yield f"with all that its libraries need: {report.closure / 1e6:,.1f} MB unpacked"
    uncovered = [name for name, code in report.coverage.items() if code.value != "native"]
    if uncovered:
        values = ", ".join(f"{name} {report.coverage[name].value}" for name in uncovered)
        yield f"coverage of GPUs: {values}"
    if words := distribution_in_words(report.distribution):
        yield f"listed as distributable: {words}"
    yield from (f"{x.level}: {x.text}" for x in report.diagnostics)
