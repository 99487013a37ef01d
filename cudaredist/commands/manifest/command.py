"""manifest: manifests of redistributables for which NVIDIA publishes none."""

from typing import Literal

from cudaredist.cli.options import (
    RecordOptions,
    argument,
    complete_redist,
    safety_option,
    select_option,
)
from cudaredist.cli.session import Session, command


class ManifestAddOptions(RecordOptions):
    """Options of manifest."""

    typical = ("archive", "release_date", "replace", "data_dir")

    action: Literal["add"] = argument("Add archives.", metavar="add", default=...)
    redist: str = argument(
        "Redistributable without manifests: tensorrt.",
        metavar="REDIST",
        autocompletion=complete_redist,
        default=...,
    )
    label: str = argument("Label of the release.", metavar="LABEL", default=...)
    archive: list[str] = select_option(
        "Archive, such as linux-x86_64+cuda12.9=URL. Repeatable.",
        metavar="PLATFORM=URL",
        default=...,
    )
    release_date: str | None = select_option(
        "Date of the release, such as 2026-01-31.", metavar="DATE"
    )
    replace: bool = safety_option("Replace archives that have other bytes.")


@command(ManifestAddOptions)
def manifest(options: ManifestAddOptions, session: Session) -> int:
    """Write a manifest from a release's archives.

    Examples:

        cudaredist manifest add tensorrt 10.16.1 --archive linux-x86_64+cuda12=URL  # needs network
        cudaredist download-manifests --redist tensorrt --base-url data  # needs data/

    NVIDIA publishes archives of TensorRT, but no manifests. Each archive is read once: it is
    hashed, and its top folder must have the name and version of the release. Nothing is executed
    or stored. The archives are added to DATA/handwritten/REDIST/redistrib_LABEL.json. If this
    manifest already has another hash for an archive, it is not changed and the exit code is 4. Use
    --replace to replace the hash. The data folder is then a source for
    `download-manifests --base-url`.
    """
    from cudaredist.cli.recording import open_recorder
    from cudaredist.commands.manifest.add_manifest import add_manifest
    from cudaredist.commands.manifest.report import manifest_text
    from cudaredist.store.locate import data_folder

    root = data_folder(options.data_dir, writing=True)
    recorder = open_recorder(session, options, root, "archives")
    report = add_manifest(
        options.redist,
        options.label,
        options.archive,
        root,
        recorder,
        release_date=options.release_date,
    )
    return session.finish(report, manifest_text)
