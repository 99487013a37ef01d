"""The report of config as text."""

from collections.abc import Iterator

from cudaredist.cli.text import columns
from cudaredist.commands.config.report import ConfigReport, Setting
from cudaredist.errors import printable


def config_text(report: ConfigReport) -> Iterator[str]:
    """Yield the settings with their values and origins."""
    rows = [("setting", "value", "origin")]
    rows += [(one.name, _value(one), _origin(report, one)) for one in report.settings]
    yield from columns(rows)
    yield ""
    yield f"The shipped data and policy are in {printable(report.shipped_data)}."


def _value(setting: Setting) -> str:
    value = setting.value
    if isinstance(value, bool):
        return "true" if value else "false"
    return "-" if value is None else " ".join(value) if isinstance(value, list) else str(value)


def _origin(report: ConfigReport, setting: Setting) -> str:
    if setting.origin == "environment":
        return f"CUDAREDIST_{setting.name.replace('-', '_').upper()}"
    return str(report.path) if setting.origin == "file" else setting.origin
