"""The command line, with a file for each command.

The module of a command is imported when the command is called, or when the help or a hint needs its
options: all commands together take longer than most answers. Inside a command, the imports for its
work come after its options.
"""

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from cudaredist import __version__
from cudaredist.cli.configuration import read_configuration
from cudaredist.cli.console import Console
from cudaredist.cli.help_text import HelpfulCommand, print_help, program_help, table
from cudaredist.cli.other_names import after_format, without_other_names
from cudaredist.cli.session import report_bug, report_error
from cudaredist.errors import EXIT_CODES, EXIT_OK, EXIT_USAGE, CudaRedistError, UsageError
from cudaredist.hints import quoted
from cudaredist.similar_names import similar_names, similar_options

__all__ = ["app"]

_RARE = "Rarely needed"
_PANELS = {
    "Ask": ("explain", "which", "diff", "versions", "query", "site"),
    "Check programs": ("audit",),
    "Package": ("build", "export", "nixpkgs", "materialize", "mirror"),
    "Keep data fresh": (
        "check",
        "bump",
        "download-manifests",
        "process-manifests",
        "update-nvcc-compat",
        "update-gpus",
        "update-symbols",
        "update-api",
        "update-advisories",
    ),
    _RARE: ("manifest", "runfile", "drop", "validate", "schema", "config"),
}
"""The commands in the order of use. README and docs have the same groups."""
_PANEL_OF = {name: panel for panel, names in _PANELS.items() for name in names}
_EXPORT_NIXPKGS = "export nixpkgs"
"""The former name of nixpkgs."""
_MODULES = {
    "download-manifests": "download.command",
    "process-manifests": "process.command",
    "update-nvcc-compat": "update.update_nvcc_compat",
    "update-gpus": "update.update_gpus",
    "update-symbols": "update.update_symbols",
    "update-api": "update.update_api",
    "update-advisories": "update.update_advisories",
    _EXPORT_NIXPKGS: "export.nixpkgs_command",
}
"""The modules in `commands` of some commands. That of others is `NAME.command`."""
_EXAMPLES = {
    "cudaredist explain T4": "newest CUDA and cuDNN for a GPU",
    "cudaredist explain 535": "CUDA releases for a driver",
    'cudaredist explain "gcc 15"': "CUDA releases for a compiler",
    "cudaredist explain libcudnn.so.9": "packages with a library",
    "cudaredist audit .venv": "missing libraries of an environment",
    "cudaredist build --cuda 13.0": "all packages of a release, as a set",
}

_SYNONYMS = {
    "list": "versions --offline",
    "ls": "versions --offline",
    "search": "which",
    "find": "which",
    "info": "explain",
    "show": "explain",
    "install": "materialize",
    "download": "download-manifests",
    "process": "process-manifests",
    "verify": "validate",
    "update": "bump",
    "sbom": "export cyclonedx",
}
"""Names of similar commands in other programs."""

_ParserError: Any = typer.BadParameter.__base__
"""typer's exception for an invalid command line."""

_HELP = frozenset({"-h", "--help"})
_COMPLETION = frozenset({"--install-completion", "--show-completion"})
_COMPLETION_HINT = (
    "install ps, or add the output of `_CUDAREDIST_COMPLETE=source_bash cudaredist` (or "
    "source_zsh, source_fish) to the shell's startup file"
)


