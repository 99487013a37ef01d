"""Tests of lock files for pip and uv: wheels, refusals and readers."""

import tomllib

import pytest
from packaging.pylock import Pylock
from support.package_sets import archive, document, example_set, package

from cudaredist.errors import UsageError
from cudaredist.exporters import find_exporter
from cudaredist.exporters.export_format import ExportedSet, with_addresses
from cudaredist.formats.packageset import PackageSet

BASE = "https://wheels.example/simple"
CUBLAS = "nvidia-cublas/nvidia_cublas-13.1.0.3-py3-none-{}.whl"
CUDNN = "nvidia-cudnn-cu13/nvidia_cudnn_cu13-{}-py3-none-manylinux_2_27_x86_64.whl"
TAGS = {
    "linux-x86_64": "manylinux_2_27_x86_64",
    "linux-sbsa": "manylinux_2_27_aarch64",
    "windows-x86_64": "win_amd64",
    "windows-arm64": "win_arm64",
}


def wheels(*paths: str, platform: str = "linux-x86_64") -> PackageSet:
    """Return a set of wheels without addresses."""
    unknown = {"url": None, "md5": None, "size": None, "format": "whl", "strip_prefix": None}
    entries = {
        f"p{n}": package(f"p{n}", archive=archive(path) | unknown) for n, path in enumerate(paths)
    }
    there = {**document()["platform"], "redist_system": platform}
    return example_set(channel="wheels", packages=entries, platform=there)


def exported(name: str, package_set: PackageSet) -> str:
    (content,) = find_exporter(name).files(ExportedSet(package_set)).values()
    return content.decode()


def test_requirements_pin_each_wheel_once_with_hash() -> None:
    path = CUBLAS.format(TAGS["linux-x86_64"])
    package_set = wheels(path, path, CUDNN.format("9.28.0.42"))
    hashes = [package_set.packages[name].archive for name in ("p0", "p2")]
    assert all(hashes)
    first, second = (one.sha256 for one in hashes if one)
    assert exported("requirements", package_set) == (
        f"# CUDA {package_set.cuda.release} for linux-x86_64. Made by cudaredist.\n"
        "# pip install --no-deps --require-hashes --requirement requirements.txt\n"
        f"nvidia-cublas==13.1.0.3 \\\n    --hash=sha256:{first}\n"
        f"nvidia-cudnn-cu13==9.28.0.42 \\\n    --hash=sha256:{second}\n"
    )


@pytest.mark.parametrize(
    ("platform", "environment"),
    [
        ("linux-x86_64", {"sys_platform": "linux", "platform_machine": "x86_64"}),
        ("linux-sbsa", {"sys_platform": "linux", "platform_machine": "aarch64"}),
        ("windows-x86_64", {"sys_platform": "win32", "platform_machine": "AMD64"}),
        ("windows-arm64", {"sys_platform": "win32", "platform_machine": "ARM64"}),
    ],
)
def test_pylock_is_valid_and_limited_to_platform(
    platform: str, environment: dict[str, str]
) -> None:
    path = CUBLAS.format(TAGS[platform])
    package_set = with_addresses(wheels(path, platform=platform), BASE)
    lock = Pylock.from_dict(tomllib.loads(exported("pylock", package_set)))
    (package_entry,) = lock.packages
    (wheel,) = package_entry.wheels or ()
    assert (package_entry.name, str(package_entry.version)) == ("nvidia-cublas", "13.1.0.3")
    assert wheel.url == f"{BASE}/{path}"
    assert wheel.hashes == {"sha256": package_set.packages["p0"].archive.sha256}  # type: ignore[union-attr]
    (marker,) = lock.environments or ()
    assert marker.evaluate(environment)
    others = [tag for tag in TAGS if tag != platform]
    assert len(others) == 3
    assert not marker.evaluate({"sys_platform": "darwin", "platform_machine": "arm64"})


@pytest.mark.parametrize("name", ["pylock", "requirements"])
def test_sets_without_wheels_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="pip and uv require wheels") as raised:
        exported(name, example_set())
    assert "cudaredist build --channel wheels" in str(raised.value.hint)


@pytest.mark.parametrize("name", ["pylock", "requirements"])
def test_sets_of_other_platforms_are_refused(name: str) -> None:
    made = wheels(CUDNN.format("9.28.0.42"), platform="linux-riscv")
    with pytest.raises(UsageError, match="no wheels for 'linux-riscv'"):
        exported(name, with_addresses(made, BASE))


@pytest.mark.parametrize("name", ["pylock", "requirements"])
def test_two_versions_of_project_are_refused(name: str) -> None:
    package_set = wheels(CUDNN.format("9.28.0.42"), CUDNN.format("8.9.7.29"))
    with pytest.raises(UsageError, match=r"nvidia-cudnn-cu13 9\.28\.0\.42 and 8\.9\.7\.29 cannot"):
        exported(name, with_addresses(package_set, BASE))


def test_file_that_is_not_a_wheel_is_refused() -> None:
    with pytest.raises(UsageError, match=r"p0: x-1\.tar\.gz is not a wheel"):
        exported("requirements", wheels("x/x-1.tar.gz"))


def test_pylock_requires_addresses() -> None:
    with pytest.raises(UsageError, match="unknown URLs of 1 archive:") as raised:
        exported("pylock", wheels(CUDNN.format("9.28.0.42")))
    assert "--resolve" in str(raised.value.hint)
