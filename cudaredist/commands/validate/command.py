"""validate: check manifests and data files."""

from functools import partial
from pathlib import Path

from cudaredist.cli.options import Options, argument, cache_dir_option, strict_option
from cudaredist.cli.session import Session, command, open_cache


class ValidateOptions(Options):
    """Options of validate."""

    typical = ("strict", "cache_dir", "json")

    files: list[Path] = argument("Manifests or data files.", metavar="FILE...", default=...)
    strict: bool = strict_option()
    cache_dir: Path | None = cache_dir_option()


@command(ValidateOptions)
def validate(options: ValidateOptions, session: Session) -> int:
    """Validate manifests and data files.

    Examples:

        cudaredist build --cuda 13.0.2
        cudaredist validate build/*/*.json

    Examples that need the network:

        cudaredist validate data/manifests/cuda/*.json data/lock.json

    The kind of each file is detected from its content. Every problem is reported with the path to
    its field. Package sets must also satisfy invariants, such as I1: "a name has one entry". The
    page "Data files" lists them. Some compare all given sets, and some use facts from the cache of
    process-manifests.
    """
    from cudaredist.commands.validate.text import validate_text
    from cudaredist.commands.validate.validate_files import validate_files

    cache = open_cache(options.cache_dir)
    report = validate_files(options.files, cache=cache, strict=options.strict)
    # Warnings are part of this command's result. --quiet removes them from the text.
    return session.finish(report, partial(validate_text, with_warnings=not options.quiet))
