"""The generated files of a mirror: index pages, pages for pip, and `SHA256SUMS`.

All of them follow from the lock, so `verify` generates them again and compares.
"""

import html
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

from packaging.utils import parse_wheel_filename

from cudaredist.formats.mirror_lock import MIRROR_LOCK, MirrorFile

SIMPLE = "simple"
"""The folder of wheels, one folder per project below it."""
METADATA_SUFFIX = ".metadata"
SUMS = "SHA256SUMS"
_PAGE, _JSON = "index.html", "index.json"
_API = "1.1"

MirrorFiles = Mapping[str, MirrorFile]


def generated_files(files: MirrorFiles) -> dict[str, bytes]:
    """Return the bytes of each generated file, by path below the mirror."""
    pages = {SUMS: "".join(f"{file.sha256}  {path}\n" for path, file in sorted(files.items()))}
    projects: dict[str, dict[str, MirrorFile]] = defaultdict(dict)
    for path, file in files.items():
        if path.startswith(f"{SIMPLE}/"):
            _, project, name = path.split("/")
            projects[project][name] = file
    folders = _folders([*files, MIRROR_LOCK, SUMS])
    for folder, names in folders.items():
        if folder.split("/")[0] != SIMPLE:
            pages[f"{folder}/{_PAGE}".lstrip("/")] = _listing(folder, names)
    if projects:
        listed = sorted(projects)
        links = "".join(f'<a href="{name}/">{name}</a><br>\n' for name in listed)
        pages[f"{SIMPLE}/{_PAGE}"] = _simple_page("Simple index", links)
        pages[f"{SIMPLE}/{_JSON}"] = _simple_json({"projects": [{"name": n} for n in listed]})
    for project, wheels in projects.items():
        pages[f"{SIMPLE}/{project}/{_PAGE}"] = _project_page(project, wheels)
        pages[f"{SIMPLE}/{project}/{_JSON}"] = _project_json(project, wheels)
    return {path: text.encode() for path, text in pages.items()}


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


def _listing(folder: str, names: Iterable[str]) -> str:
    links = [*(["../"] if folder else []), *sorted(names)]
    items = "".join(f'<li><a href="{quote(n)}">{html.escape(n)}</a></li>\n' for n in links)
    title = f"Index of /{html.escape(folder)}"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n'
        f'<head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body>\n<h1>{title}</h1>\n<ul>\n{items}</ul>\n</body>\n</html>\n"
    )


# -- PEP 503 and PEP 691


def _simple_page(title: str, links: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
        f'<meta name="pypi:repository-version" content="{_API}"><title>{title}</title></head>\n'
        f"<body>\n<h1>{title}</h1>\n{links}</body>\n</html>\n"
    )


def _simple_json(content: Mapping[str, object]) -> str:
    return json.dumps({"meta": {"api-version": _API}, **content}, indent=1) + "\n"


def _wheels(files: MirrorFiles) -> Iterator[tuple[str, MirrorFile, MirrorFile | None]]:
    """Yield each wheel with its name and its metadata."""
    for name, file in sorted(files.items()):
        if not name.endswith(METADATA_SUFFIX):
            yield name, file, files.get(f"{name}{METADATA_SUFFIX}")


def _project_page(project: str, files: MirrorFiles) -> str:
    links = []
    for name, wheel, metadata in _wheels(files):
        attributes = [f'href="{quote(name)}#sha256={wheel.sha256}"']
        if metadata is not None:
            attributes.append(f'data-core-metadata="sha256={metadata.sha256}"')
        if wheel.requires_python is not None:
            attributes.append(f'data-requires-python="{html.escape(wheel.requires_python)}"')
        if wheel.yanked:
            attributes.append('data-yanked=""')
        links.append(f"<a {' '.join(attributes)}>{html.escape(name)}</a><br>\n")
    return _simple_page(f"Links for {project}", "".join(links))


def _project_json(project: str, files: MirrorFiles) -> str:
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
        for name, wheel, metadata in _wheels(files)
    ]
    versions = sorted({parse_wheel_filename(str(item["filename"]))[1] for item in listed})
    return _simple_json({"name": project, "versions": list(map(str, versions)), "files": listed})
