"""Inputs of package sets, in memory or as a data folder."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cudaredist.binaries.file_facts import Binary, CodeSection, DeviceImages
from cudaredist.commands.build.build_sets import BUILD_OPTIONS, build_one, specs_for
from cudaredist.commands.process.feature_file import share_parts
from cudaredist.features.derive import derive
from cudaredist.features.facts import FACTS_SCHEMA, Entry, Facts, Include, IncludeLines
from cudaredist.formats.features import ArchiveFeatures, ExaminedArchive, WholeFeatures
from cudaredist.formats.packageset import PackageSet, SetArchive, SetPackage
from cudaredist.manifests.manifest_values import Archive
from cudaredist.manifests.read_manifest import read_manifest
from cudaredist.primitives import Platform, Version, parse_label, sha256_of
from cudaredist.sets import load
from cudaredist.sets.inputs import (
    POLICY_MODELS,
    ArchiveHeaders,
    InputFeatures,
    InputManifest,
    Policies,
    SetData,
    archive_headers,
)
from cudaredist.sets.invariants.documents import check_set
from cudaredist.sets.spec import Request
from cudaredist.store.data_folder import Store, shipped_data
from cudaredist.store.symbol_folder import LayeredSymbols
from support import factory

LINUX, WINDOWS = Platform("linux-x86_64"), Platform("windows-x86_64")
SBSA, JETSON = Platform("linux-sbsa"), Platform("linux-aarch64")

# -- manifests


class Release(NamedTuple):
    """A release of a redistributable: a manifest and optional features."""

    redist: str
    label: str
    packages: Mapping[str, Sequence[str]]
    """Platforms, or `platform/variant`, by package."""
    features: Mapping[str, ArchiveFeatures] | None = None
    """Features by package or `package/platform`. None means no feature file."""
    versions: Mapping[str, str] = {}
    """Versions of packages that differ from the release's version."""
    more: Mapping[str, Any] = {}
    """Additional keys of each package."""
    is_overlay: bool = False

    @property
    def manifest(self) -> bytes:
        """The bytes of the manifest."""
        return factory.manifest(
            self.label,
            self.redist,
            packages=self.packages,
            versions=self.versions,
            salt=f"{self.redist} {self.label}",
            **self.more,
        )

    @property
    def held(self) -> InputManifest:
        """The parsed manifest with its hash."""
        label, data = parse_label(self.label), self.manifest
        manifest = read_manifest(data, label=label)
        packages = {package.name: package for package in manifest.packages}
        return InputManifest(
            self.redist, label, manifest, sha256_of(data), self.is_overlay, packages
        )

    def features_of(self, archive: Archive) -> ArchiveFeatures | None:
        """Return the features of an archive, or None if it is not examined."""
        return self._of(archive.package, archive.platform)

    def whole_features_of(self, package: str, platform: str) -> WholeFeatures | None:
        """Return the features of an archive with its files, or None if unknown."""
        features = self._of(package, platform)
        return features if isinstance(features, WholeFeatures) else None

    def _of(self, package: str, platform: str) -> ArchiveFeatures | None:
        known = self.features or {}
        return known.get(f"{package}/{platform}", known.get(package))

    @property
    def examined(self) -> dict[tuple[str, str], ExaminedArchive]:
        """The examined archives by package and hash."""
        archives = {}
        for archive in self.held.manifest.archives:
            features = self.features_of(archive)
            if features is not None and archive.sha256 is not None:
                archives[archive.package, archive.sha256] = ExaminedArchive(
                    **{name: getattr(features, name) for name in ArchiveFeatures.model_fields},
                    platform=archive.platform,
                    variant=archive.variant,
                    sha256=archive.sha256,
                    status="examined",
                )
        return archives

    @property
    def headers(self) -> dict[tuple[str, str], ArchiveHeaders]:
        """The headers of archives with known files."""
        return {
            (archive.package, archive.sha256 or ""): archive_headers(
                paths_of(features), features.missing_headers
            )
            for archive in self.held.manifest.archives
            if (features := self.whole_features_of(archive.package, archive.platform))
        }


