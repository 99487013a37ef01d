"""The templates of the site, compiled once in a process."""

from functools import partial

from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket


class _Memory(BytecodeCache):
    """Compiled templates by their key."""

    def __init__(self) -> None:
        self._code: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._code:
            bucket.bytecode_from_string(self._code[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key] = bucket.bytecode_to_string()


CompiledEnvironment = partial(Environment, bytecode_cache=_Memory())
"""Compiling the templates takes half of the time of a small site."""
