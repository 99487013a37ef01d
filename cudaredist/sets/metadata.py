"""Finished package entries: URLs, hashes, licenses and metadata."""

import re

from cudaredist.features.distributions import distribution_of
from cudaredist.features.wheel import WHEEL_PREFIX
from cudaredist.formats.features import DeviceCode
from cudaredist.formats.license_policy import License, LicensePolicy, LicenseText
from cudaredist.formats.meta_policy import PackageMeta
from cudaredist.formats.names import Distribution, OutputName
from cudaredist.formats.packageset import ArchiveFormat, SetArchive, SetLicense, SetMeta, SetPackage
from cudaredist.manifests.manifest_values import Archive, Package
from cudaredist.primitives import join_address, natural_order, sri_of
from cudaredist.sets.draft import Draft
from cudaredist.sets.file_outputs import resolve
from cudaredist.sets.inputs import Policies
from cudaredist.sets.licenses import UNKNOWN_TEXT, find_license, find_text
from cudaredist.sets.outputs import OutputSplit, propagated
from cudaredist.sets.set_coverage import package_coverage
from cudaredist.sets.spec import SetSpec
from cudaredist.store.archive_address import archive_base

_FORMATS: tuple[ArchiveFormat, ...] = ("tar.xz", "tar.gz", "tar.zst", "tar", "zip", "whl")
_NO_PACKAGE = Package("", None, None, None, (), (), ())
_top = re.compile(r"(.*-archive)\.[a-z.]+").fullmatch


def make_package(draft: Draft, spec: SetSpec, *, compat_runpath: bool) -> SetPackage:
    """Return the finished entry of a package."""
    # The set does not describe the files and dependencies of, for example, withheld packages.
    with_contents = draft
    if not draft.has_files:
        with_contents = Draft(attr=draft.attr, pname=draft.pname, redist=None)
    split, outputs = with_contents.split, with_contents.outputs
    package = draft.package or _NO_PACKAGE
    versions, manifest, archive = package.versions, draft.manifest, draft.archive
    address = _address(draft, spec)
    coverage = (
        package_coverage(split, spec.flags.effective, spec.cuda, spec.data)
        if draft.has_files
        else {}
    )
    has_binaries = split is None or bool(split.binaries)
    policies, redist = spec.policies, draft.redist or ""
    named = find_license(draft.pname, redist, package.license, policies.licenses)
    text = find_text(split.examined.license_files if split else None, policies.licenses)
    # Only the user's own entry for a package precedes the text in its archive.
    is_own = policies.is_overlaid(named)
    terms = named if is_own or not isinstance(text, License) else text
    of_redist, own = policies.meta.redists.get(redist), policies.meta.packages.get(draft.pname)
    notes = policies.notes("licenses", terms) + policies.notes("meta", of_redist, own)
    return SetPackage(
        pname=draft.pname,
        attr=draft.attr,
        alias_of=None,
        redist=draft.redist,
        release=None if manifest is None else str(manifest.label),
        version=str(archive.version if archive else versions[0]) if versions else None,
        description=package.title,
        status=draft.status,
        reasons=draft.reasons,
        platforms=tuple(sorted({archive.platform for archive in package.archives})),
        archive=None if archive is None else _archive(archive, address),
        outputs=outputs,
        collapsed=split.collapsed if split else None,
        contents=dict(split.contents) if split else {},
        files=_files(with_contents, spec),
        links=_links(with_contents, spec),
        normalise=split.changes if split else (),
        propagates=propagated(draft.pname, outputs, policies.outputs),
        provides=tuple(sorted(with_contents.provides, key=lambda p: (p.stub, p.path))),
        needs=with_contents.needs,
        opens=with_contents.opens,
        depends=with_contents.depends,
        driver_runpath=draft.has_files and spec.platform.os == "linux" and has_binaries,
        compat_runpath=compat_runpath,
        gpu_architectures={} if split is None else _architectures(split),
        coverage=coverage,
        license=_license(draft, terms, text, address, policies),
        meta=_meta(of_redist, own),
        overlay=draft.noted(*notes).overlay,
    )


def _files(draft: Draft, spec: SetSpec) -> dict[OutputName, tuple[str, ...]] | None:
    """Return a package's files by output, if they are requested and known."""
    manifest, archive, split = draft.manifest, draft.archive, draft.split
    if not spec.request.with_files or manifest is None or archive is None or split is None:
        return None
    files = spec.data.read_files(manifest.redist, manifest.label, archive.id)
    if files is None:
        return None
    by_output: dict[OutputName, list[str]] = {output: [] for output in split.outputs}
    for path, output in sorted(files.items()):
        if split.place(path) is not None:
            by_output[resolve((output,), split.outputs)].append(path)
    return {output: tuple(paths) for output, paths in by_output.items() if paths}


