"""Explain a release of JetPack or L4T: its CUDA, its libraries and its compat package."""

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from cudaredist.errors import NotInDataError, UnknownNameError, UsageError
from cudaredist.formats.jetpack import JetPackPolicy, JetPackRelease, JetsonCompat
from cudaredist.hints import command_line
from cudaredist.primitives import Version, find_release
from cudaredist.redists import REDISTS
from cudaredist.tables.explanation import Fact, Origin, Topic, make_fact

_Subject: TypeAlias = Literal["jetpack", "l4t"]

POLICY_FILE = "policy/jetpack.json"

_TITLES: Mapping[_Subject, str] = {"jetpack": "JetPack", "l4t": "L4T"}
_OTHERS: Mapping[_Subject, _Subject] = {"jetpack": "l4t", "l4t": "jetpack"}

_name = re.compile(
    r"(?P<kind>jetpack|jp|l4t|jetson linux)?[ -]?[rv]?(?P<version>[0-9]{1,4}(\.[0-9]{1,4}){0,3})",
    re.IGNORECASE,
).fullmatch


class JetsonName(NamedTuple):
    """A release of JetPack or L4T in words."""

    subject: _Subject
    version: str


def parse_jetson(text: str) -> JetsonName | None:
    """Return the release in a text such as `JetPack 6.2` or `L4T R36.4.3`, else None."""
    match = _name(text.strip())
    if match is None or match["kind"] is None:
        return None
    is_jetpack = match["kind"].lower() in {"jetpack", "jp"}
    return JetsonName("jetpack" if is_jetpack else "l4t", match["version"])


def find_jetpack(subject: _Subject, text: str, policy: JetPackPolicy) -> str:
    """Return the release of JetPack that a text names, or the newest one with a prefix.

    Raises `NotInDataError` or `UnknownNameError`, which suggest the nearest, and `UsageError` for a
    release of the other subject.
    """
    match = _name(text.strip())
    labels = _labels(subject, policy)
    label = None if match is None else find_release(match["version"], labels)
    if label is not None:
        return labels[label]
    title, other = _TITLES[subject], _OTHERS[subject]
    if match is None:
        raise UnknownNameError(f"release of {title}", text, map(str, labels))
    version = match["version"]
    if find_release(version, _labels(other, policy)) is not None:
        hint = f"run `{command_line(f'explain {other}', version)}`"
        message = f"{version} is a release of {_TITLES[other]}, not of {title}"
        raise UsageError(message, hint=hint)
    raise NotInDataError(f"{title} {version}", version, map(str, labels))


def _labels(subject: _Subject, policy: JetPackPolicy) -> dict[Version, str]:
    """Return the releases of JetPack by those of a subject."""
    return {
        Version.parse(label): name
        for name, release in policy.releases.items()
        for label in ((name,) if subject == "jetpack" else release.l4t)
    }


def jetpack_answer(
    name: str, policy: JetPackPolicy, products: Mapping[str, str | None]
) -> Iterator[str]:
    """Yield the contents of a release, then its compat package and the products with builds.

    `products` has the newest release with a build for the platform, by redistributable.
    """
    release = policy.releases[name]
    libraries = [
        f"CUDA {release.cuda}",
        f"cuDNN {release.cudnn or 'unknown'}",
        f"TensorRT {release.tensorrt or 'unknown'}",
    ]
    capabilities = " and ".join(release.capabilities)
    noun = "capability" if len(release.capabilities) == 1 else "capabilities"
    l4t = ", ".join(release.l4t)
    yield f"JetPack {name} (L4T {l4t}): {', '.join(libraries)}; compute {noun} {capabilities}"
    yield _compat(release, policy)
    if release.platform is None:
        yield "NVIDIA publishes no archives and wheels for it."
        return
    built = [f"{REDISTS[name].title} {label}" for name, label in products.items() if label]
    builds = _builds(release)
    yield f"newest releases with {builds}: {', '.join(built) or 'none'}"
    lacking = [REDISTS[name].title for name, label in products.items() if not label]
    if lacking:
        yield f"no known release has {builds}: {', '.join(lacking)}"


def explain_jetpack(name: str, policy: JetPackPolicy, products: Mapping[str, str | None]) -> Topic:
    """Explain a release of JetPack, with the source of each fact."""
    release = policy.releases[name]
    return Topic(title=f"JetPack {name}", facts=tuple(_facts(release, policy, products)))


def _facts(
    release: JetPackRelease, policy: JetPackPolicy, products: Mapping[str, str | None]
) -> Iterator[Fact]:
    origin, reason = _origin(release.reference), release.reason
    yield make_fact("l4t", "releases of L4T", release.l4t, origin, reason)
    yield make_fact("cuda", f"CUDA {release.cuda}", release.cuda, origin, reason)
    for title, version in (("cuDNN", release.cudnn), ("TensorRT", release.tensorrt)):
        words = f"{title} {version or 'unknown'}"
        yield make_fact(title.lower(), words, version, origin, reason)
    words = "compute capabilities"
    yield make_fact("capabilities", words, release.capabilities, origin, reason)
    known = policy.compat_of(release)
    for compat in known:
        words = f"{_package(compat)} runs on L4T {release.generation}, up to CUDA {compat.cuda}"
        source = _origin(compat.reference)
        yield make_fact("compat", words, compat.version, source, compat.reason)
    if not known:
        yield make_fact("compat", _compat(release, policy), None, _origin("no source"))
    if release.platform is not None:
        yield make_fact(
            "platform", f"platform {release.platform}", release.platform, origin, reason
        )
        built = tuple(f"{name} {label}" for name, label in products.items() if label)
        of_data = Origin("computed", "the manifests")
        yield make_fact("products", f"newest releases with {_builds(release)}", built, of_data)


def _builds(release: JetPackRelease) -> str:
    return f"builds for {release.platform} and CUDA {release.cuda.partition('.')[0]}"


def _compat(release: JetPackRelease, policy: JetPackPolicy) -> str:
    """Return the compat packages that run on a release, in words."""
    l4t = f"L4T {release.generation}"
    known = policy.compat_of(release)
    if not known:
        return f"compat packages that run on {l4t}: unknown"
    packages = [f"{_package(compat)} (up to CUDA {compat.cuda})" for compat in known]
    return f"compat packages that run on {l4t}: {', '.join(packages)}"


def _package(compat: JetsonCompat) -> str:
    return f"{compat.package} {compat.version}" if compat.version else compat.package


def _origin(reference: str) -> Origin:
    return Origin("documented", f"{reference} ({POLICY_FILE})")
