"""Pairs of package sets to compile for another platform."""

from pathlib import Path

from cudaredist.errors import UsageError
from cudaredist.formats.packageset import Cross, PackageSet
from cudaredist.hints import command_line
from cudaredist.primitives import JETSON, SBSA
from cudaredist.sets.read_set import read_package_set
from cudaredist.sets.request_options import PairOptions
from cudaredist.words import listed

HOST = "linux-x86_64"
"""The platform of NVIDIA's cross compilers."""


def check_pair(pair: Cross, options: PairOptions) -> None:
    """Raise `UsageError` if CUDA has no compilers for a target on a host."""
    if (pair.host, pair.target) in {(HOST, SBSA), (HOST, JETSON)}:
        return
    hint = f"{options.host} must be for {HOST}, and {options.target} for {SBSA} or {JETSON}"
    if pair.target == HOST and pair.host != HOST:
        hint += f"; exchange {options.host} and {options.target}"
    raise UsageError(f"CUDA has no compilers for {pair.target} on {pair.host}", hint=hint)


def read_target_set(host: PackageSet, path: Path, options: PairOptions) -> tuple[PackageSet, str]:
    """Return the package set of a host's target, and its hash.

    Raises `UsageError` if the compilers of the host cannot build programs for the target, or if
    `build` made a set for another pair.
    """
    target, sha256 = read_package_set(path)
    host_platform, platform = host.platform.redist_system, target.platform.redist_system
    pair = Cross(host=host_platform, target=platform)
    for cross in filter(None, (host.cross, target.cross)):
        if cross != pair:
            is_swapped = cross == Cross(host=platform, target=host_platform)
            solution = "use the two sets of one pair"
            if is_swapped:
                solution = f"exchange {options.host} and {options.target}"
            raise UsageError(
                f"the pair has the host {cross.host} and the target {cross.target}, but "
                f"{options.host} is for {host_platform} and {options.target} for {platform}",
                hint=f"{solution}; `cudaredist build --target` writes both",
            )
    check_pair(pair, options)
    differences = _differences(host, target)
    if differences:
        command = command_line(
            "build", channel=host.channel, cuda=host.cuda.release, platform=platform, output=path
        )
        message = f"the sets for {host_platform} and {platform} differ: {listed(differences)}"
        raise UsageError(message, hint=f"run `{command}` to build a set for the target")
    return target, sha256


def _differences(host: PackageSet, target: PackageSet) -> list[str]:
    """Return the differences between a host's set and a target's set.

    Packages are only compared if the CUDA release and the channel are the same.
    """
    differences = []
    if host.cuda.release != target.cuda.release:
        differences.append(f"CUDA {host.cuda.release} and {target.cuda.release}")
    if host.channel != target.channel:
        differences.append(f"channel {host.channel} and {target.channel}")
    if differences:
        return differences
    for name, package in host.packages.items():
        other = target.packages.get(name)
        if package.redist != "cuda" or package.status != "available":
            continue
        if other is None or other.status != "available":
            continue
        if package.version != other.version:
            differences.append(f"{name} {package.version} and {other.version}")
    return differences
