"""Lock files for Python's installers: exactly the wheels of a package set."""

from collections.abc import Iterator

import tomli_w
from packaging.markers import Marker
from packaging.pylock import Package, PackageWheel, Pylock
from packaging.utils import canonicalize_name
from packaging.version import Version

from cudaredist.errors import UsageError
from cudaredist.exporters.export_format import ExportedSet, Files, exporter
from cudaredist.formats.packageset import SetArchive
from cudaredist.hints import command_line
from cudaredist.wheel_projects import PLATFORMS
from cudaredist.wheels import Wheel, parse_wheel
from cudaredist.words import shown

_FORMAT_VERSION = Version("1.0")


@exporter("requirements", "requirements.txt")
def requirements(exported: ExportedSet) -> Files:
    """The set's wheels as requirements of pip, each with its version and hash."""
    lines = [
        f"{wheel.project}=={wheel.version} \\\n    --hash=sha256:{archive.sha256}"
        for wheel, archive in _wheels(exported)
    ]
    head = (
        f"# {exported.title}. Made by cudaredist.\n"
        "# pip install --no-deps --require-hashes --requirement requirements.txt\n"
    )
    return {"requirements.txt": "".join([head, *(f"{line}\n" for line in lines)]).encode()}


@exporter("pylock", "pylock.toml", takes_addresses=True)
def pylock(exported: ExportedSet) -> Files:
    """The set's wheels as a lock file of PEP 751, with their addresses.

    Its marker limits it to the set's platform.
    """
    wheels = list(_wheels(exported))
    exported.require_addresses()
    environment = PLATFORMS[exported.package_set.platform.redist_system].environment
    keys = ("sys_platform", "platform_machine")
    marker = " and ".join(f'{key} == "{environment[key]}"' for key in keys)
    lock = Pylock(
        lock_version=_FORMAT_VERSION,
        environments=[Marker(marker)],
        created_by="cudaredist",
        packages=[_package(wheel, archive) for wheel, archive in wheels],
    )
    lock.validate()
    return {"pylock.toml": tomli_w.dumps(lock.to_dict()).encode()}


def _package(wheel: Wheel, archive: SetArchive) -> Package:
    hashes = {"sha256": archive.sha256}
    file = PackageWheel(name=wheel.file_name, url=archive.url, size=archive.size, hashes=hashes)
    return Package(name=canonicalize_name(wheel.project), version=wheel.version, wheels=[file])


def _wheels(exported: ExportedSet) -> Iterator[tuple[Wheel, SetArchive]]:
    """Yield the wheels of a set, each once, by the names of their projects.

    Raises `UsageError` for another channel, and for two versions of one project, which no
    environment can contain.
    """
    package_set = exported.package_set
    release, platform = package_set.cuda.release, package_set.platform.redist_system
    if platform not in PLATFORMS:
        raise UsageError(f"NVIDIA publishes no wheels for {shown(platform)}")
    if package_set.channel != "wheels":
        build = command_line("build", channel="wheels", cuda=release, platform=platform)
        message = "pip and uv require wheels, but the set has NVIDIA's archives"
        raise UsageError(message, hint=f"run `{build}`")
    wheels: dict[str, tuple[Wheel, SetArchive]] = {}
    for package in exported.packages:
        file_name = package.archive.relative_path.rpartition("/")[2]
        wheel = parse_wheel(file_name, package.archive.url or "")
        if wheel is None:
            raise UsageError(f"{package.attr}: {file_name} is not a wheel for a known platform")
        other = wheels.setdefault(wheel.project, (wheel, package.archive))[0]
        if other.file_name != wheel.file_name:
            raise UsageError(
                f"{wheel.project} {other.version} and {wheel.version} cannot be installed together",
                hint="build the set without --also",
            )
    yield from (wheels[project] for project in sorted(wheels))
