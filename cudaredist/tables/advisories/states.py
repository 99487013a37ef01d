"""The state of a package or driver for each known vulnerability.

The other modules only use these answers, so that all commands and exports agree:

- `affected`: a bulletin states that this version of the component is affected
- `fixed`: the version is at least the fixed one
- `not-affected`: the package has no such component, or the bulletin is about another system
- `unknown`: the bulletin does not name the component, or does not state this version

A bulletin about the CUDA Toolkit says nothing about cuDNN, NCCL and other redistributables.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from typing import Literal, NamedTuple, TypeAlias

from cudaredist.formats.advisories import (
    Advisories,
    AdvisoryPolicy,
    Product,
    StatedVersions,
    System,
    Vulnerability,
)
from cudaredist.primitives import Platform, Version
from cudaredist.redists import CUDA
from cudaredist.tables.advisories.products import product_called
from cudaredist.tables.advisories.version_texts import (
    Numbers,
    VersionTexts,
    numbers_of,
    read_versions,
)

State: TypeAlias = Literal["affected", "fixed", "not-affected", "unknown"]
STATES: tuple[State, ...] = ("affected", "unknown", "fixed", "not-affected")
"""All states, the most severe first."""

_find_branch = re.compile(r"(Linux|Windows)[^()]*\(R([0-9]{3})\)").fullmatch
_words = re.compile(r"[a-z0-9_]+").findall
_ARCHITECTURES = {
    "x86_64": ("linux-x86_64",),
    "sbsa": ("linux-sbsa",),
    "jetson": ("linux-aarch64",),
    "tegra": ("linux-aarch64",),
}
_ANY_SYSTEM = frozenset({"all", "stated"})
"""Words of "All" and "not stated"."""


class VulnerabilityState(NamedTuple):
    """The state of a package or driver for a vulnerability."""

    vulnerability: Vulnerability
    state: State
    reason: str
    fixed: str | None
    """The first fixed version, if one is stated."""
    components: tuple[str, ...] = ()

    @property
    def cve(self) -> str:
        """The vulnerability's name."""
        return self.vulnerability.cve


class _Answer(NamedTuple):
    state: State
    reason: str
    fixed: str | None = None


class _Row(NamedTuple):
    """The stated versions of packages for a vulnerability."""

    product: Product
    platform: str
    versions: VersionTexts


class _DriverRow(NamedTuple):
    """The stated versions of a driver branch for a vulnerability."""

    system: System
    branch: int
    versions: VersionTexts


