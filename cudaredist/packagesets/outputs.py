"""Outputs of a package in a set: which are declared, what they hold, and what they bring along."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cudaredist.packagesets.data import is_within
from cudaredist.primitives import Version
from cudaredist.schema import (
    ExaminedArchive,
    Library,
    OutputContents,
    OutputName,
    OutputPolicy,
    OutputSize,
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
    name: str, version: Version, examined: ExaminedArchive, cuda: Version, policy: OutputPolicy
) -> Layout:
    """Return how an examined archive is split in a set; no output but `out` is empty."""
    nested = nested_folder(examined, cuda)
    sizes = examined.outputs if nested is None else examined.unnested[nested]
    contents = _contents(sizes)
    changes = [] if nested is None else [_change("lift", f"lib/{nested}", "lib")]
    changes += [
        _change(entry.op, entry.source, entry.to)
        for entry in policy.normalise
        if entry.package == name and is_within(version, entry.versions)
    ]
    collapse = policy.collapse.get(name)
    if collapse is not None and len(contents) > 1:
        whole = OutputContents(
            files=sum(part.files for part in contents.values()),
            bytes=sum(part.bytes for part in contents.values()),
        )
        return Layout(("out",), collapse.reason, {"out": whole}, tuple(changes), nested)
    return Layout(tuple(contents), None, contents, tuple(changes), nested)


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


def _change(op: str, source: str, to: str | None) -> TreeChange:
    return TreeChange.model_validate({"op": op, "from": source, "to": to})


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
    """Yield the libraries a package has in a set, each with its path and output there.

    Where a CUDA-versioned folder took the place of `lib`, the others' libraries are gone.
    """
    for library in examined.libraries:
        path, output = library.path, library.output
        if layout.nested is not None and path.startswith("lib/"):
            below = f"lib/{layout.nested}/"
            if not path.startswith(below):
                continue
            path = f"lib/{path.removeprefix(below)}"
            output = "stubs" if library.stub else "lib"
        yield library, path, resolve((output,), layout.outputs)
