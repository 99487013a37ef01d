"""The paths of a mirror that a manifest names."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cudaredist.cli.session import find_redists
from cudaredist.commands.mirror.options import MirrorOptions
from cudaredist.formats.mirror_lock import METADATA_SUFFIX
from cudaredist.formats.names import Channel
from cudaredist.formats.registry import read_own_file
from cudaredist.formats.toolkit_record import ComponentPolicy
from cudaredist.manifests.manifest_values import Archive
from cudaredist.primitives import Sha256, Version, manifest_name, parse_label
from cudaredist.redists import Redist, find_redist
from cudaredist.sets.components import select
from cudaredist.sets.read_set import read_package_set
from cudaredist.sets.request_options import ComponentOptions
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.selection import EVERY_RELEASE, Selection
from cudaredist.store.targets import (
    Filter,
    LocalManifest,
    LocalManifests,
    read_local_manifests,
    targets_in_store,
)
from cudaredist.wheel_projects import FAMILIES
from cudaredist.wheels import SIMPLE, newest_builds, parse_wheel

_COMPONENT_OPTIONS = ComponentOptions("--component", "--exclude")
_RESERVED_ENDS = (".html", ".json", ".part", ".tmp", METADATA_SUFFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSelection:
    """The manifests and archives to mirror, selected by options or a package set."""

    channel: Channel
    redists: Sequence[Redist]
    releases: Selection
    labels: frozenset[tuple[str, Version]] | None = None
    """The releases of a package set; None: those that `releases` selects."""
    filter: Filter = field(default_factory=Filter)
    of_set: Mapping[Sha256, str] | None = None
    """The archives of a package set, with their packages; None: all."""

    @classmethod
    def of(cls, options: MirrorOptions) -> "MirrorSelection":
        """Return the selection of the options."""
        if options.package_set is None:
            return cls(
                channel=options.channel,
                redists=find_redists(options.redist, options.channel),
                releases=options.releases.selection,
                filter=options.archives.filter,
            )
        value, _ = read_package_set(options.package_set)
        selected = value.packages
        if options.component:
            policy = Store(shipped_data()).read_policy("components")
            components = read_own_file(policy, ComponentPolicy).components
            selected = select(value, options.component, (), components, _COMPONENT_OPTIONS).packages
        packages = [p for p in selected.values() if p.archive and p.redist and p.release]
        labels = frozenset((p.redist or "", parse_label(p.release or "")) for p in packages)
        return cls(
            channel=value.channel,
            redists=find_redists(sorted({redist for redist, _ in labels}), value.channel),
            releases=Selection(versions=tuple(sorted({str(label) for _, label in labels}))),
            labels=labels,
            of_set={p.archive.sha256: p.attr for p in packages if p.archive},
        )

    def archives(self, manifest: LocalManifest) -> Iterator[Archive]:
        """Yield the selected archives of a manifest."""
        for archive in manifest.manifest.archives:
            is_in_set = self.of_set is None or archive.sha256 in self.of_set
            if is_in_set and self.filter.excluding(archive) is None:
                yield archive


def mirrored_manifests(store: Store) -> LocalManifests:
    """Return all manifests that a mirror has of a channel."""
    names = store.redists()
    if not names:
        return LocalManifests((), ())
    targets = targets_in_store(store, [find_redist(name, own=names) for name in names], ())
    return read_local_manifests(targets, EVERY_RELEASE)


def published_path(manifest: LocalManifest) -> str:
    """Return the path of a manifest, as on NVIDIA's servers."""
    if manifest.entry is not None and manifest.entry.address is not None:
        return manifest.entry.address
    redist = manifest.target.redist
    folder = redist.preview_folder if manifest.manifest.is_preview else redist.manifest_folders[0]
    return f"{folder}/{manifest_name(manifest.label)}"


def archive_path_in(manifest: LocalManifest, archive: Archive, channel: Channel) -> str | None:
    """Return the path of an archive in the mirror.

    None if it is outside the mirror, or the name of a generated file.
    """
    if channel == "wheels":
        return f"{SIMPLE}/{archive.relative_path}"
    path = next(manifest.paths(archive), "")
    is_outside = "/" not in path or path.startswith((".", "/", f"{SIMPLE}/"))
    return None if is_outside or path.endswith(_RESERVED_ENDS) else path


def paths_of(
    manifest: LocalManifest, selection: MirrorSelection, paths: Collection[str]
) -> Iterator[str]:
    """Yield the paths of a manifest and its archives.

    The wheels of metapackages are some of the `paths` in the mirror.
    """
    channel = selection.channel
    if channel == "redist":
        yield published_path(manifest)
    for archive in selection.archives(manifest):
        path = archive_path_in(manifest, archive, channel)
        if path is not None:
            yield path
            yield f"{path}{METADATA_SUFFIX}"
    family = FAMILIES.get(manifest.target.redist.name) if channel == "wheels" else None
    if family is not None and family.package is None:
        folders = tuple(f"{SIMPLE}/{project}/" for project in family.projects.values())
        for path in paths:
            name = path.rpartition("/")[2].removesuffix(METADATA_SUFFIX)
            wheel = parse_wheel(name, "") if path.startswith(folders) else None
            if wheel and str(manifest.label) in newest_builds([wheel], family.label):
                yield path
