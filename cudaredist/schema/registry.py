"""Every kind of file of ours, and how such a file is read and judged."""

import json
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from cudaredist.errors import InvalidFileError, Problem
from cudaredist.jsontext import join_path, parse_json
from cudaredist.schema.base import OwnModel
from cudaredist.schema.features import Features, Lock
from cudaredist.schema.packageset import PackageSet, PackageSetIndex
from cudaredist.schema.policy import (
    ConstraintPolicy,
    DriverPolicy,
    FixupPolicy,
    LibraryPolicy,
    LicensePolicy,
    MetaPolicy,
    NamePolicy,
    OutputPolicy,
    PlatformPolicy,
    RequirementPolicy,
    WithheldPolicy,
)
from cudaredist.schema.runfile_records import Runfiles
from cudaredist.schema.symbols import Symbols
from cudaredist.schema.tables import GpuPolicy, Gpus, NvccCompat, NvccPolicy
from cudaredist.schema.toolkit_record import ComponentPolicy, ToolkitRecord

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError as JsonSchemaError

_OwnModel = TypeVar("_OwnModel", bound=OwnModel)

OWN_FILE_LIMIT = 256 << 20
"""The most bytes one of our own files may have."""

_PROBLEMS_GATHERED = 1000
_MESSAGE_LIMIT = 200


@dataclass(frozen=True, slots=True)
class FileKind:
    """One kind of file of ours."""

    name: str
    """The name that `schema` takes."""
    model: type[OwnModel]
    keys: frozenset[str]
    """Outermost keys by which a file of this kind is recognised."""


FILE_KINDS = {
    kind.name: kind
    for kind in (
        FileKind("features", Features, frozenset({"manifest_sha256", "packages"})),
        FileKind("gpus", Gpus, frozenset({"capabilities"})),
        FileKind("lock", Lock, frozenset({"redists"})),
        FileKind("nvcc-compat", NvccCompat, frozenset({"releases"})),
        FileKind("package-set", PackageSet, frozenset({"cuda", "capabilities", "packages"})),
        FileKind("package-set-index", PackageSetIndex, frozenset({"sets", "skipped"})),
        FileKind("policy-components", ComponentPolicy, frozenset({"components"})),
        FileKind("policy-constraints", ConstraintPolicy, frozenset({"constraints"})),
        FileKind("policy-drivers", DriverPolicy, frozenset({"lowest"})),
        FileKind("policy-fixups", FixupPolicy, frozenset({"fixups"})),
        FileKind("policy-gpus", GpuPolicy, frozenset({"overlay"})),
        FileKind("policy-libraries", LibraryPolicy, frozenset({"external", "loaded"})),
        FileKind("policy-licenses", LicensePolicy, frozenset({"manifests", "default"})),
        FileKind("policy-meta", MetaPolicy, frozenset({"redists", "packages"})),
        FileKind("policy-names", NamePolicy, frozenset({"renames"})),
        FileKind("policy-nvcc", NvccPolicy, frozenset({"unseen_releases"})),
        FileKind("policy-outputs", OutputPolicy, frozenset({"collapse"})),
        FileKind("policy-platforms", PlatformPolicy, frozenset({"jetson_thresholds"})),
        FileKind("policy-requirements", RequirementPolicy, frozenset({"requirements"})),
        FileKind("policy-withheld", WithheldPolicy, frozenset({"withheld"})),
        FileKind("runfiles", Runfiles, frozenset({"runfiles"})),
        FileKind("symbols", Symbols, frozenset({"soname", "exports"})),
        FileKind("toolkit-record", ToolkitRecord, frozenset({"set_sha256", "files"})),
    )
}
"""Every kind of file of ours, by name."""

LEGACY_FEATURES = "legacy-features"
UPSTREAM_KINDS = {
    "manifest": "NVIDIA's `redistrib_<label>.json`: the archives of a release, in every known form",
    LEGACY_FEATURES: "The feature file that nixpkgs consumed: outputs by package and platform",
}
"""Kinds of files that others define, with a summary, by the name that `schema` takes."""


