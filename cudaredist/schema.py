"""Models of our own files, and the JSON Schemas made from them.

Unlike NVIDIA's manifests these are strict: an unknown key is an error. A field's description is
its documentation and becomes part of the schema. To add a kind of file, add a model and a line in
`FILE_KINDS`; the tests that walk it tell what else is missing.
"""

import json
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cudaredist.errors import InvalidFileError, Problem, UnknownNameError
from cudaredist.jsontext import join_path, parse_json
from cudaredist.primitives import LABEL_PATTERN, SHA256_PATTERN

OWN_FILE_LIMIT = 256 << 20
"""The most bytes one of our own files may have."""

_PROBLEMS_GATHERED = 1000
_MESSAGE_LIMIT = 200

HexSha256 = Annotated[str, Field(pattern=SHA256_PATTERN, min_length=64, max_length=64)]
Label = Annotated[
    str,
    Field(
        pattern=LABEL_PATTERN,
        description="A manifest's label, as in its file name",
    ),
]
VersionText = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*$", description="Raw, as published")]
CudaMinor = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{1,9}\.[0-9]{1,9}$",
        description="Two numbers: 12.9 stands for all 12.9.x",
    ),
]
Count = Annotated[int, Field(ge=0)]
Channel = Literal["redist", "wheels"]
OutputName: TypeAlias = Literal[
    "out", "bin", "dev", "doc", "include", "lib", "python", "samples", "static", "stubs"
]


