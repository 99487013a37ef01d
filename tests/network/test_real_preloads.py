"""Rules of libraries that packages load first, compared with the packages' newest wheels."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY

from cudaredist.formats.library_policy import LibraryPolicy, Preload
from cudaredist.formats.registry import read_own_file

pytestmark = [pytest.mark.network, pytest.mark.nightly]

MODULES = """
import json, sys, zipfile
from pip._internal.commands.download import DownloadCommand
from pip._internal.network.lazy_wheel import LazyZipOverHTTP
command = DownloadCommand("download", "")
options, _ = command.parse_args([])
texts = []
with command.main_context():
    session = command.get_default_session(options)
    finder = command._build_package_finder(options, session)
    for project, version, module in json.load(sys.stdin):
        found = [one for one in finder.find_all_candidates(project) if one.link.is_wheel]
        fitting = [one for one in found if version in ("", str(one.version))]
        newest = max(fitting, key=lambda one: one.version)
        wheel = zipfile.ZipFile(LazyZipOverHTTP(newest.link.url_without_fragment, session))
        names = {*wheel.namelist()}
        text = wheel.read(module).decode() if module in names else ""
        texts.append((f"{project} {newest.version} {module}", text))
json.dump(texts, sys.stdout)
"""
"""Prints the text of modules in wheels. Only parts of the wheels are downloaded."""
OTHER_VERSIONS = {"torch": ("2.6.0", "2.12.1")}
NOT_LOADED = {"libcuda"}
"""The driver."""
_find_libraries = re.compile(r"\b(lib(?:cu|nccl|nvrtc|nvJitLink|nvshmem)[\w-]*)\.so").findall


def rules() -> list[Preload]:
    data = (REPOSITORY / "data/policy/libraries.json").read_bytes()
    return list(read_own_file(data, LibraryPolicy).preloads)


def test_rules_have_all_libraries_of_the_modules(tmp_path: Path) -> None:
    wanted = {
        (project, version, rule.module): rule
        for rule in rules()
        for project in rule.projects
        for version in ("", *OTHER_VERSIONS.get(project, ()))
    }
    command = [sys.executable, "-c", MODULES]
    run = subprocess.run(
        command,
        input=json.dumps([*wanted]),
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    texts = json.loads(run.stdout)
    assert len(texts) >= 7
    lacking, functions = {}, set()
    for (title, text), rule in zip(texts, wanted.values(), strict=True):
        if rule.function not in text:
            continue
        functions.add((rule.module, rule.function))
        # The module with optional libraries has the names of others, too.
        if not rule.is_optional:
            known = {name.partition(".so")[0] for name in rule.names}
            lacking[title] = {*_find_libraries(text)} - known - NOT_LOADED
    assert {title: names for title, names in lacking.items() if names} == {}
    assert functions == {(rule.module, rule.function) for rule in rules()}
