"""The GPUs of this machine, as the driver's own program reports them."""

import shutil
import subprocess

from cudaredist.errors import UsageError
from cudaredist.hints import again

HOST = "host"
"""The name of this machine's GPUs in --require-gpu."""

_SECONDS = 60


def machine_gpus() -> list[str]:
    """Return the capabilities of the GPUs of this machine, without duplicates.

    Raises `UsageError` if there is no driver or GPU.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        raise _refused("there is no nvidia-smi of a driver in PATH")
    options = ["--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        process = subprocess.run(  # noqa: S603 - the driver's own program, and only with --require-gpu host
            [program, *options],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _refused(f"{program} failed: {error}") from error
    lines = process.stdout.decode(errors="replace").split("\n")
    names = list(dict.fromkeys(filter(None, map(str.strip, lines))))
    if process.returncode or not names or not all(map(_is_capability, names)):
        raise _refused(f"{program} reports no GPU")
    return names


def _is_capability(name: str) -> bool:
    return name.isascii() and name.replace(".", "", 1).isdecimal()


def _refused(reason: str) -> UsageError:
    hint = f"name the GPU: run `{again(require_gpu='9.0')}`"
    return UsageError(
        f"--require-gpu {HOST} cannot find the GPUs of this machine: {reason}", hint=hint
    )
