#!/bin/sh
# The main job on the shipped data, without network: package sets of every release and platform,
# what is in one of them, and its export for Nix.
set -eu
tool="${BIN:-.venv/bin}/cudaredist"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUDAREDIST_CACHE_DIR="$work/cache"

run() {
    printf '\n$ cudaredist %s\n' "$*"
    "$tool" "$@"
}

echo "Package sets of every CUDA release and platform whose data is shipped:"
run build --channel wheels --output "$work/build"
run validate --quiet "$work"/build/*/*.json | tail -n 1
echo
echo "What one of them holds, and what it lacks and why:"
run explain set "$work/build/linux-x86_64/cuda-13.0.3.json"
echo
echo "For Nix, one expression that reads the same document:"
run export nix "$work/build/linux-x86_64/cuda-13.0.3.json" --output "$work/nix"
ls "$work/nix"
