"""Read the known vulnerabilities of a data folder, and the decisions about them."""

from cudaredist.errors import located
from cudaredist.formats.advisories import Advisories, AdvisoryPolicy, Bulletin, Vulnerability
from cudaredist.formats.registry import read_own_file
from cudaredist.store.data_folder import Store
from cudaredist.tables.advisories.states import KnownVulnerabilities

ADVISORIES = "advisories"
"""The name of the table and of the policy, without suffix."""


def read_advisories(store: Store) -> Advisories | None:
    """Return a data folder's own table, None if it has none. Raises `InvalidFileError`."""
    data = store.read_table(ADVISORIES)
    if data is None:
        return None
    with located(f"{ADVISORIES}.json"):
        return read_own_file(data, Advisories)


def read_advisory_policy(store: Store) -> AdvisoryPolicy:
    """Return the decisions about bulletins. Raises `InvalidFileError`."""
    return read_own_file(store.read_policy(ADVISORIES), AdvisoryPolicy)


def known_vulnerabilities(store: Store) -> KnownVulnerabilities:
    """Return the known vulnerabilities of the data folder and the shipped data.

    A bulletin of the data folder takes precedence over the shipped one. Without any table, nothing
    is known.
    """
    bulletins: dict[str, Bulletin] = {}
    vulnerabilities: list[Vulnerability] = []
    source, newest = "", "0000-00-00"
    for layer in reversed(store.layers):
        table = read_advisories(layer)
        if table is None:
            continue
        kept = (one for one in vulnerabilities if one.bulletin not in table.bulletins)
        vulnerabilities = [*kept, *table.vulnerabilities]
        bulletins |= table.bulletins
        source, newest = table.source, max(newest, table.newest)
    advisories = Advisories(
        schema_version=1,
        source=source,
        newest=newest,
        bulletins=bulletins,
        vulnerabilities=tuple(vulnerabilities),
    )
    return KnownVulnerabilities(advisories, read_advisory_policy(store))
