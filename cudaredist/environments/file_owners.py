"""The installed packages that files belong to."""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path

from cudaredist.environments.installed import Distribution, Environment
from cudaredist.grouping import grouped
from cudaredist.programs.program import ProgramFile
from cudaredist.store.files import hash_of


class FileOwners:
    """The package of each file of an environment.

    If several packages contain a file, its owner is the one whose RECORD has its size and hash.
    """

    def __init__(self, environment: Environment) -> None:
        paths = {file.path for file in environment.files}
        claims = grouped(
            (path, package)
            for package in environment.distributions.values()
            for path in package.files
            if path in paths
        )
        self.shared = {path: owners for path, owners in claims.items() if len(owners) > 1}
        """The packages of each file that several packages contain, by its path."""
        self._by_path = environment.owners()
        for path, owners in self.shared.items():
            self._by_path[path] = _owner_of(path, owners)

    def at(self, path: str) -> Distribution | None:
        """Return the package of the file at a path."""
        return self._by_path.get(path)

    def of(self, file: ProgramFile | None) -> Distribution | None:
        """Return the package of a file."""
        return None if file is None else self.at(file.path)

    def project_of(self, file: ProgramFile) -> str:
        """Return the project of the package of a file, or an empty string."""
        owner = self.of(file)
        return "" if owner is None else owner.project

    def title_of(self, file: ProgramFile | None) -> str:
        """Return the package of a file and its version, or an empty string."""
        owner = self.of(file)
        return "" if owner is None else owner.title

    def projects_of(self, files: Iterable[ProgramFile]) -> set[str]:
        """Return the projects of the packages of some files."""
        return set(map(self.project_of, files)) - {""}


def _owner_of(path: str, owners: Sequence[Distribution]) -> Distribution:
    """Return the package that a file is from, by the sizes and hashes of RECORD."""
    try:
        size = Path(path).stat().st_size
        fitting = [owner for owner in owners if owner.files[path].size == size]
        if len(fitting) == 1:
            return fitting[0]
        digest = f"sha256={_digest(path)}"
    except OSError:
        return owners[0]
    return next((owner for owner in owners if owner.files[path].digest == digest), owners[0])


def _digest(path: str) -> str:
    """Return the hash of a file in the form of RECORD. Raises `OSError`."""
    digest = bytes.fromhex(hash_of(Path(path)))
    return urlsafe_b64encode(digest).decode().rstrip("=")
