"""Compare the tables of a checkout of nixpkgs, or change them."""

from pathlib import Path

from cudaredist.cli.session import Session
from cudaredist.commands.nixpkgs.options import TableOptions
from cudaredist.errors import EXIT_FINDINGS, EXIT_OK, UsageError
from cudaredist.formats.report import ExportedFile
from cudaredist.hints import again
from cudaredist.nixpkgs.checkout import Checkout, is_checkout
from cudaredist.nixpkgs.differences import Differences
from cudaredist.nixpkgs.read_checkout import read_checkout
from cudaredist.nixpkgs.records import KEEP
from cudaredist.primitives import sha256_of
from cudaredist.store.files import update_output
from cudaredist.words import plural

_HOW_TO_KEEP = (
    f"to keep a value of the checkout, add the comment `# {KEEP}` to its row, or "
    f"`# {KEEP} NAME` with a name from this list to its file"
)


def compare_tables(
    folder: Path, package_set: Path | None, options: TableOptions, session: Session
) -> Differences:
    """Return the differences from a checkout."""
    checkout = _read_checkout(folder, package_set, options, session)
    if not is_checkout(folder):
        hint = "run `git clone --depth 1 https://github.com/NixOS/nixpkgs`"
        raise UsageError(f"{folder} is not a checkout of nixpkgs: it has no pkgs/", hint=hint)
    _print_pin_warnings(checkout, session)
    differences = checkout.differences
    if differences.cells:
        session.console.note(_HOW_TO_KEEP)
    return differences


def change_files(
    folder: Path,
    package_set: Path | None,
    options: TableOptions,
    session: Session,
    *,
    comparison: str,
) -> tuple[tuple[ExportedFile, ...], int]:
    """Change the files of a checkout, or create those of a new folder.

    Returns the files and the exit code. `comparison` is the command that lists the values of the
    checkout that stay.
    """
    checkout = _read_checkout(folder, package_set, options, session)
    skips_pin = False
    _print_pin_warnings(checkout, session)
    if not is_checkout(folder) or checkout.is_fresh:
        files = checkout.fresh_files
    else:
        files = checkout.merged_files()
        skipped, skips_pin = checkout.skipped_reasons(), checkout.skips_pin
        kept = sum(cell.cudaredist is None for cell in checkout.differences.kept)
        for text in skipped:
            session.console.warning(f"skipped {text}")
        if skipped:
            session.console.note(
                f"to keep a release without this warning, add the comment `# {KEEP}` to its row; "
                f"to export older releases, run `{again('--replace')}`"
            )
        if kept:
            summary = f"kept {plural(kept, 'value')} that only {folder} has"
            session.console.note(f"{summary}; to list them, run `{comparison}`")
    written = []
    for name, content in files.items():
        path = folder / name
        status = update_output(path, content, may_write=not options.check, root=folder)
        size, sha256 = len(content), sha256_of(content)
        written.append(ExportedFile(path=str(path), status=status, size=size, sha256=sha256))
    is_stale = any(file.status == "would-write" for file in written)
    return tuple(written), EXIT_FINDINGS if is_stale or skips_pin else EXIT_OK


def _print_pin_warnings(checkout: Checkout, session: Session) -> None:
    for text in checkout.pin_warnings():
        session.console.warning(text)


def _read_checkout(
    folder: Path, package_set: Path | None, options: TableOptions, session: Session
) -> Checkout:
    """Read a checkout and the releases for it, and print warnings."""
    checkout, warnings = read_checkout(
        folder,
        package_set,
        data_dir=options.data_dir,
        use_shipped=options.shipped_data,
        pins=options.redist or (),
        only=frozenset(options.only or ()),
        allow_downgrade=options.replace,
    )
    for text in warnings:
        session.console.warning(text)
    return checkout
