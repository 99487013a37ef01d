"""Outputs of a package: declaration, contents and propagation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from cudaredist.formats.features import ExaminedArchive, Library, OutputSize, Program
from cudaredist.formats.names import OutputName
from cudaredist.formats.output_policy import OutputPolicy
from cudaredist.formats.packageset import TreeChange
from cudaredist.primitives import Version
from cudaredist.sets.bounds import is_within
from cudaredist.sets.file_outputs import ORDER, STUB_PATHS, is_dropped, nested_folder, resolve

_OLDEST_CUDA = 10
"""The oldest CUDA major with a folder in `lib`. Lower numbers are not CUDA versions."""


_Binary = TypeVar("_Binary", bound=Library | Program)


@dataclass(frozen=True, slots=True)
class OutputSplit:
    """The outputs of an examined archive, with their files."""

    examined: ExaminedArchive
    nested: str | None
    """The CUDA-versioned folder that replaces `lib`."""
    changes: tuple[TreeChange, ...]
    contents: Mapping[OutputName, OutputSize]
    collapsed: str | None = None

    @property
    def outputs(self) -> tuple[OutputName, ...]:
        """The declared outputs, in order."""
        return tuple(self.contents)

    @property
    def binaries(self) -> tuple[Library | Program, ...]:
        """The libraries and programs of the archive."""
        return (*self.examined.libraries, *self.examined.programs)

    def place(self, path: str) -> str | None:
        """Return a file's path in the set, or None.

        If a CUDA-versioned folder replaces `lib`, all other files of `lib` are removed. So are the
        files that policy drops.
        """
        if self.nested is not None and path.startswith("lib/"):
            below = f"lib/{self.nested}/"
            if not path.startswith(below):
                return None
            path = f"lib/{path.removeprefix(below)}"
        return None if self.drops(path) else path

    def drops(self, path: str) -> bool:
        """Check if policy drops a file or its folder."""
        return is_dropped(path, (one.source for one in self.changes if one.op == "drop"))

    def placed(self, files: Iterable[_Binary]) -> Iterator[tuple[_Binary, str, OutputName]]:
        """Yield the remaining files, with their paths and outputs."""
        for file in files:
            path = self.place(file.path)
            if path is not None:
                yield file, path, resolve((file.output,), self.outputs)


def nested_refusal(examined: ExaminedArchive, cuda: Version) -> str | None:
    """Return a refusal if `lib` only supports other CUDA releases."""
    folders = examined.cuda_versions_in_lib
    versions = [name for name in folders if int(name.partition(".")[0]) >= _OLDEST_CUDA]
    if not versions or nested_folder(examined.cuda_versions_in_lib, cuda) is not None:
        return None
    return f"its libraries are for CUDA {', '.join(versions)}"


def split_outputs(
    name: str,
    version: Version,
    examined: ExaminedArchive,
    cuda: Version | None,
    policy: OutputPolicy,
    *,
    declared: Sequence[OutputName] | None = None,
) -> OutputSplit:
    """Split an examined archive into non-empty outputs, for one CUDA release or all (None).

    `declared` fixes the outputs. Files of all other outputs are then in `out`, and the package
    stays whole only if `declared` contains nothing else.
    """
    nested = nested_folder(examined.cuda_versions_in_lib, cuda)
    changes = [] if nested is None else [_change("lift", f"lib/{nested}", "lib")]
    changes += [
        _change(entry.op, entry.source, entry.to, split_only=entry.split_only)
        for entry in policy.normalise
        if entry.package == name and is_within(version, entry.versions)
    ]
    contents = _contents(examined.outputs if nested is None else examined.unnested[nested])
    split = OutputSplit(examined, nested, tuple(changes), contents)
    has_stubs = any(library.stub for library, _, _ in split.placed(examined.libraries))
    if any(map(split.drops, STUB_PATHS)) and not has_stubs:
        contents.pop("stubs", None)
    collapse = policy.collapse.get(name)
    if declared is not None:
        return replace(split, contents=_gathered(contents, declared))
    if collapse is not None and len(contents) > 1:
        gathered = _gathered(contents, ("out",))
        return replace(split, contents=gathered, collapsed=collapse.reason)
    return split


def _gathered(
    contents: Mapping[OutputName, OutputSize], outputs: Sequence[OutputName]
) -> dict[OutputName, OutputSize]:
    """Return the contents of outputs, all others in `out`."""
    gathered = {}
    for output in outputs:
        parts = [part for name, part in contents.items() if resolve((name,), outputs) == output]
        gathered[output] = OutputSize(
            files=sum(part.files for part in parts), bytes=sum(part.bytes for part in parts)
        )
    return gathered


def order_outputs(names: Iterable[str]) -> tuple[OutputName, ...]:
    """Return outputs in nixpkgs' order, each once.

    `sample` becomes `samples`, unknown outputs are removed, and `out` is always present.
    """
    outputs = {"samples" if name == "sample" else name for name in names} | {"out"}
    return tuple(name for name in ORDER if name in outputs)


def _contents(sizes: Mapping[OutputName, OutputSize]) -> dict[OutputName, OutputSize]:
    sizes = {"out": OutputSize(files=0, bytes=0), **sizes}
    return {
        name: sizes[name]
        for name in ORDER
        if name in sizes and (sizes[name].files or name == "out")
    }


def _change(op: str, source: str, to: str | None, *, split_only: bool = False) -> TreeChange:
    change = {"op": op, "from": source, "to": to, "split_only": split_only}
    return TreeChange.model_validate(change)


def propagated(
    name: str, outputs: Sequence[OutputName], policy: OutputPolicy
) -> dict[OutputName, tuple[OutputName, ...]]:
    """Return the outputs propagated by `dev` and `out`.

    Static libraries and stubs are propagated only if policy adds them. No output propagates itself,
    and no two outputs propagate each other.
    """
    if len(outputs) == 1:
        return {}
    preferences: list[tuple[OutputName, ...]] = [("bin",), ("include", "dev"), ("lib",)]
    names = dict.fromkeys(resolve(preference, outputs) for preference in preferences)
    extra = policy.propagates.get(name)
    names |= dict.fromkeys(o for o in (extra.outputs if extra else ()) if o in outputs)
    by_output: dict[OutputName, tuple[OutputName, ...]] = {
        "dev": tuple(output for output in names if output != "dev"),
        "out": tuple(output for output in names if output not in {"out", "dev"}),
    }
    return {output: to for output, to in by_output.items() if output in outputs and to}
