"""The distinct contents that a run of mirror sync copies, and their paths."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cudaredist.commands.mirror.mirror_paths import MirrorSelection, archive_path_in
from cudaredist.errors import CudaRedistError, IncompleteError, IntegrityError, NotAtSourceError
from cudaredist.formats.mirror_lock import MirrorFile
from cudaredist.hints import command_line
from cudaredist.primitives import Sha256
from cudaredist.sources.wheel_source import WheelSource
from cudaredist.store.fetch_archive import ArchiveRequest
from cudaredist.store.targets import LocalManifest
from cudaredist.wheels import SIMPLE


@dataclass(slots=True)
class Content:
    """One distinct content and its paths in the mirror."""

    sha256: Sha256
    request: ArchiveRequest
    paths: list[str]
    yanked: bool = False


@dataclass
class MirrorContents:
    """The distinct contents of the selected archives of manifests."""

    manifests: Sequence[LocalManifest]
    """In ascending order of each redistributable's releases."""
    selection: MirrorSelection
    files: Mapping[str, MirrorFile]
    """The lock's records."""
    wheels: WheelSource | None
    """The package index, in the wheels channel."""
    claims: dict[str, Sha256] = field(default_factory=dict)
    """The required content of each selected path."""
    errors: list[tuple[str, CudaRedistError]] = field(default_factory=list)
    """The archives that cannot be mirrored, by path or name."""
    _contents: dict[Sha256, Content] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Select the content of each path, and collect the errors."""
        manifests = self.manifests
        if manifests:
            self.selection.filter.check(a for m in manifests for a in m.manifest.archives)
        places = [
            (manifest, archive, archive_path_in(manifest, archive, self.selection.channel))
            for manifest in manifests
            for archive in self.selection.archives(manifest)
        ]
        self._claim((path, archive.sha256) for _, archive, path in places)
        for manifest, archive, path in places:
            about = f"{manifest.name}: {archive.relative_path}"
            if path is None:
                self._refuse(about, IntegrityError(f"{about}: not a path that a mirror can have"))
            elif archive.sha256 is None:
                self._refuse(path, IncompleteError(f"{about}: the manifest states no SHA-256"))
            elif self.claims[path] != archive.sha256:
                self._refuse(path, _conflict(manifest, about))
            else:
                self._add(path, archive.sha256, manifest.request(archive))
        for sha256, package in (self.selection.of_set or {}).items():
            if manifests and sha256 not in self._contents:
                reason = "no manifest has the archive of the package set"
                self._refuse(package, NotAtSourceError(package, reason))
        if self.wheels is not None:
            self._add_wheels(self.wheels)

    def largest_first(self) -> list[Content]:
        """Return the contents, largest first."""
        return sorted(self._contents.values(), key=lambda one: -(one.request.size or 0))

    def _refuse(self, path: str, error: CudaRedistError) -> None:
        self.errors.append((path, error))

    def _claim(self, stated: Iterable[tuple[str | None, Sha256 | None]]) -> None:
        """Select the content of each path.

        If manifests disagree, it is the content in the mirror, or else that of the newest manifest.
        """
        for path, sha256 in stated:
            if path is None or sha256 is None:
                continue
            recorded = self.files.get(path)
            is_settled = recorded is not None and self.claims.get(path) == recorded.sha256
            if not is_settled:
                self.claims[path] = sha256

    def _add_wheels(self, source: WheelSource) -> None:
        """Add the metapackages of each release, mark yanked wheels, and set the index's sizes."""
        for manifest in self.manifests:
            for wheel in source.metapackages(manifest.target.redist.name, str(manifest.label)):
                name = f"{wheel.project}/{wheel.file_name}"
                request = ArchiveRequest(
                    wheel.file_name, (name,), wheel.sha256, wheel.size, manifest.target.bases
                )
                # Metapackages come with a hash, that of the index or of their verified bytes.
                self._add(f"{SIMPLE}/{name}", wheel.sha256 or "", request)
        content_at = {path: one for one in self._contents.values() for path in one.paths}
        for path, wheel in source.wheels_at(content_at).items():
            content = content_at[path]
            content.yanked = wheel.is_yanked
            # Manifests of wheels have no sizes, and without one a wheel could fill the disk.
            if content.request.size is None:
                content.request = content.request._replace(size=wheel.size)

    def _add(self, path: str, sha256: Sha256, request: ArchiveRequest) -> None:
        content = self._contents.setdefault(sha256, Content(sha256, request, []))
        if path not in content.paths:
            content.paths.append(path)


def _conflict(manifest: LocalManifest, about: str) -> IntegrityError:
    """Return the error for a path that has the content of another manifest."""
    name, label = manifest.target.redist.name, manifest.label
    command = command_line("mirror sync", f"mirror-{label}", redist=name, version=label)
    return IntegrityError(
        f"{about}: another manifest states another SHA-256 for this path",
        hint=f"run `{command}`, and select the other releases "
        "of this mirror with --version, --min-version or --max-version",
    )
