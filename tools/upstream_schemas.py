"""JSON Schemas of external formats: NVIDIA's manifests, nixpkgs' feature files.

They accept every file that the readers accept. `validate` also checks conditions that a schema
cannot express: paths against names and versions, dates, misspelled keys.
"""

from typing import Any, TypeAlias

from cudaredist.formats.registry import UPSTREAM_KINDS
from cudaredist.manifests.field_reader import MD5_DIGITS, SHA256_DIGITS, SIZE_DIGITS, TEXT_LIMIT
from cudaredist.primitives import LABEL_PATTERN

Schema: TypeAlias = dict[str, Any]

_NAME = "^[A-Za-z0-9][A-Za-z0-9_.+-]{0,127}$"
_NUMBERS = r"^[0-9]+(\.[0-9]+)*$"
_PART = "[A-Za-z0-9_+~@=,-][A-Za-z0-9_.+~@=,-]*"
_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": TEXT_LIMIT}
_PATH: Schema = {
    "type": "string",
    "pattern": rf"^(\.\./\.\./\.\./pool/)?{_PART}(/{_PART})*$",
    "maxLength": 1024,
}
_DATE: Schema = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "maxLength": 10}
_VERSION: Schema = {"type": "string", "pattern": _NUMBERS, "maxLength": 80}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _hex(digits: int) -> Schema:
    return {"type": "string", "pattern": f"^[0-9a-f]{{{digits}}}$", "maxLength": digits}


def _object(**keywords: object) -> Schema:
    return {"type": "object", "minProperties": 1, **keywords}


_ARCHIVE = _object(
    description="One archive; other keys are kept with a warning",
    required=["relative_path", "sha256"],
    properties={
        "relative_path": {**_PATH, "description": "Relative to the manifest's folder"},
        "sha256": _hex(SHA256_DIGITS),
        "md5": _hex(MD5_DIGITS),
        "size": {
            "description": "Bytes",
            "anyOf": [
                {"type": "string", "pattern": f"^[1-9][0-9]{{0,{SIZE_DIGITS - 1}}}$"},
                {"type": "integer", "minimum": 1},
            ],
        },
    },
)
_PLATFORM: Schema = {
    "description": "An archive, or archives by CUDA variant such as cuda12, or both",
    "anyOf": [
        _ref("archive"),
        _object(
            properties={"relative_path": False, "sha256": False},
            additionalProperties=_ref("archive"),
        ),
    ],
}
_PACKAGE = _object(
    description="One package; other keys are kept with a warning",
    required=["name", "license", "version"],
    properties={
        "name": _TEXT,
        "license": _TEXT,
        "license_path": {"anyOf": [_PATH, {"type": "null"}]},
        "version": _VERSION,
    },
    patternProperties={
        "^(linux|windows)-|^source$": _ref("platform"),
        "_variant$": {
            "description": "Variants that the package is published for",
            "type": "array",
            "minItems": 1,
            "items": {"type": "string", "pattern": "^[0-9][0-9.]{0,7}$"},
        },
    },
)
_EARLY_PACKAGE = _object(
    description="One package of the manifests before CUDA 11.4.2: paths by version and platform",
    propertyNames={"pattern": _NUMBERS},
    additionalProperties=_object(
        properties={"release_date": _DATE},
        additionalProperties=_PATH,
        propertyNames={"pattern": _NAME},
    ),
)
MANIFEST: Schema = _object(
    title="Manifest",
    properties={
        "release_date": _DATE,
        "release_label": {"type": "string", "pattern": LABEL_PATTERN, "maxLength": 120},
        "release_product": {"type": "string", "maxLength": TEXT_LIMIT},
    },
    additionalProperties={
        "description": "A package by its name; other values are kept with a warning",
        "not": {"type": "null"},
        "if": {"type": "object", "propertyNames": {"pattern": _NUMBERS}, "minProperties": 1},
        "then": _ref("early_package"),
        "else": {
            "if": {
                "type": "object",
                "anyOf": [{"required": [key]} for key in ("version", "name", "license")],
            },
            "then": _ref("package"),
        },
    },
)
MANIFEST["$defs"] = {
    "archive": _ARCHIVE,
    "platform": _PLATFORM,
    "package": _PACKAGE,
    "early_package": _EARLY_PACKAGE,
}
_OUTPUTS = _object(
    description="Outputs of an archive: bin, dev, doc, lib, sample, static",
    required=["outputs"],
    properties={
        "outputs": {"type": "object", "additionalProperties": {"type": "boolean"}},
    },
)
LEGACY_FEATURES: Schema = {
    **_object(
        title="LegacyFeatures",
        propertyNames={"pattern": _NAME},
        additionalProperties=_object(
            description="By platform; in between by variant if the manifest has variants",
            propertyNames={"pattern": _NAME},
            additionalProperties={
                "anyOf": [_ref("outputs"), _object(additionalProperties=_ref("outputs"))]
            },
        ),
    ),
    "$defs": {"outputs": _OUTPUTS},
}

UPSTREAM_SCHEMAS = {"manifest": MANIFEST, "legacy-features": LEGACY_FEATURES}
"""By name, as in `cudaredist schema NAME`."""


def upstream_schema(name: str) -> Schema:
    """Return the JSON Schema of an external format."""
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return dialect | {"description": UPSTREAM_KINDS[name]} | UPSTREAM_SCHEMAS[name]
