"""Small manifests made to order; everything a test depends on is visible in its call."""

import hashlib
import json


def archive(package: str, platform: str, version: str, salt: str = "") -> dict[str, str]:
    kind = "zip" if platform.startswith("windows-") else "tar.xz"
    path = f"{package}/{platform}/{package}-{platform}-{version}-archive.{kind}"
    return {
        "relative_path": path,
        "sha256": hashlib.sha256((path + salt).encode()).hexdigest(),
        "md5": hashlib.md5((path + salt).encode(), usedforsecurity=False).hexdigest(),
        "size": str(1000 + len(path)),
    }


def manifest(
    label: str = "12.9.1",
    product: str = "cuda",
    *,
    packages: tuple[str, ...] = ("cuda_cudart",),
    platforms: tuple[str, ...] = ("linux-x86_64", "linux-sbsa"),
    salt: str = "",
) -> bytes:
    """Return a flat manifest in NVIDIA's form; another `salt` gives other hashes."""
    document: dict[str, object] = {
        "release_date": "2025-06-04",
        "release_label": label,
        "release_product": product,
    }
    version = label.partition("-")[0]
    for package in packages:
        document[package] = {
            "name": package.upper(),
            "license": "CUDA Toolkit",
            "license_path": f"{package}/LICENSE.txt",
            "version": version,
            **{platform: archive(package, platform, version, salt) for platform in platforms},
        }
    return json.dumps(document, indent=4).encode()
