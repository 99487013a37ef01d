"""The data folder that download-manifests writes."""

import json
from pathlib import Path
from typing import Any

from typer.testing import Result

FOLDER = "/compute/cuda/redist/"
LATEST = f"{FOLDER}redistrib_12.9.1.json"


def held(label: str = "12.9.1", redist: str = "cuda") -> Path:
    return Path(f"data/manifests/{redist}/redistrib_{label}.json")


def lock() -> Any:
    return json.loads(Path("data/manifests/lock.json").read_bytes())["redists"]


def files() -> set[str]:
    return {path.as_posix() for path in Path().rglob("*") if path.is_file()}


def report(result: Result) -> Any:
    return json.loads(result.stdout)
