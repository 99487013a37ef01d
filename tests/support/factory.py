"""Manifests and package sets for tests.

Each test states the values that it depends on. Other required fields of a package set get the
smallest value of their model.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

from cudaredist.features.derive import RULES
from cudaredist.formats.base import OwnModel
from cudaredist.formats.packageset import (
    PACKAGE_SET_FORMAT,
    CudaRelease,
    PackageSet,
    SetArchive,
    SetLicense,
    SetPackage,
    SetPlatform,
)
from cudaredist.formats.policy import NamePolicy

# -- manifests


def archive_path(package: str, platform: str, version: str, variant: str = "") -> str:
    """Return an archive's path below the folder of its manifest."""
    suffix = "zip" if platform.startswith("windows-") else "tar.xz"
    tag = f"_{variant}" if variant else ""
    return f"{package}/{platform}/{package}-{platform}-{version}{tag}-archive.{suffix}"


def archive(path: str, content: bytes | None = None, *, salt: str = "") -> dict[str, str]:
    """Return the manifest entry of an archive. Without content, `salt` changes its hash."""
    data = (path + salt).encode() if content is None else content
    return {
        "relative_path": path,
        "sha256": hashlib.sha256(data).hexdigest(),
        "md5": hashlib.md5(data, usedforsecurity=False).hexdigest(),
        "size": str(1000 + len(path) if content is None else len(content)),
    }


def manifest(
    label: str = "12.9.1",
    product: str = "cuda",
    *,
    packages: Iterable[str] | Mapping[str, Iterable[str]] = ("cuda_cudart",),
    platforms: Iterable[str] = ("linux-x86_64", "linux-sbsa"),
    versions: Mapping[str, str] | None = None,
    contents: Mapping[str, bytes] | None = None,
    salt: str = "",
    **more: object,
) -> bytes:
    """Return a manifest in NVIDIA's form.

    `packages` may map each package to its own platforms or `platform/variant`. `contents` maps
    paths to archives. `more` contains keys of each package, and None omits a key.
    """
    document: dict[str, Any] = {
        "release_date": "2025-06-04",
        "release_label": label,
        "release_product": product,
    }
    for name in packages:
        version = (versions or {}).get(name, label.partition("-")[0])
        entry: dict[str, Any] = {
            "name": name.upper(),
            "license": "CUDA Toolkit",
            "license_path": f"{name}/LICENSE.txt",
            "version": version,
            **more,
        }
        places = list(packages[name] if isinstance(packages, Mapping) else platforms)
        variants = sorted({place.partition("/")[2] for place in places} - {""})
        if variants:
            entry.setdefault("cuda_variant", [v.removeprefix("cuda") for v in variants])
        for place in places:
            platform, _, variant = place.partition("/")
            path = archive_path(name, platform, version, variant)
            entry_of_archive = archive(path, (contents or {}).get(path), salt=salt)
            entry.setdefault(platform, {}).update(
                {variant: entry_of_archive} if variant else entry_of_archive
            )
        document[name] = {key: value for key, value in entry.items() if value is not None}
    return json.dumps(document, indent=4).encode()


# -- feature files


def feature_document(label: str, redist: str = "cuda", **changes: Any) -> dict[str, Any]:
    """Return the document of a feature file."""
    usual = {"schema_version": 1, "manifest_sha256": "a" * 64, "rules": RULES, "packages": {}}
    return {**usual, "redist": redist, "label": label, **changes}


# -- package sets


def blank(model: type[OwnModel], **values: Any) -> dict[str, Any]:
    """Return a document with given values and the smallest value of other required fields."""
    required = {
        field.alias or name: _smallest(field.annotation)
        for name, field in model.model_fields.items()
        if field.is_required()
    }
    return required | values


def _smallest(kind: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _smallest(arguments[0])
    if origin is Literal:
        return arguments[0]
    if type(None) in arguments:
        return None
    if origin is tuple:
        return []
    if isinstance(kind, type) and issubclass(kind, OwnModel):
        return blank(kind)
    return (origin or kind)()


def set_archive(path: str, content: bytes | None = None, **changes: Any) -> dict[str, Any]:
    """Return the archive of a package of a set."""
    entry = archive(path, content)
    digest = base64.b64encode(bytes.fromhex(entry["sha256"])).decode()
    return blank(
        SetArchive,
        **{
            **entry,
            "size": int(entry["size"]),
            "sri": f"sha256-{digest}",
            "platform": "linux-x86_64",
            **changes,
        },
    )


def set_package(name: str, **changes: Any) -> dict[str, Any]:
    """Return an available package of a set."""
    usual = {
        "pname": name,
        "attr": name,
        "redist": "cuda",
        "description": name.upper(),
        "platforms": ["linux-x86_64"],
        "outputs": ["out"],
        "license": blank(SetLicense, short_name="CUDA EULA"),
    }
    return blank(SetPackage, **{**usual, **changes})


def package_set(
    packages: Mapping[str, Mapping[str, Any]],
    *,
    release: str = "13.3.1",
    system: str = "linux-x86_64",
    **changes: Any,
) -> dict[str, Any]:
    """Return the document of a package set."""
    minor = release.rpartition(".")[0]
    usual = {
        "schema": PACKAGE_SET_FORMAT,
        "cuda": blank(
            CudaRelease,
            release=release,
            major_minor=minor,
            major=release.partition(".")[0],
            attribute=f"cudaPackages_{minor.replace('.', '_')}",
            name_prefix=f"cuda{minor}",
        ),
        "platform": blank(SetPlatform, redist_system=system),
        "packages": dict(packages),
    }
    return blank(PackageSet, **{**usual, **changes})


# -- policies


def name_policy() -> NamePolicy:
    """Return a policy with a renamed and a split package."""
    given = {"reason": "for tests", "reference": "none"}
    return NamePolicy.model_validate(
        {
            "schema_version": 1,
            "sets": {"default": "12", "majors": {}, **given},
            "aliases": {},
            "renames": {"cuda_cccl": {"to": "cccl", "since": "13.3", **given}},
            "splits": {"cuda_nvcc": {"into": ("cuda_crt", "libnvvm"), "since": "13.0", **given}},
        },
        strict=False,
    )
