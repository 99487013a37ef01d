"""Reader of single fields of a manifest."""

import re
from typing import TypeAlias

from cudaredist.errors import Problem
from cudaredist.jsontext import join_path, kind_of
from cudaredist.primitives import (
    Version,
    differs_little,
    is_pool_path,
    is_safe_relative_path,
    path_problem,
)
from cudaredist.words import shown

JsonObject: TypeAlias = dict[str, object]

SHA256_DIGITS = 64
MD5_DIGITS = 32
SIZE_DIGITS = 18
HEX_DIGITS = b"0123456789abcdef"

_is_size = re.compile(rf"[1-9][0-9]{{0,{SIZE_DIGITS - 1}}}").fullmatch
_is_variant_number = re.compile(r"[0-9][0-9.]{0,7}").fullmatch

TEXT_LIMIT = 4096
_SIZE_LIMIT = 10**SIZE_DIGITS

POOL_WARNING = "is in NVIDIA's pool, outside the manifest's folder"
"""The warning for an archive of a release on NVIDIA's second server."""


class FieldReader:
    """Reader of fields that collects problems, warnings and unknown keys."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.unknown: list[tuple[str, object]] = []
        # A cache: half of the packages of a CUDA manifest share their version with another one.
        self.versions: dict[str, Version] = {}

    def problem(self, path: str, message: str) -> None:
        """Record an error. The manifest will be refused."""
        self.problems.append(Problem(path, message))

    def warn(self, path: str, message: str) -> None:
        """Record a warning."""
        self.warnings.append(Problem(path, message))

    def keep(self, path: str, value: object) -> None:
        """Keep an unknown key and its value, with a warning."""
        self.unknown.append((path, value))
        self.warn(path, "unknown key, kept")

    def keep_key(self, path: str, key: str, value: object, missing: frozenset[str]) -> None:
        """Keep an unknown key, or record an error if it resembles a missing key."""
        similar = next((name for name in sorted(missing) if differs_little(key, name)), None)
        if similar is None:
            self.keep(join_path(path, key), value)
        else:
            self.problem(join_path(path, key), f"unknown key, and {similar} is missing")

    def text(self, path: str, key: str, value: object) -> str | None:
        """Return a text, or record a problem and return None."""
        if type(value) is str and 0 < len(value) <= TEXT_LIMIT:
            return value
        if type(value) is str:
            message = f"expected 1 to {TEXT_LIMIT} characters, got {len(value)}"
        elif value is None:
            message = "is missing or null"
        else:
            message = f"expected a string, got {kind_of(value)}"
        self.problem(join_path(path, key), message)
        return None

    def version(self, path: str, key: str, value: object) -> Version | None:
        """Return a version, or record a problem and return None."""
        text = self.text(path, key, value)
        if text is None:
            return None
        known = self.versions.get(text)
        if known is not None:
            return known
        if "-" in text:
            self.problem(join_path(path, key), f"expected numbers with dots, got {shown(text)}")
            return None
        try:
            return self.versions.setdefault(text, Version.parse(text))
        except ValueError as error:
            self.problem(join_path(path, key), f"{error}, got {shown(text)}")
            return None

    def path(self, path: str, key: str, value: object) -> str | None:
        """Return a safe relative path, or record a problem and return None."""
        text = self.text(path, key, value)
        if text is None or is_safe_relative_path(text):
            return text
        if is_pool_path(text):
            warning = POOL_WARNING
            self.warn(join_path(path, key), warning)
            return text
        self.problem(join_path(path, key), f"{shown(text)} {path_problem(text)}")
        return None

    def hash(self, path: str, key: str, value: object, digits: int) -> str | None:
        """Return lower-case hex digits, or record a problem and return None."""
        text = self.text(path, key, value)
        if text is None:
            return None
        if len(text) != digits:
            message = f"expected {digits} hex digits, got {len(text)}"
        elif text.encode().translate(None, HEX_DIGITS):
            message = f"expected {digits} lower-case hex digits, got {shown(text)}"
        else:
            return text
        self.problem(join_path(path, key), message)
        return None

    def size(self, path: str, value: object) -> int | None:
        """Return a number of bytes, or record a problem and return None."""
        if type(value) is int and 0 < value < _SIZE_LIMIT:
            return value
        if type(value) is str and _is_size(value):
            return int(value)
        actual = str(value) if type(value) is int else _shown_or_kind(value)
        self.problem(path, f"expected a positive number of bytes, got {actual}")
        return None

    def declared_variants(self, path: str, key: str, value: object) -> list[str]:
        """Return the declared variants with their prefix.

        For example, `cuda_variant: ["12"]` declares the variant `cuda12`.
        """
        if not isinstance(value, list) or not value:
            self.problem(path, "expected a list of at least one variant")
            return []
        prefix = key.removesuffix("_variant")
        names = []
        for index, item in enumerate(value):
            if isinstance(item, str) and _is_variant_number(item):
                names.append(f"{prefix}{item}")
            else:
                message = f"expected a number in quotes, got {_shown_or_kind(item)}"
                self.problem(f"{path}[{index}]", message)
        return names


def _shown_or_kind(value: object) -> str:
    return shown(value) if isinstance(value, str) else kind_of(value)
