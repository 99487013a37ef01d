"""Explain a release of JetPack or L4T: its CUDA, its libraries and its compat package."""

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from cudaredist.errors import UnknownNameError
from cudaredist.formats.jetpack import JetPackPolicy, JetPackRelease, JetsonCompat
from cudaredist.primitives import Version, find_release
from cudaredist.redists import REDISTS
from cudaredist.tables.explanation import Fact, Origin, Topic, make_fact

POLICY_FILE = "policy/jetpack.json"

_name = re.compile(
    r"(?P<kind>jetpack|jp|l4t|jetson linux)?[ -]?[rv]?(?P<version>[0-9]{1,4}(\.[0-9]{1,4}){0,3})",
    re.IGNORECASE,
).fullmatch


class JetsonName(NamedTuple):
    """A release of JetPack or L4T in words."""

    subject: Literal["jetpack", "l4t"]
    version: str


def parse_jetson(text: str) -> JetsonName | None:
    """Return the release in a text such as `JetPack 6.2` or `L4T R36.4.3`, else None."""
    match = _name(text.strip())
    if match is None or match["kind"] is None:
        return None
    is_jetpack = match["kind"].lower() in {"jetpack", "jp"}
    return JetsonName("jetpack" if is_jetpack else "l4t", match["version"])


def find_jetpack(subject: Literal["jetpack", "l4t"], text: str, policy: JetPackPolicy) -> str:
    """Return the release of JetPack that a text names, or the newest one with a prefix.

    Raises `UnknownNameError`, which suggests the nearest.
    """
    match = _name(text.strip())
    labels = {
        Version.parse(label): name
        for name, release in policy.releases.items()
        for label in ((name,) if subject == "jetpack" else release.l4t)
    }
    label = None if match is None else find_release(match["version"], labels)
    if label is None:
        title = "release of JetPack" if subject == "jetpack" else "release of L4T"
        raise UnknownNameError(title, text, map(str, labels))
    return labels[label]


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
    yield _compat(release, policy)[0]
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
    words, compat = _compat(release, policy)
    if compat is None:
        yield make_fact("compat", words, None, _origin("no source"))
    else:
        yield make_fact("compat", words, compat.version, _origin(compat.reference), compat.reason)
    if release.platform is not None:
        yield make_fact(
            "platform", f"platform {release.platform}", release.platform, origin, reason
        )
        built = tuple(f"{name} {label}" for name, label in products.items() if label)
        of_data = Origin("computed", "the manifests")
        yield make_fact("products", f"newest releases with {_builds(release)}", built, of_data)


def _builds(release: JetPackRelease) -> str:
    return f"builds for {release.platform} and CUDA {release.cuda.partition('.')[0]}"


def _compat(release: JetPackRelease, policy: JetPackPolicy) -> tuple[str, JetsonCompat | None]:
    """Return the newest compat package for a release in words, and its entry."""
    generation = release.l4t[-1].partition(".")[0]
    compat = policy.compat_of(release.l4t[-1])
    if compat is None:
        return f"whether a compat package runs on L4T {generation} is unknown", None
    if compat.version is None:
        return f"no known compat package runs on L4T {generation}", compat
    words = f"cuda_compat {compat.version} runs on L4T {generation}: CUDA up to {compat.cuda}"
    return words, compat


def _origin(reference: str) -> Origin:
    return Origin("documented", f"{reference} ({POLICY_FILE})")
