"""The kinds of cudaredist's files, and their validation."""

import json
import re
from functools import lru_cache
from importlib import import_module, resources
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from pydantic import ValidationError

from cudaredist.errors import InvalidFileError, Problem
from cudaredist.formats.base import OwnModel
from cudaredist.jsontext import OWN_FILE_LIMIT, is_plain, join_path, parse_json
from cudaredist.primitives import (
    ARCHIVE_PATH_PATTERN,
    INNER_FOLDER_PATTERN,
    INNER_PATH_PATTERN,
    NAME_PATTERN,
    PLAIN_PATH_PATTERN,
    cut,
    path_problem,
)
from cudaredist.words import shown, without_secrets

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError as JsonSchemaError
    from pydantic_core import ErrorDetails

_OwnModel = TypeVar("_OwnModel", bound=OwnModel)

POLICIES_CACHED = 64
"""Number of policies that stay in memory: those of the data folder and of several overlays."""

_PROBLEMS_GATHERED = 1000
_MESSAGE_LIMIT = 200


class FileKind(NamedTuple):
    """A kind of cudaredist's files."""

    name: str
    """The name for the command `schema`."""
    path: str
    """The model's module and name. Models are slow to import, so only those in use are."""
    keys: str
    """Outermost keys that identify a file of this kind, separated by spaces."""

    @property
    def model(self) -> type[OwnModel]:
        """The model of the files."""
        module, _, name = self.path.partition(".")
        model: type[OwnModel] = getattr(import_module(f"{__package__}.{module}"), name)
        return model


_EXPECTED = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "list": "a list",
    "tuple": "a list",
    "dict": "a table",
    "model": "a table",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "string_pattern_mismatch": "a text that matches {pattern}",
    "literal_error": "{expected}",
}
"""The descriptions of valid values by pydantic's types of errors."""

_PATHS = {
    INNER_PATH_PATTERN: "a relative path without `..`",
    INNER_FOLDER_PATTERN: "a relative path without `..`, or empty",
    PLAIN_PATH_PATTERN: "a relative path of plain characters without `..`",
    ARCHIVE_PATH_PATTERN: "the path of an archive",
    NAME_PATTERN: "the name of a redistributable",
}
"""The descriptions of paths by their pattern."""
_is_path = {pattern: re.compile(pattern).search for pattern in _PATHS}

FILE_KINDS = {
    kind.name: kind
    for kind in (
        FileKind("advisories", "advisories.Advisories", "bulletins vulnerabilities"),
        FileKind("api", "api_tables.ApiTable", "package providers headers"),
        FileKind("features", "features.Features", "manifest_sha256 packages"),
        FileKind("gpus", "tables.Gpus", "capabilities"),
        FileKind("lock", "lock.Lock", "redists"),
        FileKind("mirror-lock", "mirror_lock.MirrorLock", "mirrored"),
        FileKind("nvcc-compat", "tables.NvccCompat", "releases"),
        FileKind("package-set", "packageset.PackageSet", "cuda capabilities packages"),
        FileKind("package-set-index", "set_index.PackageSetIndex", "sets skipped"),
        FileKind("policy-advisories", "advisories.AdvisoryPolicy", "components reviewed"),
        FileKind("policy-components", "toolkit_record.ComponentPolicy", "components"),
        FileKind("policy-constraints", "policy.ConstraintPolicy", "constraints"),
        FileKind("policy-drivers", "driver_policy.DriverPolicy", "lowest"),
        FileKind("policy-fixups", "fixup_policy.FixupPolicy", "fixups"),
        FileKind("policy-gpus", "tables.GpuPolicy", "overlay"),
        FileKind("policy-jetpack", "jetpack.JetPackPolicy", "releases compat"),
        FileKind("policy-libraries", "library_policy.LibraryPolicy", "external loaded"),
        FileKind("policy-licenses", "license_policy.LicensePolicy", "manifests default"),
        FileKind("policy-meta", "meta_policy.MetaPolicy", "redists packages"),
        FileKind("policy-names", "policy.NamePolicy", "renames"),
        FileKind("policy-nvcc", "tables.NvccPolicy", "unseen_releases"),
        FileKind("policy-outputs", "output_policy.OutputPolicy", "collapse"),
        FileKind("policy-platforms", "policy.PlatformPolicy", "jetson_thresholds"),
        FileKind("policy-requirements", "policy.RequirementPolicy", "requirements"),
        FileKind("policy-wheels", "wheel_policy.WheelPolicy", "metapackages"),
        FileKind("policy-withheld", "policy.WithheldPolicy", "withheld"),
        FileKind("runfiles", "runfile_records.Runfiles", "runfiles"),
        FileKind("site-files", "site_files.SiteFiles", "files"),
        FileKind("symbols", "symbol_tables.Symbols", "soname exports"),
        FileKind("toolkit-record", "toolkit_record.ToolkitRecord", "set_sha256 files"),
    )
}
"""All kinds of cudaredist's files, by name."""

