"""Write the lists of distributable files to the policy of licenses.

Call: python -m tools.distribution_lists FOLDER

The folder has license texts of NVIDIA's wheels. Each text is identified by its SHA-256, so that
policy has the list of exactly this text. Texts that policy does not know are ignored.
"""

import hashlib
import json
import sys
from pathlib import Path

from cudaredist.features.distribution_list import read_distribution_list

POLICY = Path(__file__).parents[1] / "data/policy/licenses.json"


def main(folder: Path) -> None:
    """Add the list of each text in a folder to the policy."""
    document = json.loads(POLICY.read_text("utf-8"))
    entries = {sha256: entry for entry in document["texts"].values() for sha256 in entry["files"]}
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        data = path.read_bytes()
        entry = entries.get(hashlib.sha256(data).hexdigest())
        if entry is None:
            continue
        listed = read_distribution_list(data.decode("utf-8", "replace").replace("\r\n", "\n"))
        entry["has_list"] = listed is not None
        if listed:
            entry["listed"] = [one.model_dump(mode="json") for one in listed]
    text = json.dumps(document, ensure_ascii=False, indent=2)
    POLICY.write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
