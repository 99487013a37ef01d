"""The session of a command: terminal, sources, cache, lock and exit code."""

import contextlib
import functools
import inspect
import logging
import os
import re
import sys
import traceback
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import typer

from cudaredist.cli.console import Console, configure_logging
from cudaredist.cli.options import (
    ArchiveJobs,
    Data,
    Network,
    Options,
    SettingOrigin,
    parameters_of,
)
from cudaredist.errors import EXIT_BUG, CudaRedistError, UsageError, WriteError, WritingTo
from cudaredist.hints import again, calling, in_shell, redacted
from cudaredist.locks import exit_interrupted
from cudaredist.redists import CUDA, NVIDIA_BASE, REDISTS, Redist, find_redist
from cudaredist.words import shown, without_secrets

if TYPE_CHECKING:
    from cudaredist.formats.error_report import ErrorReport
    from cudaredist.formats.names import Channel
    from cudaredist.formats.outcomes import FeatureOutcome, ManifestOutcome
    from cudaredist.formats.plain_report import PlainAnswer, PlainReport
    from cudaredist.formats.report import Answer, Report
    from cudaredist.progress import Progress
    from cudaredist.sources.chain import SourceChain
    from cudaredist.sources.protocol import Settings
    from cudaredist.store.archive_service import ArchiveService
    from cudaredist.store.cache import Cache
    from cudaredist.store.data_folder import Store
    from cudaredist.store.facts_index import Index
    from cudaredist.store.targets import FeatureTarget
    from cudaredist.tasks import Workers

_log = logging.getLogger(__name__)

_ORIGINS: dict[str, SettingOrigin] = {
    "COMMANDLINE": "command line",
    "ENVIRONMENT": "environment",
    "DEFAULT_MAP": "file",
    "DEFAULT": "default",
}

_Options = TypeVar("_Options", bound=Options)
_Report = TypeVar("_Report", bound="Report | PlainReport")
_Answer = TypeVar("_Answer", bound="Answer | PlainAnswer")

Refusal: TypeAlias = tuple[Callable[[_Options], object], str, str | Sequence[str]]
"""A check for an invalid combination of options, the error's message, and its hint.

The hint is a text or a list of options. For a list, the hint suggests the call without these
options. The message and the hint can contain the names of options in braces. They are replaced by
the options' values. In the hint, `{call}` is replaced by the call.
"""

_is_address = re.compile(r"(?:[a-z0-9]+\+)?(?:https?|ftps?|file|git|s3|ssh):/", re.IGNORECASE).match
_is_secret = re.compile(r"[?#]|//[^/]*@").search
PUBLIC_WHEEL_BASE: Refusal[Any] = (
    lambda o: o.wheel_base is not None and _is_secret(o.wheel_base),
    "--wheel-base cannot contain credentials or a query: package sets and lock files are public",
    ["--wheel-base"],
)
PUBLIC_BASE_URL: Refusal[Any] = (
    lambda o: o.base_url is not None and _is_secret(o.base_url),
    "--base-url cannot contain credentials or a query: exported files are public",
    ["--base-url"],
)
_NOT_WITH_URL = frozenset({"redist", "channel", "base_url", "data_dir"})
URL_WITH_OPTIONS: Refusal[Any] = (
    lambda o: o.url is not None and o.typed & _NOT_WITH_URL,
    "URL and MANIFEST_DIR cannot be combined with --redist, --channel, --base-url or --data-dir",
    ["--redist", "--channel", "--base-url", "--data-dir"],
)


def url_alone(hint: str) -> Refusal[Any]:
    """Refuse a URL without MANIFEST_DIR."""
    return lambda o: o.url is not None and o.manifest_dir is None, "URL requires MANIFEST_DIR", hint


def command(
    kind: type[_Options], refused: Sequence[Refusal[_Options]] = ()
) -> "Callable[[Callable[[_Options, Session], int]], Callable[..., None]]":
    """Return a decorator that turns a function into a command.

    The fields of `kind` become the command's parameters.
    """

    def decorate(function: "Callable[[_Options, Session], int]") -> Callable[..., None]:
        @functools.wraps(function)
        def run(context: typer.Context, **values: Any) -> None:  # noqa: ANN401 - as typer parsed it
            sources = {name: context.get_parameter_source(name) for name in values}
            origins = {(name, _ORIGINS[source.name]) for name, source in sources.items() if source}
            typed = {name for name, origin in origins if origin == "command line"}
            options = kind(**values, typed=frozenset(typed), origins=frozenset(origins))
            addresses = _addresses_as_paths(context, values)
            with calling(*_call_of(context, typed, values)):
                raise typer.Exit(_exit_code(function, options, [*addresses, *refused]))

        keyword = inspect.Parameter.KEYWORD_ONLY
        first = inspect.Parameter("context", keyword, annotation=typer.Context)
        vars(run)["__signature__"] = inspect.Signature([first, *parameters_of(kind)])
        return run

    return decorate


