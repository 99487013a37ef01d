"""Commands to type next, for the hints of errors.

The layers that raise errors do not know the options of the call. This module stores the call of the
process, so that suggested commands contain the same data folder, cache folder and addresses. It is
the only state of the process on which errors depend:

- `calling` sets it for a block. Only `command` of `cli/session.py` uses that, once for a command.
- The functions below read it when an error is made, in every thread. The same error has other hints
  in another call, and hints without options outside of `calling`, as for users of the package.
- Results that are written to files must not depend on it.
"""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from cudaredist.similar_names import (
    bound_of_releases,
    listed_names,
    nearest_name,
    nearest_releases,
    similar_names,
)

_SHARED = (
    "--data-dir",
    "--no-shipped-data",
    "--channel",
    "--cache-dir",
    "--base-url",
    "--allow-http",
)
"""Options that the commands of hints repeat."""


class _Call:
    """The call of the process. The values of the class are those outside of `calling`."""

    command: str = "..."
    words: Mapping[str, tuple[str, ...]] = {}
    """The words of each typed option and argument. An option has its name as first word."""
    options: Mapping[str, Collection[str]] = {}
    """The options of every command."""


_call = _Call()
"""The state that the module's docstring describes."""


@contextmanager
def calling(
    command: str, words: Mapping[str, tuple[str, ...]], options: Mapping[str, Collection[str]]
) -> Iterator[None]:
    """Set the call that hints repeat, for a block.

    `words` has the words of each typed option and argument, `options` the options of every command.
    """
    _call.command, _call.words, _call.options = command, words, options
    try:
        yield
    finally:
        # Another command in this process begins with the values of the class.
        vars(_call).clear()


def command_line(command: str, *flags: str, channel: str = "redist", **options: object) -> str:
    """Return a command to type, with the folders and addresses of the call.

    The default channel is left out, unless the call has one. `command` and `flags` are words of a
    shell, and the values of options are quoted.
    """
    own = _by_name(options)
    if channel != "redist":
        own = {"--channel": channel, **own}
    skipped = {"--base-url", "--allow-http"} if channel == "wheels" else set()
    return _command(command, flags, own, skipped)


def command_for_archives(command: str, **options: object) -> str:
    """Return a command to type for NVIDIA's archives, even if the call has another channel."""
    return _command(command, (), _by_name(options), {"--channel"})


def _command(
    command: str, flags: Sequence[str], own: Mapping[str, str], skipped: Collection[str]
) -> str:
    skipped = {*skipped, *own, *(flag.split()[0] for flag in flags)}
    typed = [name for name in _SHARED if name in _call.words and name not in skipped]
    # To know the options of another command takes time, and most calls have none to repeat.
    allowed = _call.options.get(command.split(maxsplit=1)[0], ()) if typed else ()
    shared = [" ".join(map(quoted, _call.words[name])) for name in typed if name in allowed]
    values = (f"{name} {quoted(value)}" for name, value in own.items())
    return " ".join(["cudaredist", command, *shared, *values, *flags])


def again(*more: str, without: Collection[str] = (), **options: object) -> str:
    """Return the call, without some options, and with more words.

    `options` replace those of the call.
    """
    own = {name: (name, value) for name, value in _by_name(options).items()}
    without = {*without, *own}
    words = {name: words for name, words in _call.words.items() if name not in without}
    return _joined(words | own, *more)


def takes(option: str) -> bool:
    """Check if the call's command has an option."""
    options = _call.options.get(_call.command)
    return options is None or option in options


def typed_argument(name: str, default: str) -> str:
    """Return an argument of the call as words of a shell."""
    return " ".join(map(quoted, _call.words.get(name, (default,))))


def help_line(hint: str | None) -> str | None:
    """Add the command's help to a hint that has no command."""
    if not _call.options:
        return hint
    help_hint = f"run `cudaredist {_call.command} --help` for the options"
    if not hint:
        return help_hint
    return hint if "`" in hint else f"{hint}; {help_hint}"