LEGACY_FEATURES = "legacy-features"
UPSTREAM_KINDS = {
    "manifest": "NVIDIA's `redistrib_<label>.json`: the archives of a release",
    LEGACY_FEATURES: "A feature file for nixpkgs: outputs by package and platform",
}
"""Summaries of file kinds that others define, by the name for `schema`."""


def schema_summaries() -> dict[str, str]:
    """Map the schema names of files to summaries."""
    own = {kind.name: (kind.model.__doc__ or "").splitlines()[0] for kind in FILE_KINDS.values()}
    return own | UPSTREAM_KINDS


def kind_of_document(document: object) -> FileKind | None:
    """Detect a document's kind by its outermost keys, or return None.

    If several kinds match, the one with the most keys is returned. NVIDIA's manifests have no
    `schema_version`, so a document with that key is cudaredist's or unknown.
    """
    if not isinstance(document, dict) or schema_version_of(document) is None:
        return None
    fitting = [kind for kind in FILE_KINDS.values() if document.keys() >= {*kind.keys.split()}]
    return max(fitting, key=lambda kind: len(kind.keys.split()), default=None)


def schema_version_of(document: object) -> object:
    """Return a document's `schema_version`, or None if it has none."""
    return document.get("schema_version") if isinstance(document, dict) else None


def names_schema_version(data: bytes) -> bool:
    """Check for the key `schema_version` without parsing. Files of other tools do not have it."""
    return b'"schema_version"' in data


def shipped_schema(name: str) -> str:
    """Return the text of a shipped schema."""
    return (resources.files("cudaredist") / "schemas" / f"{name}.json").read_text("utf-8")


def read_own_file(data: bytes, model: type[_OwnModel]) -> _OwnModel:
    """Parse a file and validate it against its model.

    A model never accepts a file that its JSON Schema rejects. Raises `InvalidFileError` with every
    problem and its path. Policies must not repeat keys, because people edit them. In other
    files, only `validate` and `check` report repeated keys, because cudaredist writes these files.
    """
    name = _kind_name(model)
    if name.startswith("policy-"):
        return cast("_OwnModel", _read_policy(data, model))
    if len(data) > OWN_FILE_LIMIT or not is_plain(data):
        parse_own_json(data, f"{name} file")
    return _validated(data, model, name)


@lru_cache(maxsize=POLICIES_CACHED)
def _read_policy(data: bytes, model: type[OwnModel]) -> OwnModel:
    """Read a policy once for each content, since many package sets need the same policies."""
    name = _kind_name(model)
    parse_own_json(data, f"{name} file")
    return _validated(data, model, name)


def _kind_name(model: type[OwnModel]) -> str:
    return next(
        kind.name for kind in FILE_KINDS.values() if kind.path.endswith(f".{model.__name__}")
    )


