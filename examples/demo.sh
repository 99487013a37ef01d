#!/bin/sh
# Build package sets of every release and platform from the shipped data, without network. Show the
# contents of one set, and export it for Nix.
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

echo "Build package sets of every CUDA release and platform in the shipped data:"
run build --cuda all
echo
echo "Validate a package set, except for checks that require the files of every archive:"
run validate --quiet build/linux-x86_64/cuda-13.0.3.json
echo
echo "Show the contents of the set, and its missing packages with the reasons:"
run explain set build/linux-x86_64/cuda-13.0.3.json
echo
echo "Export the set for Nix, with the URL of your mirror of the wheels:"
run export nix build/linux-x86_64/cuda-13.0.3.json --output nix \
    --wheel-base https://wheels.example.org
