"""Write a runtime root as an OCI image layout, with the same bytes in every run."""

import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cudaredist.commands.materialize.merge import OURS
from cudaredist.commands.materialize.report import OciImage
from cudaredist.errors import WritingTo
from cudaredist.formats.toolkit_record import ToolkitRecord
from cudaredist.jsontext import canonical_json
from cudaredist.primitives import sha256_of
from cudaredist.sets.file_outputs import folders_above
from cudaredist.store.files import hash_of, read_file, write_file
from cudaredist.store.read_data import read_file_given

_FOLDER = "usr/local/cuda"
_EPOCH = "1970-01-01T00:00:00Z"
_TYPE = "application/vnd.oci.image."
_ARCHITECTURES = {"x86_64": "amd64", "sbsa": "arm64", "aarch64": "arm64", "ppc64le": "ppc64le"}


_RECORD_NAME = "cudaredist.json"
"""The toolkit record in a layout. Other programs ignore the file."""


def read_layout(folder: Path) -> tuple[ToolkitRecord, OciImage | None] | None:
    """Return the record of a layout and its image, None if cudaredist did not write the layout.

    A damaged layout has no image. Raises `InvalidFileError` for a wrong record.
    """
    path = folder / _RECORD_NAME
    data = read_file(path)
    if data is None:
        return None
    record = read_file_given(path, data, ToolkitRecord)
    try:
        return record, _read_image(folder)
    except (OSError, ValueError, LookupError, TypeError):
        return record, None


def _read_image(folder: Path) -> OciImage:
    """Return the image of a layout.

    Raises `OSError`, `ValueError`, `LookupError` or `TypeError` if the layout is damaged.
    """

    def verified(descriptor: Mapping[str, str]) -> Path:
        path = folder / "blobs/sha256" / descriptor["digest"].removeprefix("sha256:")
        if hash_of(path) != path.name:
            raise ValueError(path)
        return path

    (described,) = json.loads((folder / "index.json").read_bytes())["manifests"]
    manifest = json.loads(verified(described).read_bytes())
    (layer,) = manifest["layers"]
    config = json.loads(verified(manifest["config"]).read_bytes())
    return OciImage(
        manifest=described["digest"],
        layer=layer["digest"],
        layer_size=verified(layer).stat().st_size,
        environment=tuple(config["config"]["Env"]),
    )


def write_layout(folder: Path, root: Path, record: ToolkitRecord) -> OciImage:
    """Write a layout whose image has one layer: the root's libraries in `/usr/local/cuda`.

    The layer is not compressed, because compressed bytes depend on the version of zlib. Raises
    `WriteError`.
    """
    blobs = folder / "blobs/sha256"
    with WritingTo(folder):
        blobs.mkdir(parents=True)
        layer = folder / "layer"
        _write_tar(layer, root, record)
        digest, layer_size = hash_of(layer), layer.stat().st_size
        layer.rename(blobs / digest)
    changed = record.changed_files
    system, _, machine = record.platform.partition("-")
    environment = [
        f"LD_LIBRARY_PATH={':'.join(_library_folders(record))}",
        "NVIDIA_VISIBLE_DEVICES=all",
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
    ]
    config = {
        "created": _EPOCH,
        "architecture": _ARCHITECTURES[machine],
        "os": system,
        "config": {
            "Env": environment,
            "Labels": {
                "org.opencontainers.image.title": f"CUDA {record.cuda} runtime libraries",
                "org.opencontainers.image.version": record.cuda,
                "org.cudaredist.libraries": " ".join(record.libraries),
                **({"org.cudaredist.changed": " ".join(changed)} if changed else {}),
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": _EPOCH, "created_by": OURS}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}manifest.v1+json",
        "config": _blob(blobs, "config.v1+json", config),
        "layers": [_descriptor("layer.v1.tar", digest, layer_size)],
    }
    described = _blob(blobs, "manifest.v1+json", manifest)
    described |= {"annotations": {"org.opencontainers.image.ref.name": record.cuda}}
    index = {"schemaVersion": 2, "mediaType": f"{_TYPE}index.v1+json", "manifests": [described]}
    write_file(folder / "index.json", canonical_json(index))
    write_file(folder / "oci-layout", canonical_json({"imageLayoutVersion": "1.0.0"}))
    write_file(folder / _RECORD_NAME, record.canonical())
    return OciImage(
        manifest=described["digest"],
        layer=f"sha256:{digest}",
        layer_size=layer_size,
        environment=tuple(environment),
    )


def _library_folders(record: ToolkitRecord) -> list[str]:
    """Return the folders of the libraries in the image, `lib` first."""
    names = {name.rpartition("/")[0] for name, f in record.files.items() if f.package != OURS}
    return [f"/{_FOLDER}/{name}" for name in sorted(names, key=lambda name: (name != "lib", name))]


def _write_tar(path: Path, root: Path, record: ToolkitRecord) -> None:
    """Write the files and links of packages, sorted, without times and owners."""
    files = {name: file for name, file in record.files.items() if file.package != OURS}
    names = {f"{_FOLDER}/{name}": name for name in (*files, *record.links)}
    folders = {folder for name in names for folder in folders_above(name)}
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted({*names, *folders}):
            member = tarfile.TarInfo(name)
            if name in folders:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(member)
            elif names[name] in record.links:
                member.type, member.mode = tarfile.SYMTYPE, 0o777
                member.linkname = record.links[names[name]].target
                tar.addfile(member)
            else:
                file = files[names[name]]
                member.size, member.mode = file.size, 0o755 if file.executable else 0o644
                with (root / names[name]).open("rb") as content:
                    tar.addfile(member, content)


def _blob(blobs: Path, kind: str, document: Mapping[str, Any]) -> dict[str, Any]:
    data = canonical_json(document)
    digest = sha256_of(data)
    write_file(blobs / digest, data)
    return _descriptor(kind, digest, len(data))


def _descriptor(kind: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": f"{_TYPE}{kind}", "digest": f"sha256:{digest}", "size": size}