def _addresses_as_paths(
    context: typer.Context, values: Mapping[str, Any]
) -> Iterator[Refusal[Any]]:
    """Yield the refusals of addresses in place of paths, which would become names of folders."""
    for parameter in context.command.params:
        value = values.get(parameter.name or "")
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, Path) and _is_address(str(path)):
                name = parameter.opts[0]
                name = name if name.startswith("-") else name.upper()
                message = f"{name} is a path, not the address {shown(redacted(str(path)))}"
                hint = "use a file or folder"
                yield lambda _: True, message.replace("{", "{{").replace("}", "}}"), hint


def _call_of(
    context: typer.Context, typed: Collection[str], values: Mapping[str, Any]
) -> tuple[str, dict[str, tuple[str, ...]], Mapping[str, set[str]]]:
    """Return the command, its typed words, and the options of every command."""
    command, program = context.command, context.find_root().command
    # Older versions of typer also count a missing argument as typed.
    named: list[Any] = [
        parameter
        for parameter in command.params
        if parameter.name in typed and values[parameter.name] is not None
    ]
    words: dict[str, tuple[str, ...]] = {}
    for parameter in sorted(named, key=lambda parameter: parameter.param_type_name):
        value: Any = values[parameter.name]
        items = value if isinstance(value, list) else [value]
        name = parameter.opts[0]
        if parameter.param_type_name == "argument":
            words[parameter.name] = tuple(map(str, items))
        elif parameter.is_flag:
            spelling = (parameter.opts if value else parameter.secondary_opts)[0]
            words[spelling] = (spelling,)
        elif parameter.nargs > 1:
            words[name] = (name, *map(str, value))
        elif parameter.count:
            words[name] = (name,) * value
        else:
            repeated: list[str] = []
            for item in items:
                repeated += [name, str(item)]
            words[name] = tuple(repeated)
    # The former name of a command is not among the program's.
    commands = ChainMap({command.name or "": command}, vars(program)["commands"])
    return command.name or "", words, _CommandOptions(commands)


class _CommandOptions(Mapping[str, set[str]]):
    """The options of each command. Hints need those of a few, and a command is slow to import."""

    def __init__(self, commands: Mapping[str, Any]) -> None:
        self._commands = commands

    def __getitem__(self, name: str) -> set[str]:
        parameters = self._commands[name].params
        return {option for one in parameters for option in (*one.opts, *one.secondary_opts)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)


def refuse(options: _Options, refused: Iterable[Refusal[_Options]]) -> None:
    """Raise `UsageError` for the first refused combination of options."""
    for is_refused, message, hint in refused:
        if is_refused(options):
            values = vars(options)
            text = message.format_map(values)
            if not isinstance(hint, str):
                raise UsageError(text, hint=f"run `{again(without=hint)}`")
            quoted = {
                name: name.rpartition("_")[2].upper() if value is None else in_shell(value)
                for name, value in values.items()
            }
            quoted["call"] = again()
            raise UsageError(text, hint=hint.format_map(quoted))


def _exit_code(
    function: "Callable[[_Options, Session], int]",
    options: _Options,
    refused: Sequence[Refusal[_Options]],
) -> int:
    """Run a command, print its errors, and return the exit code."""
    session = Session(options)
    try:
        with session:
            refuse(options, refused)
            return function(options, session)
    except CudaRedistError as error:
        session.console.failure(error)
        if options.json:
            report_error(function.__name__.replace("_", "-"), error)
        return error.exit_code
    except KeyboardInterrupt as interrupt:
        message = "interrupted; completed results are kept"
        session.console.error(message, hint=f"to resume, run `{again()}`")
        exit_interrupted(interrupt)
    except Exception:  # noqa: BLE001 - every other exception is a bug, which has its own exit code
        return report_bug(session.console)


def report_bug(console: Console) -> int:
    """Print the current exception, and return its exit code."""
    sys.stderr.write(without_secrets(traceback.format_exc()))
    hint = "report this bug with the traceback above"
    console.error("internal error in cudaredist", hint=hint)
    return EXIT_BUG


