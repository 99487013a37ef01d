"""validate: check manifests and data files."""

from functools import partial
from pathlib import Path

from cudaredist.cli.configuration import sets_given
from cudaredist.cli.options import (
    Options,
    argument,
    cache_dir_option,
    safety_option,
    strict_option,
)
from cudaredist.cli.session import Session, command, open_cache
from cudaredist.errors import UsageError
from cudaredist.hints import again


class ValidateOptions(Options):
    """Options of validate."""

    typical = ("strict", "cache_dir", "json")

    files: list[Path] | None = argument(
        "Manifests or data files. Default: the declared package sets.",
        metavar="[FILE...]",
        default=None,
    )
    strict: bool = strict_option()
    fix: bool = safety_option("Write valid files of ours in canonical form.")
    cache_dir: Path | None = cache_dir_option()


@command(ValidateOptions)
def validate(options: ValidateOptions, session: Session) -> int:
    """Validate manifests and data files.

    Examples:

        cudaredist build --cuda 13.0.2
        cudaredist validate build/*/*.json
        cudaredist validate data/manifests/cuda/*.json data/lock.json  # needs ./data

    The kind of each file is detected from its content. Every problem is reported with the path to
    its field. Package sets must also satisfy invariants, such as I1: "a name has one entry". The
    page "Data files" lists them. Some compare all given sets, and some use facts from the cache of
    process-manifests.
    """
    from cudaredist.commands.validate.report import validate_text
    from cudaredist.commands.validate.validate_files import validate_files
    from cudaredist.sets.read_set import indexed_sets

    cache = open_cache(options.cache_dir)
    paths = sets_given(options.files)
    if not paths:
        raise UsageError("missing FILE", hint=f"run `{again('data/lock.json')}`")
    if not options.files:
        paths = [*paths, *(path for index in paths for path in indexed_sets(index))]
    report = validate_files(paths, cache=cache, strict=options.strict, fix=options.fix)
    # Warnings are part of this command's result. --quiet removes them from the text.
    return session.finish(report, partial(validate_text, with_warnings=not options.quiet))