class _Program(TyperGroup):
    """The group of all commands, which reports an invalid command line like other errors."""

    words: tuple[str, ...] = ()
    """The words of the call."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - as typer has it
        super().__init__(**attributes)
        self.commands: Any = _Commands()

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - as typer has it
        """Write the commands in the order of use.

        With -h, only their names are listed.
        """
        del ctx, formatter
        groups = {
            panel: {name: _summary(self.commands[name].help) for name in names}
            for panel, names in _PANELS.items()
        }
        is_whole = "-h" not in self.words
        lines = program_help(_summary(self.help), _EXAMPLES, groups, rare=_RARE, is_whole=is_whole)
        sections: dict[str, list[tuple[str, str]]] = {}
        if is_whole:
            options: list[Any] = self.params
            sections["Options"] = [(", ".join(option.opts), option.help) for option in options]
            sections["Exit codes"] = [(str(code), text) for code, text in EXIT_CODES.items()]
        ends = (("", f"{title}:", *table(rows)) for title, rows in sections.items())
        print_help(itertools.chain(lines, *ends))

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **other: Any) -> Any:  # noqa: ANN401 - as typer has it
        args = without_other_names(self._command_first(args))
        self.words = tuple(args)
        with self._reported():
            return super().make_context(info_name, args, *more, **other)

    def _command_first(self, args: list[str]) -> list[str]:
        """Move options that are typed before the command behind it: only commands have options.

        `help COMMAND` is `COMMAND --help`.
        """
        if args[:1] == ["help"]:
            return [*args[1:], "--help"]
        if not args or not args[0].startswith("-"):
            return args
        before = [*itertools.takewhile(lambda word: word not in self.commands, args)]
        own = {name for parameter in self.params for name in parameter.opts} | _HELP
        has_command = len(before) < len(args)
        if not has_command or not own.isdisjoint(before):
            return args
        command, *more = args[len(before) :]
        return [command, *before, *more]

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as typer has it
        with self._reported():
            # A wrong file must not hide the help, or the settings that are right.
            if not {"schema", "--help", "-h"} & {*self.words}:
                file = read_configuration()
                names = (*self.commands, _EXPORT_NIXPKGS)
                ctx.default_map = {name: file.defaults(name) for name in names}
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - as typer has it
        """Return the command of a call. `export nixpkgs` is one that is not in the help."""
        if args[0] == "export":
            former = _load_command(_EXPORT_NIXPKGS)
            options: list[Any] = [*self.commands["export"].params, *former.params]
            with_value = {
                name
                for option in options
                if option.param_type_name == "option" and not (option.is_flag or option.count)
                for name in option.opts
            }
            words = after_format(args[1:], "nixpkgs", with_value)
            if words is not None:
                return _EXPORT_NIXPKGS, former, words
        return super().resolve_command(ctx, args)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except (_ParserError, CudaRedistError) as error:
            raise self._exit(error) from None
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:  # noqa: BLE001 - as in a command
            # shellingham asks the system for its processes to find the name of the shell.
            if isinstance(error, OSError) and _COMPLETION & {*self.words}:
                unknown = UsageError("the shell is unknown", hint=_COMPLETION_HINT)
                raise self._exit(unknown) from None
            raise typer.Exit(report_bug(Console())) from None

    def _exit(self, error: Any) -> typer.Exit:  # noqa: ANN401 - typer's exception, or ours
        """Report an error, and return the exit."""
        command = next((word for word in self.words if word in self.commands), None)
        if not isinstance(error, CudaRedistError):
            if hasattr(error, "possibilities"):  # only the exception for an unknown option has it
                similar = similar_options(error.option_name, error.possibilities or ())
                error.possibilities = [*similar]
            hint = self._hint(error, command)
            error.message = _original_message(error)
            message = " ".join(error.format_message().split())
            if not message:
                # Without arguments, the help is printed instead, without the last line break.
                Console().lines([""])
                return typer.Exit(EXIT_USAGE)
            error = UsageError(message, hint=hint)
        Console().failure(error)
        if "--json" in self.words:
            report_error(command or "cudaredist", error)
        return typer.Exit(error.exit_code)

    def _hint(self, error: Any, command: str | None) -> str:  # noqa: ANN401 - typer's exception
        """Return the hint for a wrong command line, from the fields of typer's exception."""
        wrong: str | None = None
        known: Sequence[str] = ()
        if command is None:
            wrong, known = next(iter(self.words), None), list(self.commands)
            if wrong in _SYNONYMS:
                more = map(quoted, self.words[1:])
                return f"run `{' '.join(['cudaredist', _SYNONYMS[wrong], *more])}`"
        elif hasattr(error, "possibilities"):
            wrong, known = error.option_name, error.possibilities
            owners = self._owners(error.option_name, command)
            if len(owners) == 1:
                return f"this is an option of {owners[0]}: run `cudaredist {owners[0]} --help`"
            if owners:
                return f"run `{self._without(error.option_name, owners[0])}`"
        elif isinstance(error, typer.BadParameter):
            known = _choices(error)
            wrong = _wrong_choice(error, known, self.words[self.words.index(command) + 1 :])
        return f"run `{self._corrected(wrong, known, command)}`"

    def _owners(self, option: str, command: str) -> list[str]:
        """Return the other commands that have an unknown option.

        If the command has the option in the singular or plural, that is more likely.
        """
        own = {name for each in self.commands[command].params for name in each.opts}
        if any(option.rstrip("s") == name.rstrip("s") for name in own):
            return []
        return [
            name
            for name, other in self.commands.items()
            if any(option in {*each.opts, *each.secondary_opts} for each in other.params)
        ]

    def _without(self, option: str, owner: str) -> str:
        """Return the call without an option that only other commands have, and its value."""
        parameters: list[Any] = self.commands[owner].params
        named = next(each for each in parameters if option in (*each.opts, *each.secondary_opts))
        has_value = not (named.is_flag or named.count)
        words = list(self.words)
        position = next(i for i, word in enumerate(words) if word.partition("=")[0] == option)
        is_alone = "=" not in words[position]
        del words[position : position + (2 if has_value and is_alone else 1)]
        return " ".join(["cudaredist", *map(quoted, words)])

    def _corrected(self, wrong: str | None, known: Sequence[str], command: str | None) -> str:
        """Return the call with the most similar command, option or value, else the help."""
        similar: Sequence[str] = ()
        if wrong is not None and wrong in self.words:
            similar = similar_names(wrong, known)
        if not similar:
            return " ".join(["cudaredist", *([command] if command else []), "--help"])
        words = (similar[0] if word == wrong else word for word in self.words)
        return " ".join(["cudaredist", *map(quoted, words)])


