"""Small releases with real archives: a manifest, and the archives it names with right hashes."""

import hashlib
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from support.server import FaultServer

Files: TypeAlias = Mapping[str, bytes | str]
"""Content by path below the archive's top directory; text is where a symbolic link leads."""
Packages: TypeAlias = Mapping[str, Mapping[str, Files]]
"""Files by package and platform; `platform/variant` nests."""


def packed(name: str, files: Files, *, is_stored: bool = False) -> bytes:
    """Return an archive, `.zip` or `.tar.xz` by its name, with one top directory."""
    top = name.removesuffix(".zip").removesuffix(".tar.xz")
    out = io.BytesIO()
    if name.endswith(".zip"):
        method = zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(out, "w", method) as archive:
            for path, content in files.items():
                assert isinstance(content, bytes)
                archive.writestr(zipfile.ZipInfo(f"{top}/{path}"), content, method)
        return out.getvalue()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(f"{top}/{path}")
            member.mode = 0o755 if path.startswith("bin/") else 0o644
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                tar.addfile(member)
            else:
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return lzma.compress(out.getvalue(), preset=1)


def release(
    label: str, packages: Packages, *, product: str = "cuda", is_stored: bool = False
) -> dict[str, bytes]:
    """Return a release's files by their path below the folder of its manifest."""
    files: dict[str, bytes] = {}
    document: dict[str, object] = {"release_label": label, "release_product": product}
    version = f"{label}.5"
    for package, platforms in packages.items():
        entry: dict[str, object] = {
            "name": package.upper(),
            "license": "CUDA Toolkit",
            "version": version,
        }
        variants = sorted({key.partition("/")[2] for key in platforms} - {""})
        if variants:
            entry["cuda_variant"] = [variant.removeprefix("cuda") for variant in variants]
        for key, content in platforms.items():
            platform, _, variant = key.partition("/")
            suffix = "zip" if platform.startswith("windows-") else "tar.xz"
            tag = f"_{variant}" if variant else ""
            name = f"{package}-{platform}-{version}{tag}-archive.{suffix}"
            data = packed(name, content, is_stored=is_stored)
            path = f"{package}/{platform}/{name}"
            files[path] = data
            about = {
                "relative_path": path,
                "sha256": hashlib.sha256(data).hexdigest(),
                "md5": hashlib.md5(data, usedforsecurity=False).hexdigest(),
                "size": str(len(data)),
            }
            if variant:
                nested = entry.setdefault(platform, {})
                assert isinstance(nested, dict)
                nested[variant] = about
            else:
                entry[platform] = about
        document[package] = entry
    files[f"redistrib_{label}.json"] = json.dumps(document, indent=4).encode()
    return files


def put(root: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder."""
    for path, data in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def publish(
    server: FaultServer, files: Mapping[str, bytes], redist: str = "cuda", folder: Path = Path()
) -> None:
    """Serve a release's files, and hold its manifest in a folder's `data/`."""
    for path, data in files.items():
        server.files[f"/compute/{redist}/redist/{path}"] = data
        if path.startswith("redistrib_"):
            put(folder / "data/manifests" / redist, {path: data})
