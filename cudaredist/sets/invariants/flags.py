"""The invariant that capabilities are supported, and that their flags agree."""

from collections.abc import Iterator

from cudaredist.formats.packageset import Flags, PackageSet
from cudaredist.tables.gpus.capability import Capability


def check_flags(package_set: PackageSet) -> Iterator[tuple[str, str]]:
    """Check I12, except `arch_names`, which depends on the table."""
    flags = package_set.capabilities
    for name, listed in (("default", flags.default), ("effective", flags.effective)):
        beyond = [item for item in listed if item not in flags.supported]
        if beyond:
            yield f"capabilities.{name}", f"{', '.join(beyond)} are not supported"
    if flags.effective != (flags.requested or flags.default):
        yield "capabilities.effective", "are neither the requested nor the default ones"
    for name, expected in _flags_of(flags).items():
        if getattr(flags, name) != expected:
            yield f"capabilities.{name}", f"does not follow from {', '.join(flags.effective)}"


def _flags_of(flags: Flags) -> dict[str, object]:
    """Return the flags that follow from the effective capabilities.

    It shares no code with the functions that made the flags, so that it also detects their errors.
    """
    capabilities = [Capability.parse(name) for name in flags.effective]
    plain = [capability for capability in capabilities if capability.variant is None]
    portable = max(plain) if plain and flags.forward_compat else None
    numbers = [name.replace(".", "") for name in flags.effective]
    codes = [f"sm_{number}" for number in numbers]
    digits_of_plain = [str(capability).replace(".", "") for capability in plain]
    last = [f"compute_{number}" for number in digits_of_plain[-1:] if flags.forward_compat]
    gencode = [
        f"-gencode=arch=compute_{code.partition('_')[2]},code={code}" for code in (*codes, *last)
    ]
    lto = tuple(code.replace("code=sm_", "code=lto_") for code in gencode if flags.lto_arches)
    ordered = [(c, str(c), str(c).replace(".", "")) for c in sorted(set(capabilities))]
    return {
        "forward_compat": flags.forward_compat and bool(plain),
        "real_arches": tuple(codes),
        "virtual_arches": tuple(f"compute_{number}" for number in numbers),
        "arches": (*codes, *last),
        "gencode": tuple(gencode),
        "gencode_string": " ".join(gencode),
        "lto_arches": tuple(f"lto_{number}" for number in numbers if flags.lto_arches),
        "gencode_lto": lto,
        "cmake_cuda_architectures": ";".join(
            number if portable is None or number[-1].isdigit() else f"{number}-real"
            for number in numbers
        ),
        "cmake_architectures_real_virtual": ";".join(
            digits if c == portable else f"{digits}-real" for c, _, digits in ordered
        ),
        "torch_cuda_arch_list": ";".join(
            f"{text}+PTX" if c == portable else text for c, text, _ in ordered
        ),
    }
