"""Compute capabilities of a set, and their compiler flags."""

from collections.abc import Sequence

from cudaredist.errors import UnknownNameError, UsageError
from cudaredist.formats.packageset import Flags
from cudaredist.formats.tables import CapabilityEntry, Gpus
from cudaredist.hints import again, command_line
from cudaredist.primitives import Version
from cudaredist.sets.request_options import RequestOptions
from cudaredist.tables.gpus.capability import Capability
from cudaredist.tables.gpus.gpu_table import (
    default_capabilities,
    is_supported,
    last_release,
    supported_capabilities,
)


def capability_problems(
    requested: Sequence[str], cuda: Version, gpus: Gpus
) -> tuple[list[str], list[str]]:
    """Return the supported capabilities, and problems with the others."""
    entries = {name: gpus.capabilities[name] for name in requested}
    good = [name for name, entry in entries.items() if is_supported(entry, cuda.line)]
    problems = [
        f"CUDA {cuda.line} does not support {name}, CUDA {_supported_by(entry)}"
        for name, entry in entries.items()
        if name not in good
    ]
    return good, problems


def release_defaults(cuda: Version, gpus: Gpus) -> tuple[str, ...]:
    """Return a release's default capabilities on platforms without Jetsons.

    Raises `UsageError` if the release is not in the table.
    """
    try:
        return default_capabilities(cuda.line, gpus)
    except UnknownNameError as error:
        message = f"gpus.json has no capabilities for CUDA {cuda.line}"
        raise UsageError(message, hint=f"run `{command_line('update-gpus')}`") from error


def make_flags(
    requested: Sequence[str],
    default: tuple[str, ...],
    cuda: Version,
    gpus: Gpus,
    *,
    forward_compat: bool | None,
    options: RequestOptions,
) -> Flags:
    """Return the requested or default capabilities, with their flags.

    Unless disabled, PTX for later GPUs is embedded if a capability has no letter: code for one
    architecture or family does not run on later GPUs. Raises `UsageError` if `forward_compat` is
    set but every capability has a letter.
    """
    effective = tuple(requested) or default
    parsed = [Capability.parse(name) for name in effective]
    plain = [str(capability) for capability in parsed if capability.variant is None]
    if forward_compat and not plain:
        message = "forward compatibility requires a capability without a letter, but all have one: "
        message += ", ".join(effective)
        call = again(without=[options.forward_compat])
        hint = f"add one, for example {options.gpu} 9.0, or remove {options.forward_compat}: "
        hint += f"`{call}`"
        raise UsageError(message, hint=hint)
    portable = bool(plain) if forward_compat is None else forward_compat
    numbers = [_digits(name) for name in effective]
    real = tuple(f"sm_{number}" for number in numbers)
    virtual = tuple(f"compute_{number}" for number in numbers)
    # nvcc has LTO code for every architecture that it supports.
    lto = tuple(f"lto_{number}" for number in numbers)
    last = (f"compute_{_digits(plain[-1])}",) if portable else ()
    gencode = _gencode(real + last)
    ordered = sorted(set(parsed))
    highest = max((c for c in ordered if c.variant is None), default=None) if portable else None
    families = {gpus.capabilities[name].family for name in effective}
    return Flags(
        requested=tuple(requested),
        supported=supported_capabilities(cuda.line, gpus),
        default=default,
        effective=effective,
        forward_compat=portable,
        arch_names=tuple(sorted(families)),
        real_arches=real,
        virtual_arches=virtual,
        arches=real + last,
        gencode=gencode,
        gencode_string=" ".join(gencode),
        # CMake embeds PTX for each architecture, but with a letter it is not portable.
        cmake_cuda_architectures=";".join(
            f"{_digits(name)}-real" if portable and name not in plain else _digits(name)
            for name in effective
        ),
        cmake_architectures_real_virtual=";".join(
            _digits(str(c)) if c == highest else f"{_digits(str(c))}-real" for c in ordered
        ),
        torch_cuda_arch_list=";".join(f"{c}+PTX" if c == highest else f"{c}" for c in ordered),
        lto_arches=lto,
        gencode_lto=_gencode(lto + last),
    )


def _gencode(codes: Sequence[str]) -> tuple[str, ...]:
    """Return the options of nvcc for targets such as `sm_90`."""
    return tuple(f"-gencode=arch=compute_{code.partition('_')[2]},code={code}" for code in codes)


def set_attribute(release: str) -> str:
    """Return the set's name for a release, such as `cudaPackages_12_6`."""
    return f"cudaPackages_{release.replace('.', '_')}"


def _digits(name: str) -> str:
    return name.replace(".", "")


def _supported_by(entry: CapabilityEntry) -> str:
    last = last_release(entry)
    if last is None:
        return f"{entry.first_cuda} and newer do"
    return f"{entry.first_cuda} to {last} do"
