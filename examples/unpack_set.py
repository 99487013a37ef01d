"""Install packages of a package set, with nothing but Python and the set.

`cudaredist build --cuda 13.0 --platform linux-x86_64 --files --output set.json` makes a set.
Downloads, verifies and installs packages and their dependencies. For wheels, --base is the address
of a folder with PROJECT/FILE.
"""

import argparse
import hashlib
import json
import re
import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path


def install(package, outputs, options, folder):
    archive, root = package["archive"], options.root
    url = archive["url"] or f"{options.base.rstrip('/')}/{archive['relative_path']}"
    with urllib.request.urlopen(url) as answer, (folder / "archive").open("wb") as file:
        shutil.copyfileobj(answer, file)
    if hashlib.sha256((folder / "archive").read_bytes()).hexdigest() != archive["sha256"]:
        sys.exit(f"{url} has another hash")
    form = {"tar.xz": "xztar"}.get(archive["format"], "zip")
    shutil.unpack_archive(folder / "archive", folder / "tree", form)
    prefix = archive.get("strip_pattern") or "[^/]+/"
    wanted = {path for output in outputs for path in package["files"].get(output, ())}
    merged = (change for change in package["normalise"] if not change.get("split_only"))
    moves = [(x["from"], x["to"]) for x in merged if x["op"] in ("lift", "rename")]
    for file in sorted((folder / "tree").rglob("*")):
        path = re.sub(f"^{prefix}", "", file.relative_to(folder / "tree").as_posix(), count=1)
        if path in wanted and not file.is_symlink():
            for old, new in moves:
                path = re.sub(f"^{old}/", f"{new}/", path)
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, root / path)
            (root / path).chmod(0o755 if "/bin/" in f"/{path}" else 0o644)
    for link, target in package["links"].items():
        if target in wanted and not (root / link).exists():
            (root / link).symlink_to(Path(target).name)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("set", type=Path)
parser.add_argument("root", type=Path)
parser.add_argument("packages", nargs="+")
parser.add_argument("--base", default="")
parser.add_argument("--outputs", default="lib", help="such as lib,include,bin; default: lib")
options = parser.parse_args()
packages = json.loads(options.set.read_text())["packages"]
for name in options.packages:
    if packages[name]["status"] != "available":
        sys.exit(f"{name}: {packages[name]['reasons']}")
    required = [x["attr"] for x in packages[name]["depends"] if not x.get("is_optional")]
    options.packages += [attr for attr in required if attr not in options.packages]
    with tempfile.TemporaryDirectory() as folder:
        install(packages[name], options.outputs.split(","), options, Path(folder))