def cuda(
    label: str = "12.9.1",
    platforms: Sequence[str] = (LINUX, SBSA),
    *,
    features: Mapping[str, ArchiveFeatures] | None = None,
    packages: Mapping[str, Sequence[str]] | None = None,
    **more: Sequence[str],
) -> Release:
    """Return a release of CUDA with nvcc, cudart and other given packages.

    From 13.0, it also includes libnvvm, which nvcc requires.
    """
    all_packages = {"cuda_cudart": platforms, "cuda_nvcc": platforms, **(packages or {}), **more}
    if int(label.partition(".")[0]) >= 13:
        all_packages.setdefault("libnvvm", platforms)
    return Release("cuda", label, all_packages, features)


# -- features


def elf(soname: str | None = None, *needed: str, **more: Any) -> Binary:
    """Return a shared library, or a program if no soname is given."""
    is_shared = soname is not None
    return Binary(
        kind="elf", machine="x86_64", is_shared=is_shared, soname=soname, needed=needed, **more
    )


STATIC = Binary(kind="ar", machine="x86_64", objects=3)


def features_of(files: Mapping[str, Binary | str | None]) -> WholeFeatures:
    """Return the features of an archive with given files. Text is a link's target."""
    members = []
    for path, content in files.items():
        if isinstance(content, str):
            members.append(Entry(name=f"top/{path}", kind="symlink", target=content))
        else:
            mode = 0o755 if path.startswith("bin/") else 0o644
            members.append(
                Entry(name=f"top/{path}", kind="file", size=100, mode=mode, binary=content)
            )
    return derive(Facts(schema=FACTS_SCHEMA, members=tuple(members)))


def library(soname: str, *needed: str, **files: Binary | None) -> ArchiveFeatures:
    """Return the features of an archive with one library, its links and headers."""
    stem, _, number = soname.partition(".so")
    real = f"lib/{soname}.5"
    return features_of(
        {
            "LICENSE": None,
            f"include/{stem}.h": None,
            real: elf(soname, *needed),
            f"lib/{soname}": real.rpartition("/")[2],
            **({f"lib/{stem}.so": soname} if number else {}),
            **files,
        }
    )


def paths_of(features: WholeFeatures) -> list[str]:
    """Return the paths of an archive's files."""
    return [
        f"{folder}/{name}".lstrip("/")
        for folders in features.files.values()
        for folder, names in folders.items()
        for name in names.split("/")
    ]


def with_headers(headers: Mapping[str, Mapping[str, str]]) -> WholeFeatures:
    """Return the features of an archive with headers and their conditional includes."""
    members = tuple(
        Entry(
            name=f"top/{path}",
            kind="file",
            header=IncludeLines(
                includes=tuple(Include(name=n, condition=c) for n, c in includes.items())
            ),
        )
        for path, includes in headers.items()
    )
    return derive(Facts(schema=FACTS_SCHEMA, members=members))


def image_sizes(modules: Mapping[str, int]) -> dict[str, int]:
    """Return the bytes of all images of each architecture, 9000 for each image."""
    sizes = Counter[str]()
    for key, count in modules.items():
        for image in key.split():
            name, _, times = image.partition("*")
            sizes[name] += 9000 * count * int(times or 1)
    return dict(sizes)


def with_code(*modules: Mapping[str, int] | None) -> WholeFeatures:
    """Return the features of an archive with a library for each mapping of modules.

    None means a library without device code.
    """
    files: dict[str, Binary | str | None] = {}
    for number, of_file in enumerate(modules):
        code: dict[str, Any] = {}
        if of_file is not None:
            sizes = image_sizes(of_file)
            section = CodeSection(section="", is_declared=True, counts=dict.fromkeys(sizes, 1))
            both = {name: (size, size) for name, size in sizes.items()}
            images = DeviceImages(sizes=both, modules=dict(of_file))
            code = {"device_code": (section,), "images": images}
        files[f"lib/lib{number}.so.1"] = elf(f"lib{number}.so.1", **code)
    return features_of(files)


# -- data


@cache
def _shipped() -> SetData:
    return load.read_set_data(Store(shipped_data()))


def _changed_policies(changes: Mapping[str, dict[str, Any]]) -> Policies:
    constraints = _shipped().policies.constraints.model_copy(update={"first_wheels": {}})
    changed: dict[str, Any] = {"constraints": constraints}
    for subject, change in changes.items():
        shipped = json.loads((shipped_data() / "policy" / f"{subject}.json").read_bytes())
        shipped.pop("first_wheels", None)
        document = json.dumps(load.merge_policy(shipped, change))
        changed[subject] = POLICY_MODELS[subject].model_validate_json(document)
    return replace(_shipped().policies, **changed)


