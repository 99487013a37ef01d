"""The generated files of a mirror: index pages, pages for pip, and `SHA256SUMS`.

All of them follow from the lock, so `verify` generates them again and compares.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from jinja2 import Environment, PackageLoader
from packaging.utils import parse_wheel_filename

from cudaredist.formats.mirror_lock import METADATA_SUFFIX, MIRROR_LOCK, MirrorFile
from cudaredist.sources.releases import ListedManifest, release_documents
from cudaredist.wheels import SIMPLE

SUMS = "SHA256SUMS"
_PAGE, _JSON = "index.html", "index.json"
_API = "1.1"

MirrorFiles = Mapping[str, MirrorFile]

_environment = Environment(
    loader=PackageLoader("cudaredist.commands.mirror"),
    autoescape=True,
    trim_blocks=True,
    keep_trailing_newline=True,
)
_environment.filters["quote"] = quote


def generated_files(files: MirrorFiles) -> dict[str, bytes]:
    """Return the bytes of each generated file, by path below the mirror."""
    pages = {SUMS: "".join(f"{file.sha256}  {path}\n" for path, file in sorted(files.items()))}
    projects: dict[str, dict[str, MirrorFile]] = defaultdict(dict)
    for path, file in files.items():
        if path.startswith(f"{SIMPLE}/"):
            _, project, name = path.split("/")
            projects[project][name] = file
    documents = release_documents(
        ListedManifest(file.lists, path, file.sha256, file.size)
        for path, file in files.items()
        if file.lists is not None
    )
    listing, simple = (_environment.get_template(name) for name in ("folder.html", "simple.html"))
    for folder, names in _folders([*files, *documents, MIRROR_LOCK, SUMS]).items():
        if folder.split("/")[0] != SIMPLE:
            page = listing.render(folder=folder, names=sorted(names))
            pages[f"{folder}/{_PAGE}".lstrip("/")] = page
    indexes = {f"{SIMPLE}/{name}": _project(name, wheels) for name, wheels in projects.items()}
    if projects:
        indexes[SIMPLE] = {"projects": [{"name": name} for name in sorted(projects)]}
    for folder, content in indexes.items():
        index = {"meta": {"api-version": _API}, **content}
        pages[f"{folder}/{_PAGE}"] = simple.render(index)
        pages[f"{folder}/{_JSON}"] = json.dumps(index, indent=1) + "\n"
    return {path: text.encode() for path, text in pages.items()} | documents


def _folders(paths: Iterable[str]) -> dict[str, set[str]]:
    """Return the names in each folder, with a slash after folders."""
    folders: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        folder, _, name = path.rpartition("/")
        folders[folder].add(name)
        while folder:
            folder, _, name = folder.rpartition("/")
            folders[folder].add(f"{name}/")
    return folders


def _project(project: str, files: MirrorFiles) -> dict[str, object]:
    """Return a project's wheels as in PEP 691. The page of PEP 503 is made from it."""
    listed = [
        {
            "filename": name,
            "url": quote(name),
            "hashes": {"sha256": wheel.sha256},
            "size": wheel.size,
            "core-metadata": {"sha256": metadata.sha256} if metadata else False,
            "requires-python": wheel.requires_python,
            "yanked": wheel.yanked,
        }
        for name, wheel in sorted(files.items())
        if not name.endswith(METADATA_SUFFIX)
        for metadata in [files.get(f"{name}{METADATA_SUFFIX}")]
    ]
    versions = sorted({parse_wheel_filename(str(item["filename"]))[1] for item in listed})
    return {"name": project, "versions": list(map(str, versions)), "files": listed}
