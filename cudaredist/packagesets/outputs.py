"""Outputs of a package in a set: which are declared, what they hold, and what they bring along."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TypeVar

from cudaredist.packagesets.inputs import is_within
from cudaredist.primitives import Version
from cudaredist.schema.base import OutputName
from cudaredist.schema.features import ExaminedArchive, Library, OutputSize, Program
from cudaredist.schema.packageset import OutputContents, TreeChange
from cudaredist.schema.policy import OutputPolicy

ORDER: tuple[OutputName, ...] = (
    "out",
    "doc",
    "samples",
    "python",
    "bin",
    "dev",
    "include",
    "lib",
    "static",
    "stubs",
)
"""nixpkgs' order; `lib` stands before `static`, or moving it would pull the archives back."""

_STUB_FOLDERS = ("stubs", "lib/stubs")
_OLDEST_CUDA = 10
"""Folders of `lib` with lower numbers are of something else than CUDA."""


_Binary = TypeVar("_Binary", bound=Library | Program)


@dataclass(frozen=True, slots=True)
class OutputSplit:
    """How the files of an examined archive are split into outputs."""

    examined: ExaminedArchive
    nested: str | None
    """The CUDA-versioned folder that took the place of `lib`."""
    changes: tuple[TreeChange, ...]
    contents: Mapping[OutputName, OutputContents]
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
        """Return the path of an archive's file once `lib` is in order, or None if it is removed.

        If a CUDA-versioned folder took the place of `lib`, all else there is removed, and so is
        what policy drops.
        """
        if self.nested is not None and path.startswith("lib/"):
            below = f"lib/{self.nested}/"
            if not path.startswith(below):
                return None
            path = f"lib/{path.removeprefix(below)}"
        return None if self.drops(path) else path

    def drops(self, path: str) -> bool:
        """Check if policy drops a file or a folder above it."""
        ways = [path, *(path[:end] for end, sign in enumerate(path) if sign == "/")]
        return any(
            fnmatchcase(way, change.source)
            for change in self.changes
            if change.op == "drop"
            for way in ways
        )

    def placed(self, files: Iterable[_Binary]) -> Iterator[tuple[_Binary, str, OutputName]]:
        """Yield the files that remain in the set, each with its path and output there."""
        for file in files:
            path = self.place(file.path)
            if path is not None:
                yield file, path, resolve((file.output,), self.outputs)


def nested_folder(examined: ExaminedArchive, cuda: Version) -> str | None:
    """Return the folder of `lib` that is for a CUDA release, `12.6` before `12`; None for none."""
    numbers = [str(number) for number in cuda.components]
    wanted = [".".join(numbers[:count]) for count in (2, 1)]
    return next((name for name in wanted if name in examined.cuda_versions_in_lib), None)


def nested_refusal(examined: ExaminedArchive, cuda: Version) -> str | None:
    """Say why an archive's CUDA-versioned folders do not serve a CUDA release; None if they do."""
    versions = [
        name
        for name in examined.cuda_versions_in_lib
        if int(name.partition(".")[0]) >= _OLDEST_CUDA
    ]
    if not versions or nested_folder(examined, cuda) is not None:
        return None
    return f"its libraries are for CUDA {', '.join(versions)}"


def split_outputs(
    name: str,
    version: Version,
    examined: ExaminedArchive,
    cuda: Version,
    policy: OutputPolicy,
    *,
    declared: Sequence[OutputName] | None = None,
) -> OutputSplit:
    """Split an examined archive into outputs, none of them empty but `out`.

    If outputs are declared, there are these and no others. The files of the others are in `out`,
    and the package stays whole only if no other output is declared.
    """
    nested = nested_folder(examined, cuda)
    changes = [] if nested is None else [_change("lift", f"lib/{nested}", "lib")]
    changes += [
        _change(entry.op, entry.source, entry.to, split_only=entry.split_only)
        for entry in policy.normalise
        if entry.package == name and is_within(version, entry.versions)
    ]
    contents = _contents(examined.outputs if nested is None else examined.unnested[nested])
    split = OutputSplit(examined, nested, tuple(changes), contents)
    has_stubs = any(library.stub for library, _, _ in split.placed(examined.libraries))
    if any(split.drops(f"{folder}/x") for folder in _STUB_FOLDERS) and not has_stubs:
        contents.pop("stubs", None)
    collapse = policy.collapse.get(name)
    if declared is not None:
        return replace(split, contents=_gathered(contents, declared))
    if collapse is not None and len(contents) > 1:
        gathered = _gathered(contents, ("out",))
        return replace(split, contents=gathered, collapsed=collapse.reason)
    return split


def _gathered(
    contents: Mapping[OutputName, OutputContents], outputs: Sequence[OutputName]
) -> dict[OutputName, OutputContents]:
    """Return what these outputs hold if all that would be in others is in `out`."""
    found = {}
    for output in outputs:
        parts = [part for name, part in contents.items() if resolve((name,), outputs) == output]
        found[output] = OutputContents(
            files=sum(part.files for part in parts), bytes=sum(part.bytes for part in parts)
        )
    return found


def order_outputs(names: Iterable[str]) -> tuple[OutputName, ...]:
    """Return outputs in nixpkgs' order, each once; `sample` is `samples`, unknown ones go."""
    wanted = {"samples" if name == "sample" else name for name in names} | {"out"}
    return tuple(name for name in ORDER if name in wanted)


def _contents(sizes: Mapping[OutputName, OutputSize]) -> dict[OutputName, OutputContents]:
    sizes = {"out": OutputSize(files=0, bytes=0), **sizes}
    return {
        name: OutputContents(files=sizes[name].files, bytes=sizes[name].bytes)
        for name in ORDER
        if name in sizes and (sizes[name].files or name == "out")
    }


def _change(op: str, source: str, to: str | None, *, split_only: bool = False) -> TreeChange:
    change = {"op": op, "from": source, "to": to, "split_only": split_only}
    return TreeChange.model_validate(change)


def propagated(
    name: str, outputs: Sequence[OutputName], policy: OutputPolicy
) -> dict[OutputName, tuple[OutputName, ...]]:
    """Return which outputs `dev` and `out` bring along: programs, headers and libraries.

    Never static libraries or stubs, unless policy adds them. No output brings itself, and of two
    only one brings the other.
    """
    if len(outputs) == 1:
        return {}
    wanted: list[tuple[OutputName, ...]] = [("bin",), ("include", "dev"), ("lib",)]
    brought = dict.fromkeys(resolve(names, outputs) for names in wanted)
    extra = policy.propagates.get(name)
    brought |= dict.fromkeys(o for o in (extra.outputs if extra else ()) if o in outputs)
    by_output: dict[OutputName, tuple[OutputName, ...]] = {
        "dev": tuple(output for output in brought if output != "dev"),
        "out": tuple(output for output in brought if output not in {"out", "dev"}),
    }
    return {output: names for output, names in by_output.items() if output in outputs and names}


def resolve(wanted: Sequence[OutputName], outputs: Sequence[OutputName]) -> OutputName:
    """Return the first of the wanted outputs that is declared, else `out`."""
    return next((output for output in wanted if output in outputs), "out")
