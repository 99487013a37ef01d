"""Tests of the folders of libraries in NVIDIA's wheels. Only the ends of wheels are downloaded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY

from cudaredist.environments.audit_program import known_libraries
from cudaredist.formats.library_policy import LibraryPolicy
from cudaredist.formats.registry import read_own_file
from cudaredist.programs.program import KnownLibrary
from cudaredist.programs.run_paths import wheel_folder
from cudaredist.store.cache import Cache
from cudaredist.store.data_folder import Store
from cudaredist.store.facts_index import Index

pytestmark = pytest.mark.network

PARTS_OF_PROGRAMS = {"cuda_nvcc", "cuda_sanitizer_api"}
"""Packages whose libraries are for their own programs only."""
LIST = """
import json, posixpath, sys, zipfile
from pip._internal.commands.download import DownloadCommand
from pip._internal.network.lazy_wheel import LazyZipOverHTTP
command = DownloadCommand("download", "")
options, _ = command.parse_args([])
with command.main_context():
    session = command.get_default_session(options)
    finder = command._build_package_finder(options, session)
    folders = {}
    for path in json.load(sys.stdin):
        project, name = path.split("/")
        links = (one.link for one in finder.find_all_candidates(project))
        link = next(one for one in links if one.filename == name)
        wheel = zipfile.ZipFile(LazyZipOverHTTP(link.url_without_fragment, session))
        paths = {posixpath.basename(each): each for each in wheel.namelist()}
        folders[path] = {name: posixpath.dirname(each) for name, each in paths.items()}
json.dump(folders, sys.stdout)
"""
"""Prints the folders of files in wheels, by the wheel and the name of the file."""


def test_libraries_are_in_the_folders_of_their_wheels(tmp_path: Path) -> None:
    store = Store(REPOSITORY / "data", channel="wheels")
    policy = read_own_file(store.read_policy("libraries"), LibraryPolicy)
    libraries = list(known_libraries(Index(store, Cache(tmp_path)), policy))
    ends: dict[str, list[KnownLibrary]] = {}
    for library in libraries:
        if library.platform == "linux-x86_64" and library.project is not None:
            ends.setdefault(library.project, []).append(library)
    chosen = [one for group in ends.values() for one in (group[0], group[-1])]
    wheels = sorted({str(library.wheel) for library in chosen})
    command = [sys.executable, "-c", LIST]
    run = subprocess.run(
        command, input=json.dumps(wheels), check=True, capture_output=True, text=True
    )
    folders = json.loads(run.stdout)
    found = {one: folders[one.wheel].get(one.soname, "") for one in chosen}
    assert sum(map(bool, found.values())) >= 80
    other = {one.package for one, folder in found.items() if folder not in {"", wheel_folder(one)}}
    assert other <= PARTS_OF_PROGRAMS
