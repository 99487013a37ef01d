"""validate: whether manifests and data files are valid."""

from functools import partial
from pathlib import Path

from cudaredist.cli.options import Options, argument, cache_dir_option, strict_option
from cudaredist.cli.session import Session, command, open_cache


class ValidateOptions(Options):
    """The options of validate."""

    files: list[Path] = argument(
        "Manifests of NVIDIA's, or data files of ours.", metavar="FILE...", default=...
    )
    strict: bool = strict_option()
    cache_dir: Path | None = cache_dir_option()


@command(ValidateOptions)
def validate(options: ValidateOptions, session: Session) -> int:
    """Judge manifests and our own data files, told apart by their content.

    Every problem of a file is reported with the path to its field. Package sets are also held to
    the invariants I1 to I15, I19 and I25 to I27, together where several are given; what needs the
    files of archives is looked up in the cache that process-manifests filled.

    Examples:

        cudaredist build --cuda 13.0.2

        cudaredist validate build/*/*.json

    Examples that need the network:

        cudaredist download-manifests --redist cuda

        cudaredist validate data/manifests/cuda/*.json data/manifests/lock.json
    """
    from cudaredist.pipeline.validate_files import validate_files
    from cudaredist.render.check_text import validate_text

    cache = open_cache(options.cache_dir)
    report = validate_files(options.files, cache=cache, strict=options.strict)
    # Warnings are part of the result here, and --quiet leaves them out of the text.
    return session.finish(report, partial(validate_text, with_warnings=not options.quiet))
