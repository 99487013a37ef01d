"""Bazel: a part of MODULE.bazel for a rules_cuda toolkit."""

from collections.abc import Iterator

from cudaredist.errors import UsageError
from cudaredist.exporters.export_format import (
    ExportedPackage,
    ExportedSet,
    Files,
    exporter,
    filled_template,
)
from cudaredist.formats.packageset import PackageSet
from cudaredist.hints import command_line, typed_argument
from cudaredist.primitives import Version
from cudaredist.redists import CUDA

_PROGRAMS = ("cccl", "crt", "cudart", "culibos", "cupti", "nvcc", "nvrtc", "nvtx")
_LIBRARIES = (
    *("cublas", "cufft", "cufile", "curand", "cusolver", "cusparse", "npp", "nvjitlink"),
    *("nvjpeg", "nvvm"),
)
RULES_CUDA_PACKAGES = {
    **{name: f"cuda_{name}" for name in _PROGRAMS},
    **{name: f"lib{name}" for name in _LIBRARIES},
    "nvml": "cuda_nvml_dev",
}
"""Package of each rules_cuda component."""

_FILE = "cuda.MODULE.bazel"
_REQUIRED = ("cccl", "cudart", "nvcc")
_REQUIRED_SINCE_13 = ("crt", "nvvm")
_SPLIT = 13
"""First CUDA major release with separate packages for nvcc's headers and optimizer."""


@exporter("bazel", _FILE, takes_addresses=True, takes_target=True)
def bazel(exported: ExportedSet) -> Files:
    """A part of MODULE.bazel: the components and the toolkit of rules_cuda.

    For a target, it is NVIDIA's manifest with both platforms, because a component has one archive.
    """
    package_set = exported.package_set
    if package_set.channel == "wheels":
        line = Version.parse(package_set.cuda.release).line
        platform = package_set.platform.redist_system
        own = "--channel redist"
        commands = (
            command_line("download-manifests", own, redist="cuda", version=line),
            command_line("process-manifests", own, redist="cuda", version=line, platform=platform),
            command_line("build", own, cuda=line, platform=platform),
        )
        message = "rules_cuda requires NVIDIA's archives, but this set has wheels"
        hint = "run `{}`, `{}`, then `{}`".format(*commands)
        raise UsageError(message, hint=hint)
    components = dict(_components(exported))
    is_split = Version.parse(package_set.cuda.release).components[0] >= _SPLIT
    required = [*_REQUIRED, *(_REQUIRED_SINCE_13 if is_split else ())]
    missing = [RULES_CUDA_PACKAGES[name] for name in required if name not in components]
    if missing:
        path = typed_argument("package_set", "set.json")
        message = f"rules_cuda requires {', '.join(missing)}, not available in this set"
        raise UsageError(message, hint=f"run `cudaredist explain set {path}` to show the reasons")
    if exported.host is not None:
        return {_FILE: _cross_toolkit(exported, exported.host)}
    exported.require_addresses()
    title, version = exported.title, package_set.cuda.major_minor
    opened = {
        name: [
            *exported.opened(package.attr),
            *(f"{other} (optional)" for other in exported.optional_dependencies(package.attr)),
        ]
        for name, package in components.items()
    }
    values = {"title": title, "components": components, "opened": opened, "version": version}
    return {_FILE: filled_template(_FILE, **values)}


def _cross_toolkit(exported: ExportedSet, host: PackageSet) -> bytes:
    manifests = (entry for entry in host.inputs if (entry.kind, entry.name) == ("manifest", CUDA))
    manifest = next(manifests, None)
    packages = ExportedSet(host).packages
    archive = next((package.archive for package in packages if package.attr == "cuda_nvcc"), None)
    if manifest is None or manifest.overlay or archive is None or archive.url is None:
        raise UsageError(
            "rules_cuda requires NVIDIA's manifest for a cross toolkit, but this set has another",
            hint="build the sets again without --overlay",
        )
    # rules_cuda finds the archives relative to the manifest, like NVIDIA's server.
    return filled_template(
        "cuda-cross.MODULE.bazel",
        title=exported.title,
        platforms=[one.platform.redist_system for one in (host, exported.package_set)],
        manifest=manifest,
        url=f"{archive.url.removesuffix(archive.relative_path)}redistrib_{manifest.label}.json",
    )


def _components(exported: ExportedSet) -> Iterator[tuple[str, ExportedPackage]]:
    packages = {package.attr: package for package in exported.packages}
    for component, name in sorted(RULES_CUDA_PACKAGES.items()):
        entry = exported.package_set.packages.get(name)
        if entry is not None and (entry.alias_of or name) in packages:
            yield component, packages[entry.alias_of or name]