def schema_summaries() -> dict[str, str]:
    """Return a summary of each shipped schema of a file, by the name that `schema` takes."""
    own = {kind.name: (kind.model.__doc__ or "").splitlines()[0] for kind in FILE_KINDS.values()}
    return own | UPSTREAM_KINDS


def kind_of_document(document: object) -> FileKind | None:
    """Return which kind of ours a document is, by its outermost keys; None for none of them.

    Where the keys of several are there, the kind with most of them is meant.

    NVIDIA's manifests have no `schema_version`, so a file that has one is ours or unknown.
    """
    if not isinstance(document, dict) or schema_version_of(document) is None:
        return None
    fitting = [kind for kind in FILE_KINDS.values() if kind.keys <= document.keys()]
    return max(fitting, key=lambda kind: len(kind.keys), default=None)


def schema_version_of(document: object) -> object:
    """Return a document's `schema_version`, None where it has none and so is not ours."""
    return document.get("schema_version") if isinstance(document, dict) else None


def shipped_schema(name: str) -> str:
    """Return the text of a shipped schema, as `schema` prints it."""
    return (resources.files("cudaredist") / "schemas" / f"{name}.json").read_text("utf-8")


def read_own_file(data: bytes, model: type[_OwnModel]) -> _OwnModel:
    """Read one of our files, checked against its model.

    What a model takes, the JSON Schema made from it takes too. Raises `InvalidFileError` with every
    problem found and the path to each.
    """
    return read_own_document(parse_own_json(data, _what(model)), data, model)


def parse_own_json(data: bytes, what: str = "JSON file") -> object:
    """Read JSON that may be one of our files; `InvalidFileError` where it is not even JSON."""
    return parse_json(data, what=what, limit=OWN_FILE_LIMIT)


def read_own_document(document: object, data: bytes, model: type[_OwnModel]) -> _OwnModel:
    """Read one of our files that is parsed already; `data` is what it was parsed from.

    Raises `InvalidFileError` as `read_own_file` does.
    """
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        # The schema's words are the plainer ones; what it has none for, only the model knows.
        problems = schema_problems(document, _kind_of_model(model).name) or validation_problems(
            error
        )
        raise InvalidFileError(_what(model), problems) from None


def _kind_of_model(model: type[OwnModel]) -> FileKind:
    return next(kind for kind in FILE_KINDS.values() if kind.model is model)


def _what(model: type[OwnModel]) -> str:
    return f"{_kind_of_model(model).name} file"


def validation_problems(error: ValidationError) -> list[Problem]:
    """Return what breaks a model's rules, each with the path to it."""
    return [
        Problem(".".join(map(str, item["loc"])), _cut(item["msg"]))
        for item in error.errors(include_url=False, include_input=False)
    ]


def schema_problems(document: object, kind: str) -> list[Problem]:
    """Return what a document breaks of its kind's shipped schema, each with the path to it."""
    # jsonschema costs half of a short command's time, and most commands read nothing to be checked.
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    validator = Draft202012Validator(json.loads(shipped_schema(kind)))
    problems = []
    try:
        found = list(islice(validator.iter_errors(document), _PROBLEMS_GATHERED))
    except RecursionError:
        return [Problem("", "nested deeper than any such file is")]
    for error in map(_cause, found):
        path = ""
        for step in error.absolute_path:
            path = f"{path}[{step}]" if isinstance(step, int) else join_path(path, str(step))
        problems.append(Problem(path, _cut(error.message)))
    return sorted(problems, key=lambda problem: (problem.path, problem.message))


def _cause(error: "JsonSchemaError") -> "JsonSchemaError":
    """Return the error in the alternative whose constants match, if there is only one such.

    An archive of a feature file is examined or not, by its `status`. Without this the message would
    be about both alternatives, and contain the whole archive.
    """
    others = {below.schema_path[0] for below in error.context if below.validator == "const"}
    matching = [below for below in error.context if below.schema_path[0] not in others]
    return _cause(matching[0]) if others and matching else error


def _cut(message: str) -> str:
    return message if len(message) <= _MESSAGE_LIMIT else f"{message[:_MESSAGE_LIMIT]}…"
