"""Compute capabilities: `9.0`, `9.0a`, `10.3f`."""

import re
from typing import Literal, NamedTuple, Self, TypeAlias

Variant: TypeAlias = Literal["a", "f"]

_VARIANTS: tuple[Variant, ...] = ("a", "f")
_target = re.compile(r"(?:(?:sm|compute)_?)?([1-9][0-9]{1,3})([af]?)").fullmatch
_parts = re.compile(r"([1-9][0-9]{0,2})\.([0-9])([af]?)").fullmatch


class Capability(NamedTuple):
    """A capability, ordered by numbers, then plain, `a`, `f`."""

    major: int
    minor: int
    suffix: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a capability such as `10.3f`.

        Raises `ValueError` for any other text.
        """
        match = _parts(text)
        if match is None:
            raise ValueError("expected a compute capability such as 9.0, 9.0a or 10.3f")
        return cls(int(match[1]), int(match[2]), match[3])

    @classmethod
    def of_target(cls, digits: str, suffix: str) -> Self:
        """Parse the parts of a target such as `compute_103f`."""
        return cls(int(digits[:-1]), int(digits[-1]), suffix)

    @classmethod
    def name_of(cls, text: str) -> str:
        """Return `8.9` for `sm_89`, `sm89`, `compute_89` and `89`. Return other text unchanged."""
        target = _target(text)
        return str(cls.of_target(target[1], target[2])) if target else text

    @property
    def base(self) -> Self:
        """The capability without its letter."""
        return self._replace(suffix="") if self.suffix else self

    @property
    def variant(self) -> Variant | None:
        """`a` for one architecture only, `f` for a family, or None."""
        for variant in _VARIANTS:
            if variant == self.suffix:
                return variant
        return None

    def ptx_runs_on(self, gpu: Self, *, is_family: bool) -> bool:
        """Check if a GPU runs PTX of this target. `is_family` is whether it is of the same family.

        All later GPUs run plain PTX, only the same one that of `a`, and its family that of `f`.
        """
        if gpu < self.base:
            return False
        if gpu == self.base or not self.suffix:
            return True
        return self.suffix == "f" and is_family

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}{self.suffix}"
