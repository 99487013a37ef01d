"""The page with the packages of the other kind: NVIDIA's archives on a site of wheels."""

from collections import defaultdict

from cudaredist.commands.site.page_models import OtherKindPage, OtherPackage, ReleaseArchive, Span
from cudaredist.formats.fixup_policy import FixupPolicy
from cudaredist.formats.license_policy import LicensePolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.manifests.manifest_values import Manifest, Package
from cudaredist.primitives import Version
from cudaredist.sets.metadata import license_name
from cudaredist.store.archive_address import archive_address
from cudaredist.store.data_folder import Store
from cudaredist.store.local_manifests import load_manifest


def read_other_kind(store: Store) -> OtherKindPage | None:
    """Return the page of a channel's packages, from its manifests. None: it has none."""
    urls = read_own_file(store.read_policy("fixups"), FixupPolicy).urls
    licenses = read_own_file(store.read_policy("licenses"), LicensePolicy)
    packages = []
    for redist in store.redists():
        releases: dict[str, list[Version]] = defaultdict(list)
        newest: dict[str, tuple[Manifest, Package]] = {}
        for label in store.manifests(redist).labels():
            manifest = load_manifest(store, redist, label)
            for package in manifest.packages:
                releases[package.name].append(label)
                newest[package.name] = manifest, package
        for name, labels in releases.items():
            manifest, package = newest[name]
            address = store.address_of(redist, labels[-1])
            archives = sorted(package.archives, key=lambda archive: archive.id.place)
            packages.append(
                OtherPackage(
                    package=name,
                    title=package.title,
                    version=", ".join(map(str, package.versions)),
                    license=license_name(redist, package, licenses),
                    date=manifest.release_date,
                    span=Span(
                        redist=redist,
                        first=str(labels[0]),
                        newest=str(labels[-1]),
                        releases=len(labels),
                    ),
                    archives=tuple(
                        ReleaseArchive(
                            platform=archive.platform,
                            variant=archive.variant,
                            size=archive.size,
                            unpacked=None,
                            file=archive.relative_path.rpartition("/")[2],
                            sha256=archive.sha256,
                            address=archive_address(redist, archive, urls, address),
                            outputs=(),
                        )
                        for archive in archives
                    ),
                )
            )
    if not packages:
        return None
    packages.sort(key=lambda one: (one.package, one.span.redist))
    title = "NVIDIA's wheels" if store.channel == "wheels" else "NVIDIA's archives"
    return OtherKindPage(title=title, of_channel=store.channel, packages=tuple(packages))
