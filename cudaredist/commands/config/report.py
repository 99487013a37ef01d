"""The report of config."""

from typing import Literal

from pydantic import Field

from cudaredist.cli.options import SettingOrigin
from cudaredist.formats.base import OwnModel
from cudaredist.formats.report import Answer


class Setting(OwnModel):
    """A setting with its value and origin."""

    name: str = Field(description="As in the configuration file")
    value: str | int | float | bool | list[str] | None = Field(
        description="Null: the default depends on the command"
    )
    origin: SettingOrigin


class ConfigReport(Answer):
    """The result of config."""

    command: Literal["config"] = "config"
    path: str | None = Field(description="The configuration file. Null: none")
    settings: tuple[Setting, ...]
    shipped_data: str = Field(description="The folder of the shipped data and policy")
