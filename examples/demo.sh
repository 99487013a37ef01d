#!/bin/sh
# The main job on a small source, without network: fetch, see what is stale, bring it up to date.
set -eu
tool="${BIN:-.venv/bin}/cudaredist"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUDAREDIST_DATA_DIR="$work/data" CUDAREDIST_CACHE_DIR="$work/cache"
export CUDAREDIST_BASE_URL="examples/source"

say() { printf '\n$ cudaredist %s\n' "$*"; }
# Exit 1 means findings, which is what the demo is about; anything above is a failure.
run() { say "$@"; code=0; "$tool" "$@" || code=$?; echo "(exit $code)"; [ "$code" -le 1 ]; }

echo "A data folder with last year's releases:"
run download-manifests --redist cuda --max-version 12.9.0
run download-manifests --redist cudnn --version 8.9.5
echo
echo "What CI would say of it:"
run check
echo
echo "Brought up to date:"
run download-manifests --version all
run check --redist cuda --redist cudnn
