"""What a program that uses a package needs at run time: outputs of packages, with their sizes."""

from collections import defaultdict
from typing import NamedTuple

from cudaredist.formats.names import OutputName
from cudaredist.formats.packageset import PackageSet
from cudaredist.sets.file_outputs import resolve


class Closure(NamedTuple):
    """A package's libraries and those that they need or open."""

    outputs: dict[OutputName, int]
    """Unpacked bytes by output, of the package and of all that it requires."""
    packages: frozenset[str]
    """The packages that are required."""
    optional: int
    """Further bytes of libraries that it can do without."""

    @property
    def size(self) -> int:
        """The required bytes."""
        return sum(self.outputs.values())


def closure_of(package_set: PackageSet, attr: str) -> Closure | None:
    """Return the run-time closure of an available package, None if a size is unknown.

    It has the outputs with the package's libraries (on Windows, `bin`), and the outputs of the
    packages on which it depends at run time. Headers, static libraries and programs do not count,
    unless they are in the same output.
    """
    required = _reached(package_set, attr, with_optional=False)
    everything = _reached(package_set, attr, with_optional=True)
    packages = package_set.packages
    if not all(packages[name].contents for name, _ in everything):
        return None
    outputs: dict[OutputName, int] = defaultdict(int)
    for name, output in required:
        outputs[output] += _bytes(package_set, name, output)
    further = sum(_bytes(package_set, *place) for place in everything - required)
    return Closure(dict(sorted(outputs.items())), frozenset(name for name, _ in required), further)


def _reached(
    package_set: PackageSet, attr: str, *, with_optional: bool
) -> set[tuple[str, OutputName]]:
    """Return the outputs of packages that a package needs at run time."""
    packages = package_set.packages
    own = packages[attr]
    outputs = {library.output for library in own.provides if not library.stub}
    pending = [(attr, output) for output in outputs or {resolve(("lib",), own.outputs)}]
    reached: set[tuple[str, OutputName]] = set()
    while pending:
        place = pending.pop()
        if place not in reached:
            reached.add(place)
            pending += (
                (packages[entry.attr].alias_of or entry.attr, entry.output)
                for entry in packages[place[0]].depends
                if entry.kind != "header" and (with_optional or not entry.is_optional)
            )
    return reached


def _bytes(package_set: PackageSet, attr: str, output: OutputName) -> int:
    part = package_set.packages[attr].contents.get(output)
    return 0 if part is None else part.bytes