class KnownVulnerabilities:
    """The known vulnerabilities of packages and drivers."""

    def __init__(self, advisories: Advisories, policy: AdvisoryPolicy) -> None:
        self.advisories, self.policy = advisories, policy

    @cached_property
    def _products(self) -> dict[str, Product | None]:
        names = {
            name
            for vulnerability in self.advisories.vulnerabilities
            for row in vulnerability.versions
            for name in row.products
        }
        return {name: product_called(name, self.policy) for name in names}

    @cached_property
    def _of_redist(self) -> dict[str, list[tuple[Vulnerability, list[_Row]]]]:
        """The vulnerabilities of each redistributable, with the rows about it."""
        found: dict[str, list[tuple[Vulnerability, list[_Row]]]] = {}
        for vulnerability in self.advisories.vulnerabilities:
            by_redist: dict[str, list[_Row]] = {}
            for row in vulnerability.versions:
                for name in row.products:
                    product = self._products[name]
                    if product is not None and product.redist is not None:
                        versions = self._read(vulnerability, row)
                        own = _Row(product, row.platform, versions)
                        by_redist.setdefault(product.redist, []).append(own)
            for redist, rows in by_redist.items():
                found.setdefault(redist, []).append((vulnerability, rows))
        return found

    def _read(self, vulnerability: Vulnerability, row: StatedVersions) -> VersionTexts:
        return read_versions(row.affected, row.fixed, vulnerability.bulletin, self.policy)

    def of_package(
        self, redist: str, package: str, label: Version, platform: str | None = None
    ) -> tuple[VulnerabilityState, ...]:
        """Return the states of a package in a release, for a platform or any.

        Vulnerabilities of other packages of the release are included, as `not-affected`.
        """
        states = []
        for vulnerability, all_rows in self._of_redist.get(redist, ()):
            rows = [row for row in all_rows if row.product.package in {None, package}]
            components = self._components(vulnerability) if redist == CUDA else ()
            if not rows:
                answer = _Answer("not-affected", "the bulletin is about another package")
            else:
                answer = self._package_answer(
                    vulnerability, rows, package, label, platform, components
                )
            states.append(VulnerabilityState(vulnerability, *answer, components))
        return tuple(states)

    def of_release(self, redist: str, label: Version) -> dict[str, State]:
        """Return the state of a whole release for each vulnerability of its product."""
        return {
            vulnerability.cve: self._release_answer(
                vulnerability, [row for row in rows if row.product.package is None] or rows, label
            ).state
            for vulnerability, rows in self._of_redist.get(redist, ())
        }

    def of_toolkit(self, label: Version) -> tuple[VulnerabilityState, ...]:
        """Return the states of a whole CUDA release, with the components that have each one."""
        states = []
        for vulnerability, all_rows in self._of_redist.get(CUDA, ()):
            rows = [row for row in all_rows if row.product.package is None] or all_rows
            answer = _of_toolkit(self._release_answer(vulnerability, rows, label))
            components = self._components(vulnerability)
            states.append(VulnerabilityState(vulnerability, *answer, components))
        return tuple(states)

    def concerns(self, redist: str, package: str) -> bool:
        """Check if a bulletin is about a package: by its name or component, or as part of all."""
        for vulnerability, rows in self._of_redist.get(redist, ()):
            named = {row.product.package for row in rows}
            names = self._components(vulnerability) if redist == CUDA else ()
            components = [self.policy.components[name] for name in names]
            is_in_component = any(package in one.packages for one in components)
            if package in named or (None in named and (is_in_component or not components)):
                return True
        return False

    def redists(self) -> tuple[str, ...]:
        """Return the redistributables with known vulnerabilities."""
        return tuple(sorted(self._of_redist))

    def _release_answer(
        self, vulnerability: Vulnerability, rows: Sequence[_Row], label: Version
    ) -> _Answer:
        """Return the answer for a release, by the bulletin or a decision."""
        answer = _answer_of([row.versions for row in rows], numbers_of(label))
        for decision in self.policy.releases:
            key = decision.cve, decision.redist, decision.release
            if key == (vulnerability.cve, rows[0].product.redist, str(label)):
                return answer._replace(state=decision.state, reason=decision.reason)
        return answer

    def _components(self, vulnerability: Vulnerability) -> tuple[str, ...]:
        return tuple(dict.fromkeys(mention.component for mention in vulnerability.components))

    def _package_answer(
        self,
        vulnerability: Vulnerability,
        rows: Sequence[_Row],
        package: str,
        label: Version,
        platform: str | None,
        components: Sequence[str],
    ) -> _Answer:
        is_toolkit = rows[0].product.redist == CUDA
        is_whole_product = all(row.product.package is None for row in rows)
        if is_whole_product and components:
            known = [self.policy.components[name] for name in components]
            if all(package not in one.packages for one in known):
                return _Answer("not-affected", f"it does not contain {' or '.join(components)}")
        if platform is not None:
            answer = self._system_answer(vulnerability, rows, Platform(platform))
            if answer is not None:
                return answer
            rows = [row for row in rows if _is_about(row.platform, Platform(platform))]
        answer = self._release_answer(vulnerability, rows, label)
        if is_toolkit:
            answer = _of_toolkit(answer)
        if answer.state == "affected" and is_whole_product and is_toolkit and not components:
            reason = "the bulletin does not name the component of the CUDA Toolkit"
            return answer._replace(state="unknown", reason=reason)
        return answer

    def _system_answer(
        self, vulnerability: Vulnerability, rows: Sequence[_Row], platform: Platform
    ) -> _Answer | None:
        """Return the answer for a platform that the bulletin excludes, None for another one."""
        if platform.os == "any":
            return None
        named = vulnerability.systems
        if named and platform.os not in named:
            decision = self.policy.systems.get(vulnerability.cve)
            is_in_table = any(_is_about(row.platform, platform) for row in rows)
            if is_in_table and decision is None:
                return _Answer("unknown", "the description and the table name different systems")
            if decision is None or platform.os not in decision.systems:
                return _Answer("not-affected", f"it is about {' and '.join(named)}")
        if any(_is_about(row.platform, platform) for row in rows):
            return None
        systems = {system for row in rows for system in _words(row.platform.lower())}
        if platform.os in systems:
            return _Answer("unknown", f"the bulletin does not name {platform}")
        return _Answer("not-affected", f"the bulletin does not name {platform.os}")

    # -- drivers

    @cached_property
    def _drivers(self) -> list[tuple[Vulnerability, list[_DriverRow]]]:
        drivers = []
        for vulnerability in self.advisories.vulnerabilities:
            rows = []
            for row in vulnerability.versions:
                products = [self._products[name] for name in row.products]
                match = _find_branch(row.platform)
                if match and any(one and one.kind == "driver" for one in products):
                    system: System = "linux" if match[1] == "Linux" else "windows"
                    versions = self._read(vulnerability, row)
                    rows.append(_DriverRow(system, int(match[2]), versions))
            if rows:
                drivers.append((vulnerability, rows))
        return drivers

    @cached_property
    def _last_of_branch(self) -> dict[tuple[System, int], int]:
        """The highest first number of the drivers of each branch: on Windows, it is not fixed."""
        last: dict[tuple[System, int], int] = {}
        for _, rows in self._drivers:
            for row in rows:
                key = row.system, row.branch
                numbers = [version.numbers[0] for version in row.versions.fixed]
                last[key] = max(last.get(key, row.branch), *numbers, row.branch)
        return last

    def of_driver(self, driver: Version, system: System) -> tuple[VulnerabilityState, ...]:
        """Return the states of a display driver, one for each vulnerability.

        The drivers of vGPU software are not included.
        """
        states: dict[str, VulnerabilityState] = {}
        for vulnerability, all_rows in self._drivers:
            rows = [row for row in all_rows if row.system == system]
            answer = self._driver_answer(rows, driver, system)
            own = VulnerabilityState(vulnerability, *answer)
            other = states.get(vulnerability.cve)
            # A later bulletin can add a branch, so it decides if it is more severe.
            if other is None or STATES.index(own.state) < STATES.index(other.state):
                states[vulnerability.cve] = own
        return tuple(states.values())

    def _driver_answer(
        self, rows: Sequence[_DriverRow], driver: Version, system: System
    ) -> _Answer:
        if not rows:
            return _Answer("not-affected", "the bulletin is about another system")
        numbers = numbers_of(driver)
        own = [
            row
            for row in rows
            if row.branch <= driver.components[0] <= self._last_of_branch[system, row.branch]
        ]
        if own:
            return _answer_of([row.versions for row in own], numbers)
        fixed = [version.numbers for row in rows for version in row.versions.fixed]
        if fixed and numbers >= max(fixed):
            return _Answer("fixed", "it is newer than the fixed drivers of all branches")
        return _Answer("unknown", "the bulletin does not name its branch")


