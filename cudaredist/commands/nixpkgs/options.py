"""Options of nixpkgs, and of its former name `export nixpkgs`."""

from pathlib import Path

from cudaredist.cli.options import (
    Options,
    check_option,
    pin_option,
    read_data_dir_option,
    safety_option,
    select_option,
    shipped_data_option,
)


class TableOptions(Options):
    """Options of every call that reads or changes the tables of nixpkgs."""

    only: list[str] | None = select_option(
        "Table, set or redistributable. Repeatable. Default: all.",
        metavar="TABLE|SET|NAME",
    )
    redist: list[str] | None = pin_option(
        "Release to select without SET. Repeatable. Default: newest."
    )
    data_dir: Path | None = read_data_dir_option()
    shipped_data: bool = shipped_data_option()
    check: bool = check_option()
    replace: bool = safety_option("Replace newer releases of the checkout.")