class OwnModel(BaseModel):
    """What every model of ours has in common: frozen, and no key that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class LockEntry(OwnModel):
    """What was fetched under one label."""

    sha256: HexSha256 = Field(description="SHA-256 of the manifest's bytes as published")
    size: Annotated[int, Field(gt=0)] = Field(description="Number of those bytes")
    gone: bool = Field(
        default=False,
        description="Upstream no longer lists the label; absent while it does",
        exclude_if=lambda gone: not gone,
    )


class Lock(OwnModel):
    """`manifests/lock.json`: what was fetched from upstream, to notice changes on either side."""

    schema_version: Literal[1]
    redists: dict[str, dict[Label, LockEntry]] = Field(
        description="By name of the redistributable, then by label"
    )


class OutputSize(OwnModel):
    """How much of an archive one output takes."""

    files: Count = Field(description="Regular files, symbolic and hard links not counted")
    bytes: Count = Field(description="Their sizes together, unpacked")


class Library(OwnModel):
    """One shared library."""

    path: str = Field(description="Path below the archive's top directory")
    output: OutputName
    soname: str | None = Field(description="DT_SONAME, or a DLL's export name; null: it has none")
    links: tuple[str, ...] = Field(description="Links of the archive that lead to it, sorted")
    needed: tuple[str, ...] = Field(description="DT_NEEDED, or a DLL's imports, in file order")
    runpath: tuple[str, ...] = Field(description="DT_RUNPATH, or else DT_RPATH, entry by entry")
    stub: bool = Field(description="Stands in for a library of the driver while linking")
    glibc: str | None = Field(description="Newest GLIBC_ version needed; null: none")
    libstdcxx: str | None = Field(description="Newest GLIBCXX_ version needed; null: none")
    unread: tuple[str, ...] = Field(
        default=(),
        description="Fields that could not be read, and are empty for that; absent: none",
        exclude_if=lambda fields: not fields,
    )


class Program(OwnModel):
    """One executable file that needs shared libraries."""

    path: str = Field(description="Path below the archive's top directory")
    output: OutputName
    needed: tuple[str, ...] = Field(description="DT_NEEDED, or the DLLs imported, in file order")
    runpath: tuple[str, ...] = Field(description="DT_RUNPATH, or else DT_RPATH, entry by entry")
    glibc: str | None = Field(description="Newest GLIBC_ version needed; null: none")
    libstdcxx: str | None = Field(description="Newest GLIBCXX_ version needed; null: none")
    unread: tuple[str, ...] = Field(
        default=(),
        description="Fields that could not be read, and are empty for that; absent: none",
        exclude_if=lambda fields: not fields,
    )


class CodeTargets(OwnModel):
    """Architectures that device code was built for, in natural order."""

    sass: tuple[str, ...] = Field(description="Machine code: sm_90a")
    ptx: tuple[str, ...] = Field(description="Portable code: compute_90")
    lto: tuple[str, ...] = Field(description="Intermediate code for link-time optimisation: lto_90")


class DeviceCode(OwnModel):
    """Device code of one directory of libraries."""

    declared: CodeTargets = Field(description="In the sections made for it, as cuobjdump sees it")
    embedded: CodeTargets = Field(description="In data sections, where the library loads it itself")


class ArchiveFeatures(OwnModel):
    """What one archive provides, whatever manifest names it."""

    machine: str | None = Field(
        description="The one machine of its binaries; null: it has none, or several (see notes)"
    )
    outputs: dict[OutputName, OutputSize]
    libraries: tuple[Library, ...] = Field(description="Shared libraries, sorted by path")
    programs: tuple[Program, ...] = Field(description="Executables that need any, sorted by path")
    device_code: dict[str, DeviceCode] = Field(description="By directory of libraries")
    cuda_versions_in_lib: tuple[str, ...] = Field(description="Directories such as lib/12")
    unnested: dict[str, dict[OutputName, OutputSize]] = Field(
        description="By CUDA-versioned directory: the outputs once it took the place of lib"
    )
    python: tuple[str, ...] = Field(description="Python modules and wheels")
    notes: tuple[str, ...] = Field(description="Unsafe names, unknown things")


class ExaminedArchive(ArchiveFeatures):
    """What one archive provides, read from its bytes after hash and size were proved."""

    platform: str
    variant: str | None = Field(description="`cuda12` where the manifest nests, else null")
    version: VersionText | None = Field(
        default=None,
        description="Only where an early manifest lists several versions of the package",
        exclude_if=lambda version: version is None,
    )
    sha256: HexSha256 | None = Field(description="Null only where the manifest states none")
    status: Literal["examined"]
    verified: bool = Field(
        default=True,
        description="False where no hash was there to check; absent otherwise",
        exclude_if=lambda verified: verified,
    )


class UnexaminedArchive(OwnModel):
    """An archive that was not looked into, and why."""

    platform: str
    variant: str | None
    version: VersionText | None = Field(default=None, exclude_if=lambda version: version is None)
    sha256: HexSha256 | None
    status: Literal["not-examined"]
    reason: str = Field(min_length=1)


class PackageFeatures(OwnModel):
    """The archives of one package, sorted by platform and variant."""

    version: VersionText | None = Field(
        description="Null where an early manifest lists several: each archive then has its own"
    )
    archives: tuple[
        Annotated[ExaminedArchive | UnexaminedArchive, Field(discriminator="status")], ...
    ]


class Features(OwnModel):
    """`features/<redist>/feature_<label>.json`: what every archive of a manifest provides."""

    schema_version: Literal[1]
    redist: str
    label: Label
    manifest_sha256: HexSha256 = Field(description="Of the manifest this was made from")
    rules: Annotated[int, Field(gt=0)] = Field(
        description="Number of the rules that led from the archives' bytes to these features"
    )
    packages: dict[str, PackageFeatures]


def _optional(description: str) -> Any:  # noqa: ANN401 - as pydantic's own Field
    """Return a field that is None by default and then not written."""
    return Field(default=None, description=description, exclude_if=lambda value: value is None)


class HeaderSource(OwnModel):
    """Where a fact about host compilers was read."""

    channel: Channel
    package: str
    version: VersionText
    archive_sha256: HexSha256
    path: str
    file_sha256: HexSha256


class PolicySource(OwnModel):
    """A fact that only documentation states, from a policy file."""

    policy: str = Field(description="The policy file's name")
    reference: str = Field(description="The document and its version")


Basis = Literal["derived", "documented"]


class CompilerRange(OwnModel):
    """A range of versions is accepted; both ends belong to it, null is no limit."""

    status: Literal["range"]
    min: int | None
    max: int | None
    min_basis: Basis | None = _optional("Null: there is no lower bound")
    max_basis: Basis | None = _optional("Null: there is no upper bound")
    unit: Literal["major", "_MSC_VER", "version"] = Field(
        default="major",
        description="What is counted; absent: majors",
        exclude_if=lambda unit: unit == "major",
    )
    years: dict[str, str] | None = _optional("Visual Studio by _MSC_VER")
    header_min: str | None = _optional("The header's own lower bound, where `min` is stricter")
    documented_by: PolicySource | None = _optional("Where the documented bounds are stated")
    note: str | None = _optional("Text of the header that disagrees with what it does")


class CompilerVerdict(OwnModel):
    """A compiler is refused altogether, or not looked at."""

    status: Literal["refused", "unchecked"]
    note: str | None = _optional("Whose check holds instead")


class NvccRelease(OwnModel):
    """Host compilers that the nvcc of one CUDA release accepts."""

    nvcc: VersionText | None
    source: HeaderSource | PolicySource
    compilers: dict[str, Annotated[CompilerRange | CompilerVerdict, Field(discriminator="status")]]


class NvccCompat(OwnModel):
    """`nvcc_compat.json`: which host compilers nvcc accepts, by CUDA release."""

    schema_version: Literal[1]
    releases: dict[Label, NvccRelease]


class DocumentedCompiler(OwnModel):
    """Versions of one compiler that documentation names; both ends belong to the range."""

    min: int | None
    max: int | None
    note: str | None = _optional("Where something else says otherwise")


class UnseenRelease(OwnModel):
    """What documentation says of a CUDA minor whose header was never seen."""

    compilers: dict[str, DocumentedCompiler]
    reason: str
    reference: str = Field(description="The document and its version")


class LowerBound(OwnModel):
    """The oldest major of a compiler that documentation supports, which no header states."""

    min: int
    reason: str
    reference: str = Field(description="The document and its version")


class NvccPolicy(OwnModel):
    """`policy/nvcc.json`: what only documentation says of host compilers."""

    schema_version: Literal[1]
    lower_bounds: dict[str, LowerBound] = Field(description="By compiler")
    unseen_releases: dict[CudaMinor, UnseenRelease]


PlainCapability = Annotated[
    str,
    Field(pattern=r"^[1-9][0-9]{0,2}\.[0-9]$", description="Without a variant's letter: 10.3"),
]
CapabilityName = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,2}\.[0-9][af]?$")]


class PolicyFact(OwnModel):
    """What policy says of one field of a capability, beside or instead of what was derived."""

    field: Literal["first_cuda", "last_cuda", "dont_default_after", "renamed_to"]
    value: Annotated[str, Field(pattern=r"^[0-9]{1,9}\.[0-9]{1,9}$")] = Field(
        description="A CUDA minor, or for `renamed_to` a capability"
    )
    reason: str
    reference: str = Field(description="The document and its version")


class CapabilityEntry(OwnModel):
    """One compute capability."""

    family: str
    base: str
    variant: Literal["a", "f"] | None
    first_cuda: CudaMinor = Field(
        description="Documented where `policy` says so; else the oldest release that was read"
    )
    last_cuda: CudaMinor | None = Field(description="Derived; null: no end seen")
    jetson: bool
    dont_default_after: CudaMinor | None
    products: tuple[str, ...]
    policy: tuple[PolicyFact, ...]
    runs_on: tuple[str, ...] = Field(
        description="Plain capabilities whose GPUs take PTX that is built for this target"
    )


class OverlayEntry(OwnModel):
    """What policy says of one plain capability; its variants share it."""

    jetson: bool
    products: tuple[str, ...]
    reason: str = Field(description="Of the Jetson flag and the products")
    reference: str
    facts: tuple[PolicyFact, ...] = ()


class GpuPolicy(OwnModel):
    """`policy/gpus.json`: what no file of NVIDIA's states of compute capabilities."""

    schema_version: Literal[1]
    overlay: dict[PlainCapability, OverlayEntry]