def _original_message(error: Any) -> str:  # noqa: ANN401 - typer's exception
    """Return the message of an exception, without the words that pydantic adds.

    typer repeats pydantic's message, which has the original exception in its fields.
    """
    problems = error.__cause__.errors() if hasattr(error.__cause__, "errors") else [{}]
    return str(problems[0].get("ctx", {}).get("error", error.message))


def _choices(error: typer.BadParameter) -> Sequence[str]:
    """Return the choices of the parameter with a wrong value, if it has some."""
    parameter: Any = error.param
    completions = parameter.shell_complete(error.ctx, "")
    return [completion.value for completion in completions if completion.type == "plain"]


def _wrong_choice(
    error: typer.BadParameter, choices: Sequence[str], words: Sequence[str]
) -> str | None:
    """Return the value of a parameter that is not one of its choices.

    `words` are those of the call after the command. None: the parameter has no choices or no value.
    """
    context, parameter = cast("Any", error.ctx), cast("Any", error.param)
    typed, *_ = context.command.make_parser(context).parse_args([*words])
    value, _ = parameter.consume_value(context, typed)
    values = value if isinstance(value, list | tuple) else [value]
    return next((value for value in values if choices and value not in {None, *choices}), None)


_SETTINGS: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": sorted(_HELP)},
}
app = typer.Typer(name="cudaredist", cls=_Program, no_args_is_help=True, **_SETTINGS)


class _Commands(Mapping[str, Any]):
    """All commands of typer by name. A command is imported when it is first used."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - typer's command
        if name not in self._loaded:
            if name not in _PANEL_OF:
                raise KeyError(name)
            self._loaded[name] = _load_command(name)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in _PANEL_OF

    def __iter__(self) -> Iterator[str]:
        return iter(_PANEL_OF)

    def __len__(self) -> int:
        return len(_PANEL_OF)


def _load_command(name: str) -> Any:  # noqa: ANN401 - typer's command
    """Import a command, and return it for typer."""
    module = import_module(f"cudaredist.commands.{_MODULES.get(name, f'{name}.command')}")
    function = vars(module)[name.split(maxsplit=1)[0].replace("-", "_")]
    details: dict[str, Any] = {}
    if name in _PANEL_OF:
        panel, epilog = _PANEL_OF[name], _epilog(name, function)
        details = {"cls": HelpfulCommand, "rich_help_panel": panel, "epilog": epilog}
    alone = typer.Typer(add_completion=False, **_SETTINGS)
    alone.command(name, **details)(function)
    return typer.main.get_command(alone)


def _print_version(is_set: bool) -> None:
    if is_set:
        typer.echo(f"cudaredist {__version__}")
        raise typer.Exit(EXIT_OK)


_version_option = typer.Option(
    "--version", "-V", help="Print the version.", metavar="", callback=_print_version, is_eager=True
)


@app.callback()
def _root(version: Annotated[bool, _version_option] = False) -> None:
    """Answer questions about CUDA releases, and build package sets."""


def _summary(text: str | None) -> str:
    return (text or "").partition("\n")[0]


def _epilog(name: str, function: Callable[..., None]) -> str:
    """List the environment variables of a command's options, and the page of the command."""
    options = [option.default for option in inspect.signature(function).parameters.values()]
    names = [option.envvar for option in options if getattr(option, "envvar", None)]
    folder = _pages()
    page = folder / f"{name}.md"
    if not page.exists():
        page = folder / "commands" / f"{name}.md"
    variables = [f"Environment variables: {', '.join(sorted(names))}"] if names else []
    return "\n\n".join([*variables, f"Documentation: `{page}`"])


def _pages() -> Path:
    """Return the folder of the documentation: installed, or of the checkout."""
    installed = Path(__file__).with_name("docs")
    return installed if installed.exists() else Path(__file__).parents[1] / "docs"
