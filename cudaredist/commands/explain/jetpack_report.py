"""explain jetpack and l4t: the contents of a release, with builds from the manifests."""

from typing import Literal, NamedTuple

from cudaredist.commands.explain.report import ExplainReport
from cudaredist.errors import EXIT_OK
from cudaredist.formats.jetpack import JetPackPolicy, JetPackRelease
from cudaredist.formats.registry import read_own_file
from cudaredist.primitives import Version
from cudaredist.redists import CUDA
from cudaredist.store.facts_index import Index, Question
from cudaredist.tables.explain_jetpack import explain_jetpack, find_jetpack, jetpack_answer


class _Build(NamedTuple):
    redist: str
    label: str
    variant: str | None


_BUILDS = Question(
    _Build,
    """
    SELECT DISTINCT redist, label, variant
    FROM current_releases JOIN archives ON release = current_releases.id
    WHERE platform = ?""",
)


def explain_jetpack_release(
    subject: Literal["jetpack", "l4t"], text: str, index: Index
) -> ExplainReport:
    """Explain a release of JetPack, or the one with a release of L4T.

    Raises `UnknownNameError`.
    """
    policy = read_own_file(index.store.read_policy("jetpack"), JetPackPolicy)
    name = find_jetpack(subject, text, policy)
    products = _newest_builds(policy.releases[name], index)
    return ExplainReport(
        kind="jetpack",
        asked=text,
        answer="\n".join(jetpack_answer(name, policy, products)),
        topics=(explain_jetpack(name, policy, products),),
        exit_code=EXIT_OK,
    )


def _newest_builds(release: JetPackRelease, index: Index) -> dict[str, str | None]:
    """Return the newest release of each product with a build for a release of JetPack.

    CUDA and builds for one major of CUDA count only if the major is that of the release.
    """
    major = release.cuda.partition(".")[0]
    labels: dict[str, list[Version]] = {redist: [] for redist in index.redists()}
    for build in index.ask(_BUILDS, release.platform or ""):
        label = Version.parse(build.label)
        of_cuda = build.redist == CUDA and build.label.partition(".")[0] != major
        if not of_cuda and build.variant in {None, f"cuda{major}"}:
            labels[build.redist].append(label)
    return {redist: str(max(own)) if own else None for redist, own in labels.items()}
