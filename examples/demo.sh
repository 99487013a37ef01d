#!/bin/sh
# The main job on the shipped data, without network: package sets of every release and platform,
# what is in one of them, and its export for Nix.
set -eu
here=$(pwd)
bin="${BIN:-.venv/bin}"
case "$bin" in /*) ;; *) bin="$here/$bin" ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUDAREDIST_CACHE_DIR="$work/cache" CUDAREDIST_DATA_DIR="$here/data"
cd "$work"

run() {
    printf '\n$ cudaredist %s\n' "$*"
    "$bin/cudaredist" "$@"
}

echo "Package sets of every CUDA release and platform whose data is shipped:"
run build --cuda all
echo
echo "Are they what they should be? (What needs every file of an archive is not asked here.)"
run validate --quiet build/linux-x86_64/cuda-13.0.3.json
echo
echo "What one of them holds, and what it lacks and why:"
run explain set build/linux-x86_64/cuda-13.0.3.json
echo
echo "For Nix, one expression that reads the same document; wheels lie at an address of yours:"
run export nix build/linux-x86_64/cuda-13.0.3.json --output nix \
    --wheel-base https://wheels.example.org