def retry_line(hint: str) -> str:
    """Add the call to a hint that has no command."""
    return hint if "`" in hint else f"{hint}; to try again, run `{again()}`"


def server_line(hint: str) -> str:
    """Add the call without its base address to a hint."""
    if "--base-url" not in _call.words:
        return hint
    return f"{hint}; for NVIDIA's server, run `{again(without=['--base-url'])}`"


def did_you_mean(name: str, known: Sequence[str], similar: Sequence[str] = ()) -> str:
    """Return the hint for an unknown name: similar names, or the known ones.

    Without `similar`, similar names are searched for in the known ones. The hint has the call with
    the most similar name.
    """
    bound = bound_of_releases(name, known)
    if bound is not None:
        verb, release = bound
        hint = f"the data {verb} with {release}"
        call = corrected(name, [release])
        return f"{hint}: run `{call}`" if call else hint
    if not similar:
        similar = nearest_releases(name, known) or similar_names(name, known)
    if similar:
        hint = f"did you mean {' or '.join(similar)}?"
        call = corrected(name, similar[:1])
        return f"{hint} Run `{call}`" if call else hint
    if not known:
        return "no names are known"
    hint = f"known: {listed_names(known)}"
    call = corrected(name, known)
    return f"{hint}; run `{call}`" if call else hint


def corrected(wrong: str, names: Collection[str]) -> str | None:
    """Return the call with the name that is most similar to a wrong one.

    Returns None if no option has the wrong name (it is from a variable or a file), or if several
    options have it.
    """
    right = nearest_name(wrong, names) or wrong
    part = re.compile(rf"(?<![^=@,:\s]){re.escape(wrong)}(?![^=@,:\s])")
    words = {
        name: tuple(part.sub(lambda _: right, word) for word in words)
        for name, words in _call.words.items()
    }
    changed = [name for name in words if words[name] != _call.words[name]]
    if not changed:
        return _corrected_words(wrong.split(), right)
    return _joined(words) if len(changed) == 1 else None


def _corrected_words(wrong: Sequence[str], right: str) -> str | None:
    """Return the call with a name in place of several words, None if the words were not typed."""
    for name, words in _call.words.items() if len(wrong) > 1 else ():
        for start in range(len(words) - len(wrong) + 1):
            end = start + len(wrong)
            if list(words[start:end]) == list(wrong):
                return _joined({**_call.words, name: (*words[:start], right, *words[end:])})
    return None


def correction_line(hint: str, wrong: str, names: Collection[str]) -> str:
    """Append the corrected call to a hint if the wrong word was typed."""
    call = corrected(wrong, names)
    return f"{hint}; run `{call}`" if call else hint


def redacted(location: str) -> str:
    """Return a perhaps malformed address without user name and password.

    The name of a `NAME=URL` is kept.
    """
    scheme = r"\s*[A-Za-z][A-Za-z0-9+.-]*:/*|\s*(?:[A-Za-z]+)?//|/*(?=.*:)"
    name = r"[a-z0-9_+.-]+=(?=[A-Za-z][A-Za-z0-9+.-]*://)"
    return re.sub(rf"^((?:{name})?(?:{scheme})).*@", r"\1", location, flags=re.DOTALL)


def in_shell(value: object) -> str:
    """Return the words of an option's value for a call in a shell."""
    return shlex.join(map(str, value if isinstance(value, list) else [value]))


def quoted(word: str) -> str:
    """Return a word of a shell, without credentials, in printable characters."""
    word = redacted(word)
    if word.isprintable():
        return shlex.quote(word)
    text = word.encode("unicode_escape").decode().replace("'", r"\'")
    return f"$'{text}'"


def _by_name(options: Mapping[str, object]) -> dict[str, str]:
    return {f"--{name.replace('_', '-')}": str(value) for name, value in options.items()}


def _joined(words: Mapping[str, tuple[str, ...]], *more: str) -> str:
    flat = [quoted(word) for typed in words.values() for word in typed]
    return " ".join(["cudaredist", _call.command, *flat, *more])