class BinarySource(OwnModel):
    """The program a release's capabilities were read from."""

    channel: Channel
    package: str
    archive_sha256: HexSha256
    path: str
    file_sha256: HexSha256


class Gpus(OwnModel):
    """`gpus.json`: compute capabilities and the CUDA releases that know them."""

    schema_version: Literal[1]
    capabilities: dict[CapabilityName, CapabilityEntry]
    sources: dict[Label, BinarySource]


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
        FileKind("policy-gpus", GpuPolicy, frozenset({"overlay"})),
        FileKind("policy-nvcc", NvccPolicy, frozenset({"unseen_releases"})),
    )
}
"""Every kind of file of ours, by name."""


def find_kind(name: str) -> FileKind:
    """Return the kind of that name; `UnknownNameError`, which suggests the nearest, if none."""
    try:
        return FILE_KINDS[name]
    except KeyError:
        raise UnknownNameError("schema", name, FILE_KINDS) from None


def kind_of_document(document: object) -> FileKind | None:
    """Return which kind of ours a document is, by its outermost keys; None for none of them.

    NVIDIA's manifests have no `schema_version`, so a file that has one is ours or unknown.
    """
    if not isinstance(document, dict) or schema_version_of(document) is None:
        return None
    return next((kind for kind in FILE_KINDS.values() if kind.keys <= document.keys()), None)


