"""The options of process-manifests."""

from dataclasses import field
from pathlib import Path
from typing import Literal

from cudaredist.cli.options import (
    ArchiveJobs,
    Archives,
    LocalReleases,
    ManifestOptions,
    argument,
    output_flag,
    redist_option,
    safety_option,
    select_option,
    work_option,
)
from cudaredist.cli.session import URL_WITH_OPTIONS, Refusal, url_alone


class ProcessOptions(ManifestOptions):
    """Options of process-manifests."""

    typical = ("redist", "version", "platform", "max_download", "data_dir")

    url: str | None = argument("Address to which the archives' paths are relative.", metavar="URL")
    manifest_dir: Path | None = argument(
        "Folder with manifests, and for feature files.", metavar="MANIFEST_DIR"
    )
    redist: list[str] | None = redist_option()
    releases: LocalReleases = field(default_factory=LocalReleases)
    archives: Archives = field(default_factory=Archives)
    max_download: str | None = select_option(
        "Download limit, such as 5GB. Smallest archives first.", metavar="SIZE"
    )
    jobs: ArchiveJobs = field(default_factory=ArchiveJobs)
    allow_unverified: bool = safety_option("Also inspect archives without a hash, and mark them.")
    keep_archives: bool = safety_option("Keep archives in the cache.")
    fill_cache: bool = select_option(
        "Also inspect archives missing from the cache, for diff.", default=False
    )
    engine: Literal["local", "dask"] = work_option("Threads or a Dask cluster.", default="local")
    scheduler: str | None = work_option(
        "Dask scheduler, such as tls://host:8786.", metavar="ADDRESS", envvar="CUDAREDIST_SCHEDULER"
    )
    legacy: bool = output_flag("Write legacy feature files. Requires MANIFEST_DIR.")


REFUSED: tuple[Refusal[ProcessOptions], ...] = (
    (
        lambda o: o.engine == "dask" and not o.scheduler,
        "--engine dask requires --scheduler",
        ["--engine"],
    ),
    (
        lambda o: o.engine == "dask" and o.keep_archives,
        "--keep-archives requires --engine local",
        ["--keep-archives"],
    ),
    (lambda o: o.legacy and o.url is None, "--legacy requires URL and MANIFEST_DIR", ["--legacy"]),
    url_alone("run `cudaredist process-manifests {url} manifests`"),
    URL_WITH_OPTIONS,
)