def _validated(data: bytes, model: type[_OwnModel], name: str) -> _OwnModel:
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        # The strict parser and the schema have plainer messages, but only the model has all rules.
        what = f"{name} file"
        problems = schema_problems(parse_own_json(data, what), name)
        raise InvalidFileError(what, problems or validation_problems(error)) from None


def parse_own_json(data: bytes, what: str = "JSON file") -> object:
    """Parse a file as JSON. Raises `InvalidFileError`."""
    return parse_json(data, what=what, limit=OWN_FILE_LIMIT)


def validation_problems(error: ValidationError) -> list[Problem]:
    """Return the violations of a model's rules with their paths."""
    return [
        Problem(".".join(map(str, item["loc"])), plain_message(item))
        for item in error.errors(include_url=False)
    ]


def plain_message(item: "ErrorDetails") -> str:
    """Return the message of one violation, without pydantic's words."""
    kind, context = item["type"], item.get("ctx", {})
    if kind == "missing":
        return "is missing"
    if kind == "value_error":
        return cut(str(context["error"]), _MESSAGE_LIMIT)
    if kind == "string_pattern_mismatch" and context["pattern"] in _PATHS:
        return _path_message(context["pattern"], str(item["input"]))
    expected = _EXPECTED.get(kind.removesuffix("_parsing").removesuffix("_type"))
    if expected is None:
        return cut(without_secrets(item["msg"]), _MESSAGE_LIMIT)
    value = without_secrets(repr(item["input"]))
    return cut(f"expected {expected.format_map(context)}, got {value}", _MESSAGE_LIMIT)


def schema_problems(document: object, kind: str) -> list[Problem]:
    """Return a document's violations of its schema with their paths."""
    # Importing jsonschema takes half of a short command's time, and most commands do not need it.
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    validator = Draft202012Validator(json.loads(shipped_schema(kind)))
    problems = []
    for error in map(_cause, islice(validator.iter_errors(document), _PROBLEMS_GATHERED)):
        path = ""
        for step in error.absolute_path:
            path = f"{path}[{step}]" if isinstance(step, int) else join_path(path, str(step))
        problems.append(Problem(path, cut(without_secrets(_message_of(error)), _MESSAGE_LIMIT)))
    return sorted(problems)


def _message_of(error: "JsonSchemaError") -> str:
    """Return the message of a violation, for paths without their long regular expression."""
    value: Any = error.instance
    schema = error.schema
    if error.validator == "pattern" and error.validator_value in _PATHS:
        return _path_message(error.validator_value, value)
    if error.validator == "additionalProperties" and isinstance(schema, dict):
        for pattern in schema.get("patternProperties", {}).keys() & _PATHS.keys():
            wrong = next(key for key in value if _is_path[pattern](key) is None)
            return _path_message(pattern, wrong)
    return error.message


def _path_message(pattern: str, path: str) -> str:
    """Return the message about a path that does not match its pattern."""
    problem = path_problem(path) if pattern == ARCHIVE_PATH_PATTERN else None
    return f"{shown(path)} {problem or f'is not {_PATHS[pattern]}'}"


def _cause(error: "JsonSchemaError") -> "JsonSchemaError":
    """Return the error of the only alternative that the value can have, if any.

    For example, `status` selects the alternative for an archive of a feature file, and an object is
    never the alternative null. Without this function, the message would describe all alternatives
    and contain the whole archive.
    """
    others = {below.schema_path[0] for below in error.context if _is_excluded(below)}
    matching = [below for below in error.context if below.schema_path[0] not in others]
    is_only = len({below.schema_path[0] for below in matching}) == 1
    return _cause(matching[0]) if others and is_only else error


def _is_excluded(error: "JsonSchemaError") -> bool:
    """Check if an alternative has another constant, or is null."""
    is_null = error.validator == "type" and error.validator_value == "null"
    return is_null or error.validator == "const"
