#!/bin/sh
# Build the sdist and the wheel in dist/, and check them: metadata, size, and the commands build and which
# in an empty folder, after an installation with pip, pipx and uv. Needs a package index.
set -eu
bin="$(pwd)/${BIN:-.venv/bin}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIPX_HOME="$work/pipx" PIPX_BIN_DIR="$work/scripts" CUDAREDIST_CACHE_DIR="$work/cache"

rm -rf dist
"$bin/python" -m build --outdir dist . >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$bin/twine" check --strict dist/*
wheel=$(echo "$(pwd)"/dist/*.whl)
sdist=$(echo "$(pwd)"/dist/*.tar.gz)
size=$(wc -c <"$wheel")
[ "$size" -le 8000000 ] || { echo "the wheel has $size bytes, more than 8 MB"; exit 1; }

try() {
    name=$1
    shift
    mkdir "$work/$name"
    (
        cd "$work/$name"
        "$@" build --cuda 13.0.3 --quiet >/dev/null
        "$@" which libcublas.so.13 --cuda 13.0.3 --quiet >"$work/output"
        grep -q '^cuda  *libcublas ' "$work/output" || { cat "$work/output"; exit 1; }
        echo "$name: $("$@" --version)"
    )
}

for file in "$wheel" "$sdist"; do
    env="$work/env-${file##*.}"
    "$bin/python" -m venv "$env"
    "$env/bin/python" -m pip install --quiet --disable-pip-version-check "$file"
    try "pip-${file##*.}" "$env/bin/cudaredist"
done
try pipx "$bin/pipx" run --quiet --spec "$wheel" cudaredist
try uvx "$bin/uvx" --quiet --from "$wheel" cudaredist
