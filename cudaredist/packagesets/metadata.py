"""What is known of a package besides its files: addresses, hashes, licence, metadata."""

import base64
import re

from cudaredist.manifests import Archive
from cudaredist.packagesets.draft import Draft
from cudaredist.packagesets.entries import Target
from cudaredist.packagesets.inputs import SetData
from cudaredist.packagesets.outputs import Layout, propagated
from cudaredist.redists import NVIDIA_BASE, REDISTS
from cudaredist.schema import (
    ArchiveFormat,
    DeviceCode,
    ExaminedArchive,
    SetArchive,
    SetLicense,
    SetMeta,
    SetPackage,
)

_FORMATS: tuple[ArchiveFormat, ...] = ("tar.xz", "tar.gz", "tar.zst", "tar", "zip", "whl")
_top = re.compile(r"(.*-archive)\.[a-z.]+").fullmatch


def finish(draft: Draft, target: Target, data: SetData, *, wheel_base: str | None) -> SetPackage:
    """Return the finished entry of a package."""
    has_files = draft.has_files
    layout = draft.layout if has_files else None
    outputs = draft.outputs if has_files else ("out",)
    package, held = draft.package, draft.held
    versions = package.versions if package else ()
    address = _address(draft, data, wheel_base)
    is_elf = target.system == "linux"
    has_binaries = draft.examined is None or draft.examined.libraries or draft.examined.programs
    return SetPackage(
        pname=draft.pname,
        attr=draft.attr,
        alias_of=None,
        redist=draft.redist,
        release=None if held is None else str(held.label),
        version=str(draft.archive.version if draft.archive else versions[0]) if versions else None,
        description=package.title if package else None,
        status=draft.status,
        reasons=draft.reasons,
        platforms=tuple(sorted({a.platform for a in package.archives})) if package else (),
        archive=None if draft.archive is None else _archive(draft.archive, address),
        outputs=outputs,
        collapsed=layout.collapsed if layout else None,
        contents=layout.contents if layout else {},
        normalise=layout.changes if layout else (),
        propagates=propagated(draft.pname, outputs, data.policies.outputs),
        provides=tuple(sorted(draft.provides, key=lambda p: (p.stub, p.path))) if has_files else (),
        needs=tuple(draft.needs) if has_files else (),
        depends=tuple(draft.depends) if has_files else (),
        driver_runpath=bool(has_files and is_elf and has_binaries),
        compat_runpath=draft.compat_runpath,
        gpu_architectures=_architectures(draft.examined, layout),
        license=_license(draft, data, address),
        meta=_meta(draft, data),
        overlay=tuple(dict.fromkeys(draft.overlay)),
    )


def sri_of(sha256: str) -> str:
    """Return a SHA-256 as Nix and browsers write it: `sha256-` and base64."""
    return f"sha256-{base64.b64encode(bytes.fromhex(sha256)).decode()}"


def _address(draft: Draft, data: SetData, wheel_base: str | None) -> str | None:
    """Return the address that a package's paths are relative to; None where none is known."""
    if draft.redist is None:
        return None
    own = data.policies.fixups.urls.get(draft.redist)
    if own is not None:
        return f"{own.rstrip('/')}/"
    if data.channel == "wheels":
        return None if wheel_base is None else f"{wheel_base.rstrip('/')}/"
    known = REDISTS.get(draft.redist)
    if known is None:
        return None
    # nixpkgs has the last folder of TensorRT, on the one server of all others.
    return f"{NVIDIA_BASE}/{known.archive_folders[-1 if known.archive_base else 0]}/"


def join_address(address: str, path: str) -> str:
    """Return the address of a path below another one, of any scheme; `..` goes up."""
    while path.startswith("../"):
        address, path = f"{address.rstrip('/').rpartition('/')[0]}/", path.removeprefix("../")
    return address + path


def _archive(archive: Archive, address: str | None) -> SetArchive:
    path = archive.relative_path
    name = path.rpartition("/")[2]
    top = _top(name)
    sha256 = archive.sha256 or ""
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
    )


def _license(draft: Draft, data: SetData, address: str | None) -> SetLicense:
    policy = data.policies.licenses
    word = draft.package.license if draft.package else None
    entry = (
        policy.packages.get(draft.pname)
        or policy.manifests.get(word or "")
        or policy.redists.get(draft.redist or "")
        or policy.default
    )
    draft.note(data.policies, "licenses", entry)
    path = draft.package.license_path if draft.package else None
    return SetLicense(
        manifest=word,
        spdx=entry.spdx,
        short_name=entry.short_name,
        url=join_address(address, path) if address and path else entry.url,
        free=entry.free,
        redistributable=entry.redistributable,
        source=data.policies.source("licenses", entry),
    )


def _meta(draft: Draft, data: SetData) -> SetMeta:
    of_redist = data.policies.meta.redists.get(draft.redist or "")
    own = data.policies.meta.packages.get(draft.pname)
    for entry in (of_redist, own):
        draft.note(data.policies, "meta", entry)
    return SetMeta(
        homepage=(own and own.homepage) or (of_redist and of_redist.homepage) or None,
        changelog=(own and own.changelog) or (of_redist and of_redist.changelog) or None,
        main_program=own.main_program if own else None,
        fhs_exempt=bool(own and own.fhs_exempt),
    )


def _architectures(
    examined: ExaminedArchive | None, layout: Layout | None
) -> dict[str, tuple[str, ...]]:
    """Return the targets of the device code in each folder, as the folders lie in the set."""
    if examined is None or layout is None:
        return {}
    found = {
        layout.place(f"{folder}/x"): _targets(code) for folder, code in examined.device_code.items()
    }
    return {
        place.removesuffix("/x"): targets
        for place, targets in found.items()
        if place is not None and targets
    }


def _targets(code: DeviceCode) -> tuple[str, ...]:
    both = (code.declared, code.embedded)
    return tuple(
        dict.fromkeys(
            [
                *(name for part in both for name in part.sass),
                *(name for part in both for name in part.ptx),
                *(name for part in both for name in part.lto),
            ]
        )
    )