def schema_version_of(document: object) -> object:
    """Return a document's `schema_version`, None where it has none and so is not ours."""
    return document.get("schema_version") if isinstance(document, dict) else None


def made_schema(kind: FileKind) -> dict[str, object]:
    """Make the JSON Schema of a kind from its model."""
    schema = kind.model.model_json_schema()
    waiting: list[object] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if "patternProperties" in node:
                # pydantic leaves other keys open, which its own validation does not.
                node.setdefault("additionalProperties", False)
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def shipped_schema(name: str) -> str:
    """Return the text of the schema that is shipped in the package, as `schema` prints it."""
    kind = find_kind(name)
    return (resources.files("cudaredist") / "schemas" / f"{kind.name}.json").read_text("utf-8")


def read_own_file(data: bytes, kind: FileKind) -> OwnModel:
    """Read one of our files, checked against its shipped JSON Schema and its model.

    Raises `InvalidFileError` with every problem found and the path to each.
    """
    return read_own_document(parse_own_json(data, f"{kind.name} file"), data, kind)


def parse_own_json(data: bytes, what: str = "JSON file") -> object:
    """Read JSON that may be one of our files; `InvalidFileError` where it is not even JSON."""
    return parse_json(data, what=what, limit=OWN_FILE_LIMIT)


def read_own_document(document: object, data: bytes, kind: FileKind) -> OwnModel:
    """Read one of our files that is parsed already; `data` is what it was parsed from.

    Raises `InvalidFileError` as `read_own_file` does.
    """
    problems = schema_problems(document, kind)
    if problems:
        raise InvalidFileError(f"{kind.name} file", problems)
    try:
        return kind.model.model_validate_json(data)
    except ValidationError as error:
        raise InvalidFileError(f"{kind.name} file", validation_problems(error)) from None


def validation_problems(error: ValidationError) -> list[Problem]:
    """Return what breaks a model's rules, each with the path to it."""
    return [
        Problem(".".join(map(str, item["loc"])), _cut(item["msg"]))
        for item in error.errors(include_url=False, include_input=False)
    ]


def schema_problems(document: object, kind: FileKind) -> list[Problem]:
    """Return what a document breaks of its kind's shipped schema, each with the path to it."""
    # jsonschema costs half of a short command's time, and most commands read nothing to be checked.
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    validator = Draft202012Validator(json.loads(shipped_schema(kind.name)))
    problems = []
    try:
        found = list(islice(validator.iter_errors(document), _PROBLEMS_GATHERED))
    except RecursionError:
        return [Problem("", "nested deeper than any such file is")]
    for error in found:
        path = ""
        for step in error.absolute_path:
            path = f"{path}[{step}]" if isinstance(step, int) else join_path(path, str(step))
        problems.append(Problem(path, _cut(error.message)))
    return sorted(problems, key=lambda problem: (problem.path, problem.message))


def _cut(message: str) -> str:
    return message if len(message) <= _MESSAGE_LIMIT else f"{message[:_MESSAGE_LIMIT]}…"