class Session(contextlib.ExitStack):
    """The terminal and the open resources of one command."""

    settings: "Settings"
    """The settings of all sources, set by `connect`."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        levels = ("WARNING", "INFO", "DEBUG")
        level = "ERROR" if options.quiet else levels[min(options.verbose, 2)]
        configure_logging(vars(options).get("log_level") or level)
        self.console = Console(options.color, quiet=options.quiet)
        self._options = options

    # -- input of a command

    def read_store(
        self,
        data: Data,
        base_url: list[str] | None = None,
        *,
        is_layered: bool = True,
        is_channel_used: bool = True,
        reads_features: bool = False,
        with_unexamined: bool = False,
        redists: Collection[str] = (CUDA,),
    ) -> "Store":
        """Return the data to read, `with_unexamined` with all shipped releases.

        The channel is the selected one, or redist if there is a base URL. Otherwise, it is that of
        the data folder's manifests of `redists`, with `reads_features` only of those with feature
        files, else that of the shipped data. A note names the channel and the folders if
        `is_channel_used`.
        """
        from cudaredist.store.locate import describe_data, store_to_read

        named = data.channel or ("redist" if base_url else None)
        store = store_to_read(
            data.data_dir,
            named,
            use_shipped=data.shipped_data,
            is_layered=is_layered,
            reads_features=reads_features,
            with_unexamined=with_unexamined,
            redists=redists,
        )
        if is_channel_used:
            self.console.note(describe_data(store, named))
        return store

    def open_index(self, data: Data, cache_dir: Path | None) -> "Index":
        """Return the index for a question about facts.

        It has the releases of the selected channel, else NVIDIA's archives and wheels. A note names
        them and the folders.
        """
        from cudaredist.store.facts_index import Index
        from cudaredist.store.locate import channels_to_read, describe_all, store_to_read

        store = store_to_read(
            data.data_dir, data.channel, use_shipped=data.shipped_data, with_unexamined=True
        )
        channels = channels_to_read(store, data.channel)
        self.console.note(describe_all(store.of_channel(channels[0]), channels))
        cache = open_cache(cache_dir)
        return Index(store.of_channel(channels[0]), cache, self.progress("indexing"), channels)

    def lock(self, root: Path) -> Callable[[], None]:
        """Lock a folder, and return a function to call before the first write."""
        from cudaredist.locks import writing

        return self.enter_context(writing(root))

    def share_files(self, *, with_group: bool = False) -> None:
        """Let all users read the files and folders of this command.

        With `with_group`, the group can write to them if the umask permits it.
        """
        umask = os.umask(0o022)
        self.callback(os.umask, umask)
        if with_group:
            os.umask(umask & 0o022)

    def connect(
        self, network: Network, channel: "Channel", *, takes_wheel_mirror: bool = False
    ) -> tuple[str, ...]:
        """Return the addresses of manifests and archives: those given, else the channel's."""
        from cudaredist.sources.protocol import WHEELS, Settings

        self.settings = Settings(
            timeout=network.timeout,
            retries=network.retries,
            allow_http=network.allow_http,
            offline=network.offline,
        )
        if channel == "redist":
            return tuple(network.base_url or [NVIDIA_BASE])
        if "nvidia_channel" in self._options.typed:
            hint = f"run `{again(without=['--nvidia-channel'])}`"
            message = "--nvidia-channel cannot be combined with --channel wheels"
            raise UsageError(message, hint=hint)
        if takes_wheel_mirror and network.base_url:
            return tuple(network.base_url)
        if "base_url" in self._options.typed:
            hint = "to select an index of wheels, run `pip config set global.index-url URL`"
            raise UsageError("--base-url cannot be combined with --channel wheels", hint=hint)
        return (WHEELS,)

    def sources(self, bases: Iterable[str], store: "Store | None" = None) -> "SourceChain":
        """Open the sources at these addresses, in order.

        To read manifests of the wheels channel, the store with the policy is necessary.
        """
        from cudaredist.sources.chain import open_sources
        from cudaredist.store.upstream import read_wheel_policy

        policy = read_wheel_policy(store) if store and store.channel == "wheels" else None
        return self.enter_context(contextlib.closing(open_sources(bases, self.settings, policy)))

    def archive_service(
        self,
        targets: "Iterable[FeatureTarget]",
        *,
        cache: "Cache",
        jobs: ArchiveJobs,
        keep_archives: bool = False,
    ) -> "ArchiveService":
        """Open the sources of archives and return a service to read them."""
        from cudaredist.store.archive_service import ArchiveService

        return ArchiveService(
            chains={bases: self.sources(bases) for bases in {target.bases for target in targets}},
            cache=cache,
            stop=self.settings.stop,
            jobs=jobs.count,
            max_archive=jobs.max_size,
            progress=self.progress("archives"),
            keep_archives=keep_archives,
        )

    def progress(self, title: str) -> "Progress":
        """Show progress until the session is closed."""
        return self.enter_context(self.console.progress(title))

    def workers(self, title: str, jobs: int = 16) -> "Workers":
        """Return the threads of a run, with its progress."""
        from cudaredist.tasks import Workers

        return Workers(jobs, self.settings.stop, self.progress(title))

    # -- output of a command

    def finish(
        self,
        report: _Report,
        text: Callable[[_Report], Iterable[str]] | None,
        *,
        warnings: Iterable[str] = (),
        errors: "Iterable[tuple[str, ErrorReport]]" = (),
    ) -> int:
        """Close the session, print a report, and return its exit code."""
        self.close()
        for warning in warnings:
            self.console.warning(warning)
        self.show(report, text)
        self.errors(errors)
        return report.exit_code

    def suggest(self, commands: Iterable[str]) -> None:
        """Print the commands to type next, for people at a terminal."""
        if self.console.is_interactive:
            for line in commands:
                self.console.note(f"next: {line}")

    def show(self, report: _Answer, text: Callable[[_Answer], Iterable[str]] | None) -> None:
        """Print a report as text or JSON.

        JSON is used if --json is set or `text` is None. Only text for people is fitted to a
        terminal: Markdown, for example, is copied to other places.
        """
        from cudaredist.cli.text import report_json

        if text is None or self._options.json:
            self.console.result(report_json(report))
        elif vars(self._options).get("format", "text") in {"text", "table"}:
            self.console.report(text(report), pages=self._options.pager)
        else:
            self.console.lines(text(report))

    def show_on_github(
        self, annotations: Iterable[str], summary: Iterable[str], outputs: Iterable[str]
    ) -> None:
        """Print annotations, and append the summary and outputs to GitHub's files.

        The variables GITHUB_STEP_SUMMARY and GITHUB_OUTPUT contain the paths of these files.
        """
        self.console.lines(annotations)
        _append_lines("GITHUB_STEP_SUMMARY", summary)
        _append_lines("GITHUB_OUTPUT", outputs)

    def errors(self, errors: "Iterable[tuple[str, ErrorReport]]") -> None:
        """Print a report's errors with their subjects, details and hints."""
        for subject, error in errors:
            message = f"{subject}: {error.message}" if subject else error.message
            self.console.error(message, hint=error.hint, details=error.changes)