def _links(draft: Draft, spec: SetSpec) -> dict[str, str] | None:
    """Return the links to a package's libraries, if its files are requested and known."""
    if not spec.request.with_files or draft.split is None:
        return None
    libraries = draft.split.examined.libraries
    return {link: file.path for file in libraries for link in file.links}


def _address(draft: Draft, spec: SetSpec) -> str | None:
    """Return the base URL of a package, or None.

    All paths of archives and licenses are relative to it. None: unknown.
    """
    archive = draft.archive
    if draft.redist is None:
        return None
    urls = spec.policies.fixups.urls
    is_own = draft.manifest is not None and draft.manifest.is_overlay
    is_wheel = archive is None or archive.relative_path.endswith(".whl")
    if draft.redist not in urls and spec.data.channel == "wheels" and (is_wheel or not is_own):
        base = spec.request.wheel_base
        return None if base is None else f"{base.rstrip('/')}/"
    address = None if draft.manifest is None else draft.manifest.address
    return archive_base(draft.redist, archive, urls, address)


def _archive(archive: Archive, address: str | None) -> SetArchive:
    path, sha256 = archive.relative_path, archive.sha256 or ""
    name = path.rpartition("/")[2]
    top, is_wheel = _top(name), name.endswith(".whl")
    return SetArchive(
        relative_path=path,
        url=None if address is None else join_address(address, path),
        sha256=sha256,
        sri=sri_of(sha256),
        md5=archive.md5,
        size=archive.size,
        platform=archive.platform,
        cuda_variant=archive.variant,
        format=next((form for form in _FORMATS if name.endswith(f".{form}")), None),
        strip_prefix=top[1] if top else None,
        strip_pattern=WHEEL_PREFIX if is_wheel else None,
    )


def license_name(redist: str, package: Package, policy: LicensePolicy) -> str | None:
    """Return the name of a package's license, one for all spellings in manifests."""
    entry = find_license(package.name, redist, package.license, policy)
    return package.license if entry is policy.default else entry.short_name


def _license(
    draft: Draft,
    entry: License,
    text: LicenseText | str | None,
    address: str | None,
    policies: Policies,
) -> SetLicense:
    package = draft.package or _NO_PACKAGE
    word, path = package.license, package.license_path
    # If policy has only the default, the manifest has the better name.
    is_known = entry is not policies.licenses.default or word is None
    is_unknown_text = text == UNKNOWN_TEXT and not policies.is_overlaid(entry)
    url = entry.url if is_known else None
    return SetLicense(
        manifest=word,
        manifest_path=path,
        files=draft.split.examined.license_files if draft.split else None,
        text=text.title if isinstance(text, LicenseText) else text,
        distribution=_distribution(draft, text),
        spdx=entry.spdx if is_known else None,
        short_name=entry.short_name if is_known or word is None else word,
        url=join_address(address, path) if address and path else url,
        free=entry.free,
        redistributable=None if is_unknown_text else entry.redistributable,
        source=policies.source("licenses", entry),
    )


def _distribution(draft: Draft, text: LicenseText | str | None) -> dict[str, Distribution]:
    """Return whether the license text lists each library, nothing without a known list."""
    if not draft.has_files or not isinstance(text, LicenseText) or text.has_list is None:
        return {}
    paths = sorted(library.path for library in draft.provides if not library.stub)
    return {path: distribution_of(path, text) for path in paths}


def _meta(of_redist: PackageMeta | None, own: PackageMeta | None) -> SetMeta:
    """Return a package's metadata, with that of its redistributable if the package has none."""
    homepage = changelog = None
    for entry in (own, of_redist):
        if entry is not None:
            homepage = homepage or entry.homepage or None
            changelog = changelog or entry.changelog or None
    return SetMeta(
        homepage=homepage,
        changelog=changelog,
        main_program=own.main_program if own else None,
        fhs_exempt=bool(own and own.fhs_exempt),
    )


def _architectures(split: OutputSplit) -> dict[str, tuple[str, ...]]:
    """Return the device code's targets by folder."""
    architectures = {}
    for folder, code in split.examined.device_code.items():
        # `place` takes the path of a file: the folder of any file in it is the folder's new path.
        path = split.place(f"{folder}/x")
        targets = _targets(code)
        if path is not None and targets:
            architectures[path.removesuffix("/x")] = targets
    return architectures


def _targets(code: DeviceCode) -> tuple[str, ...]:
    first, second = code.declared, code.embedded
    kinds = (first.sass + second.sass, first.ptx + second.ptx, first.lto + second.lto)
    return tuple(name for names in kinds for name in sorted(set(names), key=natural_order))
