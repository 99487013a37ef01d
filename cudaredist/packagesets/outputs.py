"""Outputs of a package in a set: which are declared, what they hold, and what they bring along."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from cudaredist.packagesets.inputs import is_within
from cudaredist.primitives import Version
from cudaredist.schema import (
    ExaminedArchive,
    Library,
    OutputContents,
    OutputName,
    OutputPolicy,
    OutputSize,
    Program,
    TreeChange,
)

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


class Layout(NamedTuple):
    """How a package's files are split."""

    outputs: tuple[OutputName, ...]
    collapsed: str | None
    contents: dict[OutputName, OutputContents]
    changes: tuple[TreeChange, ...]
    nested: str | None
    """The CUDA-versioned folder that took the place of `lib`."""

    def place(self, path: str) -> str | None:
        """Return where a file of the archive lies once `lib` is in order; None: it is gone.

        Where a CUDA-versioned folder took the place of `lib`, all else there is gone; so is what
        policy drops.
        """
        if self.nested is not None and path.startswith("lib/"):
            below = f"lib/{self.nested}/"
            if not path.startswith(below):
                return None
            path = f"lib/{path.removeprefix(below)}"
        return None if self.drops(path) else path

    def drops(self, path: str) -> bool:
        """Say whether policy drops a file, or a folder above it."""
        ways = [path, *(path[:end] for end, sign in enumerate(path) if sign == "/")]
        return any(
            fnmatchcase(way, change.source)
            for change in self.changes
            if change.op == "drop"
            for way in ways
        )


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


def make_layout(
    name: str,
    version: Version,
    examined: ExaminedArchive,
    cuda: Version,
    policy: OutputPolicy,
    *,
    declared: Sequence[OutputName] | None = None,
) -> Layout:
    """Return how an examined archive is split in a set; no output but `out` is empty.

    Where outputs are declared, there are these and no others: what would be in another one is in
    `out`, and the package stays whole only if no other one is declared.
    """
    nested = nested_folder(examined, cuda)
    contents = _contents(examined.outputs if nested is None else examined.unnested[nested])
    changes = [] if nested is None else [_change("lift", f"lib/{nested}", "lib")]
    changes += [
        _change(entry.op, entry.source, entry.to, split_only=entry.split_only)
        for entry in policy.normalise
        if entry.package == name and is_within(version, entry.versions)
    ]
    layout = Layout(tuple(contents), None, contents, tuple(changes), nested)
    has_stubs = any(library.stub for library, _, _ in placed_libraries(examined, layout))
    if any(layout.drops(f"{folder}/x") for folder in _STUB_FOLDERS) and not has_stubs:
        contents.pop("stubs", None)
    collapse = policy.collapse.get(name)
    if declared is not None:
        contents = _gathered(contents, declared)
    elif collapse is not None and len(contents) > 1:
        contents = _gathered(contents, ("out",))
        layout = layout._replace(collapsed=collapse.reason)
    return layout._replace(outputs=tuple(contents), contents=contents)


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
    nothing = OutputSize(files=0, bytes=0)
    held = {name: sizes.get(name, nothing) for name in ORDER}
    return {
        name: OutputContents(files=size.files, bytes=size.bytes)
        for name, size in held.items()
        if size.files or name == "out"
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
    resolved = [
        resolve(("bin",), outputs),
        resolve(("include", "dev"), outputs),
        resolve(("lib",), outputs),
    ]
    extra = policy.propagates.get(name)
    resolved += [output for output in (extra.outputs if extra else ()) if output in outputs]
    of_dev = tuple(o for o in dict.fromkeys(resolved) if o != "dev")
    of_out = tuple(o for o in dict.fromkeys(resolved) if o not in {"out", "dev"})
    by_output: dict[OutputName, tuple[OutputName, ...]] = {"dev": of_dev, "out": of_out}
    return {
        output: brought for output, brought in by_output.items() if output in outputs and brought
    }


def resolve(wanted: Sequence[OutputName], outputs: Sequence[OutputName]) -> OutputName:
    """Return the first of the wanted outputs that is declared, else `out`."""
    return next((output for output in wanted if output in outputs), "out")


def placed_libraries(
    examined: ExaminedArchive, layout: Layout
) -> Iterable[tuple[Library, str, OutputName]]:
    """Yield the libraries a package has in a set, each with its path and output there."""
    for library in examined.libraries:
        path = layout.place(library.path)
        if path is not None:
            yield library, path, resolve((library.output,), layout.outputs)


def placed_programs(
    examined: ExaminedArchive, layout: Layout
) -> Iterable[tuple[Program, str, OutputName]]:
    """Yield the programs a package has in a set, each with its path and output there."""
    for program in examined.programs:
        path = layout.place(program.path)
        if path is not None:
            yield program, path, resolve((program.output,), layout.outputs)
