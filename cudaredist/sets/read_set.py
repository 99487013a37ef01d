"""Read package sets from files."""

import re
from pathlib import Path

from cudaredist.errors import InvalidFileError, UsageError
from cudaredist.formats.packageset import PackageSet
from cudaredist.formats.registry import parse_own_json
from cudaredist.formats.set_index import PackageSetIndex
from cudaredist.hints import command_line, correction_line
from cudaredist.primitives import KNOWN_PLATFORMS, sha256_of
from cudaredist.store.files import is_inside, read_file
from cudaredist.store.read_data import read_file_given
from cudaredist.words import listed

_set_name = re.compile(
    r"(?:cuda-)?(?P<release>[0-9]{1,3}(?:\.[0-9]{1,3}){1,2})"
    r"(?:-(?P<gpus>[0-9]{1,3}\.[0-9][af]?(?:_[0-9]{1,3}\.[0-9][af]?)*))?(?:\.json)?"
)
"""The name of a set, with its CUDA release and capabilities: cuda-12.9.2-9.0.json."""


def indexed_sets(path: Path) -> list[Path]:
    """Return the paths in an index, or the path of any other file."""
    data = read_file(path)
    document = None if data is None else parse_own_json(data, f"JSON file ({path})")
    if data is None or not isinstance(document, dict) or "sets" not in document:
        return [path]
    index = read_file_given(path, data, PackageSetIndex)
    sets = [path.parent / entry.path for entry in index.sets]
    for number, one in enumerate(sets):
        if not is_inside(one, path.parent):
            problem = f"{one} leads out of the folder of the index by a link"
            raise InvalidFileError.of(
                f"package-set index ({path})", problem, f"sets[{number}].path"
            )
    return sets or [path]


def read_package_set(path: Path) -> tuple[PackageSet, str]:
    """Return a file's package set and hash.

    Raises `UsageError` if the file does not exist or is an index, and `InvalidFileError` if it is
    not a package set.
    """
    data = read_file(path)
    if data is None:
        file = path if path.suffix == ".json" else path.with_name(f"{path.name}.json")
        named, platform = _set_name.fullmatch(path.name), path.parent.name
        gpus = named["gpus"].split("_") if named and named["gpus"] else []
        command = command_line(
            "build",
            *(f"--gpu {gpu}" for gpu in gpus),
            cuda=named["release"] if named else "13",
            platform=platform if platform in KNOWN_PLATFORMS else "linux-x86_64",
            output=file,
        )
        raise UsageError(f"{path}: no such file", hint=f"run `{command}` to create it")
    try:
        return read_file_given(path, data, PackageSet), sha256_of(data)
    except InvalidFileError:
        indexed = indexed_sets(path)
        if indexed == [path]:
            raise
        names = list(map(str, indexed))
        hint = correction_line(f"name one of its sets: {listed(names)}", str(path), names)
        raise UsageError(f"{path} is an index of package sets", hint=hint) from None