def report_error(command: str, error: CudaRedistError) -> None:
    """Print the JSON document for a command that failed."""
    from cudaredist.cli.text import report_json
    from cudaredist.formats.report import ErrorAnswer

    # The error can be that standard output is closed.
    with contextlib.suppress(WriteError):
        Console().result(report_json(ErrorAnswer.to(command, error)))


def open_cache(cache_dir: Path | None) -> "Cache":
    """Return the cache in a folder, by default the user's."""
    from cudaredist.store.cache import Cache

    return Cache(cache_dir or _user_cache())


def _user_cache() -> Path:
    """Return the user's cache folder.

    For a user without a home folder, it is in the temporary folder.
    """
    import platformdirs

    from cudaredist.store.temporary_folders import user_temporary_folder

    with contextlib.suppress(RuntimeError):
        folder = platformdirs.user_cache_path("cudaredist", appauthor=False)
        if folder.is_absolute():
            return folder
    folder = user_temporary_folder()
    _log.warning("no home folder, so the cache is %s; --cache-dir selects another", folder)
    return folder


def find_redists(
    names: list[str] | None, channel: "Channel" = "redist", own: Collection[str] = ()
) -> list[Redist]:
    """Return the named redistributables, by default the channel's catalogue.

    `own` has the names of the user's own redistributables, which no catalogue lists.
    """
    from cudaredist.wheel_projects import FAMILIES

    has_wheels = (name for name, family in FAMILIES.items() if not family.elsewhere)
    catalogue = REDISTS if channel == "redist" else has_wheels
    return [find_redist(name, own) for name in dict.fromkeys(names or catalogue)]


def warnings_of(outcomes: "Iterable[ManifestOutcome | FeatureOutcome]") -> Iterator[str]:
    """Yield the warnings of manifests, prefixed with name and label."""
    for outcome in outcomes:
        yield from (f"{outcome.subject}: {warning}" for warning in outcome.warnings)


def _append_lines(variable: str, lines: Iterable[str]) -> None:
    """Append lines to the file in an environment variable, if set."""
    path = os.environ.get(variable)
    if path:
        file = Path(path)
        with WritingTo(path), file.open("a", encoding="utf-8", errors="backslashreplace") as output:
            output.writelines(f"{line}\n" for line in lines)
