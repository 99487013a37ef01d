"""Optional programs. A test that needs a missing one is skipped with the reason."""

import os
import shutil

import pytest


def find_program(*names: str) -> str | None:
    """Return the path of the first program that exists and may be executed."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None)


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [name for name in programs if find_program(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")