def set_data_of(
    *releases: Release, policies: Mapping[str, dict[str, Any]] | None = None, **more: Any
) -> SetData:
    """Return the inputs of sets: releases and the shipped policies with changes.

    Like the shipped wheels, the first wheels of products are left out.
    """
    by_place = {(release.redist, parse_label(release.label)): release for release in releases}
    manifests: dict[str, dict[Version, InputManifest]] = {}
    for (redist, label), release in by_place.items():
        manifests.setdefault(redist, {})[label] = release.held

    @cache
    def read_features(redist: str, label: Version) -> InputFeatures | None:
        release = by_place[redist, label]
        if release.features is None:
            return None
        return InputFeatures(
            "f" * 64, release.is_overlay, release.examined, {}, {}, release.headers
        )

    values: dict[str, Any] = {
        "manifests": manifests,
        "read_features": read_features,
        "policies": _changed_policies(policies or {}),
        "runfiles": {},
        "inputs": (),
        "shipped_wheels": lambda _: (),
        "symbols": LayeredSymbols(()),
    }
    return replace(_shipped(), **(values | more))


def build(
    data: SetData, cuda: str = "12.9.1", platform: str | None = LINUX, **request: Any
) -> PackageSet:
    """Return a set. Unexamined archives are allowed."""
    request = {"allow_missing_features": True, "options": BUILD_OPTIONS, **request}
    if "system" in request:
        platform = None
    (spec,) = specs_for(Request(platform=platform, **request), data, [cuda])
    return build_one(spec, data)


def package(data: SetData, name: str, **request: Any) -> SetPackage:
    """Return one package of a set."""
    return build(data, **request).packages[name]


def archive_of(data: SetData, name: str, **request: Any) -> SetArchive:
    """Return the archive of one package of a set."""
    archive = package(data, name, **request).archive
    assert archive is not None
    return archive


def valid(package_set: PackageSet) -> PackageSet:
    """Return a set that satisfies all invariants of one document."""
    assert check_set(package_set) == []
    return package_set


def outline(entry: SetPackage) -> tuple[str, list[str]]:
    """Return the status of a package, and the codes of its reasons."""
    return entry.status, [reason.code for reason in entry.reasons]


def texts(package_set: PackageSet, code: str) -> list[str]:
    """Return the texts of a set's diagnostics with a code."""
    return [entry.text for entry in package_set.diagnostics if entry.code == code]


# -- policies


def rule(**fields: Any) -> dict[str, Any]:
    """Return an entry of a policy."""
    return {"reason": "r", "reference": "r", **fields}


def fixup(package: str, **fields: Any) -> dict[str, Any]:
    """Return the policy with one change to a package, for `set_data_of`."""
    return {"fixups": {"fixups": [rule(package=package, **fields)]}}


# -- on disk


def put_data(root: Path, *releases: Release) -> Store:
    """Write releases to a data folder or an overlay."""
    for release in releases:
        folder = root / "manifests" / release.redist
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"redistrib_{release.label}.json").write_bytes(release.manifest)
        if release.features is not None:
            _put_features(root, release)
    return Store(root, base=Store(shipped_data(), examined_only=True))


def _put_features(root: Path, release: Release) -> None:
    packages: dict[str, Any] = {}
    for (name, _), archive in release.examined.items():
        version = release.versions.get(name, release.label.partition("-")[0])
        entry = packages.setdefault(name, {"version": version, "archives": []})
        whole = release.whole_features_of(name, archive.platform)
        shared = {} if whole is None else whole.model_dump(mode="json")
        entry["archives"].append({**shared, **archive.model_dump(mode="json")})
    for entry in packages.values():
        entry.update(share_parts(entry["archives"]))
    document = factory.feature_document(
        release.label, release.redist, manifest_sha256=release.held.sha256, packages=packages
    )
    folder = root / "features" / release.redist
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"feature_{release.label}.json").write_text(json.dumps(document), encoding="utf-8")


def put_policy(root: Path, subject: str, **content: Any) -> None:
    """Write a policy file to an overlay or a data folder."""
    (root / "policy").mkdir(parents=True, exist_ok=True)
    text = json.dumps({"schema_version": 1, **content})
    (root / "policy" / f"{subject}.json").write_text(text, encoding="utf-8")