def _of_toolkit(answer: _Answer) -> _Answer:
    """Return an answer about CUDA. Its releases have three numbers."""
    is_line = answer.fixed is not None and answer.fixed.count(".") == 1
    return answer._replace(fixed=f"{answer.fixed}.0") if is_line else answer


@cache
def _is_about(text: str, platform: Platform) -> bool:
    """Check if a stated platform includes one of NVIDIA's manifests."""
    if platform.os == "any":
        return True
    for part in re.split(r",| and ", text):
        words = set(_words(part.lower()))
        if words & _ANY_SYSTEM:
            return True
        named = [name for name in _ARCHITECTURES if name in words]
        if any(platform in _ARCHITECTURES[name] for name in named):
            return True
        if not named and platform.os in words:
            return True
    return False


def _answer_of(all_versions: Iterable[VersionTexts], numbers: Numbers) -> _Answer:
    """Return the answer for a version, the most severe of all rows."""
    answers = (_answer(versions, numbers) for versions in all_versions if any(versions))
    nothing = _Answer("unknown", "the bulletin states no version of it")
    return min(answers, key=lambda answer: STATES.index(answer.state), default=nothing)


def _answer(versions: VersionTexts, numbers: Numbers) -> _Answer:
    later = (fixed.text for fixed in versions.fixed if fixed.numbers > numbers)
    next_fixed = next(later, None)
    if any(span.contains(numbers) for span in versions.affected):
        return _Answer("affected", "the bulletin states this version", next_fixed)
    if versions.unreadable:
        reason = f"the meaning of {versions.unreadable[0]!r} is not known"
        return _Answer("unknown", reason, next_fixed)
    if versions.fixed and numbers >= versions.fixed[0].numbers:
        return _Answer("fixed", "the version has the fix", versions.fixed[0].text)
    return _Answer("unknown", "the bulletin does not state this version", next_fixed)
