"""Libraries that may be missing while a package is built, by package.

These are the driver's and the Jetson's, which only the machine that runs a program has. What the C
library, the compiler or another package of the distribution has is an input, and must be found.
"""

from cudaredist.exporters.export_format import Exporter, Files, Subject
from cudaredist.jsontext import canonical_json
from cudaredist.schema import OutsideSet, Owner, SetPackage

_ONLY_WHERE_IT_RUNS: frozenset[Owner] = frozenset({"driver", "jetson"})


def _files(subject: Subject) -> Files:
    table = {item.attr: _missing(item.package) for item in subject.items}
    return {
        "ignore-missing.json": canonical_json({name: table[name] for name in table if table[name]})
    }


def _missing(package: SetPackage) -> list[str]:
    return sorted(
        {
            need.soname
            for need in package.needs
            if need.kind == "needed"
            and isinstance(need.satisfied_by, OutsideSet)
            and need.satisfied_by.external in _ONLY_WHERE_IT_RUNS
        }
    )


IGNORE_MISSING = Exporter(
    name="ignore-missing",
    title="The driver's libraries that each package needs as JSON, for patchers that refuse them.",
    files=_files,
    file="ignore-missing.json",
    reads_features=True,
)
