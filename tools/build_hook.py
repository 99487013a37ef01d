"""The step of a wheel's build that adds the packed index of the shipped data."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PackedIndexHook(BuildHookInterface[Any]):
    """Adds `cudaredist/store/packed_index.zst` to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the packed index. An editable installation has none, because its data changes."""
        if version == "editable":
            return
        # Two builds can run in one checkout at the same time.
        self._folder = tempfile.mkdtemp(prefix="cudaredist-")
        path = Path(self._folder, "packed_index.zst")
        command = [sys.executable, "-m", "tools.pack_index", str(path)]
        # pipx sets PYTHONSAFEPATH, so that the current folder is not searched.
        search = os.pathsep.join(filter(None, [self.root, os.environ.get("PYTHONPATH")]))
        variables = os.environ | {"PYTHONPATH": search}
        subprocess.run(command, cwd=self.root, env=variables, check=True)
        build_data["force_include"][str(path)] = "cudaredist/store/packed_index.zst"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the written file."""
        del build_data, artifact_path
        if version != "editable":
            shutil.rmtree(self._folder)
