#!/bin/sh
# Create a package set of a CUDA release from real archives, in an empty folder, by default a temporary
# one. Without a package index, use the data shipped with the tool.
set -eu
bin="${BIN:-.venv/bin}"
case "$bin" in /*) ;; *) bin="$PWD/$bin" ;; esac
if [ $# -gt 0 ]; then
    rm -rf "$1"
    mkdir -p "$1"
    cd "$1"
else
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    cd "$folder"
fi
export CUDAREDIST_CACHE_DIR="$PWD/cache"
wheels="--channel wheels"
archives="--platform linux-x86_64 --package cuda_nvcc --package cuda_crt --package cuda_cudart
    --package libnvjitlink --package libnvjpeg"
set_path=build/linux-x86_64/cuda-13.0.3.json

step() { printf '\n# %s\n' "$*"; }
run() {
    printf '$ cudaredist %s\n' "$*"
    "$bin/cudaredist" "$@"
}

build() {
    run build --cuda 13.0.3 --platform linux-x86_64 "$@" >log 2>error || return
    grep -v warning: log # the texts of this demo explain the warnings
}

inspect() {
    step "Inspect the compiler and three libraries of CUDA: files, dependencies and device code"
    # shellcheck disable=SC2086 # lists of options
    run process-manifests $wheels --redist cuda $archives || return
    step "Update the tables of host compilers and GPUs from these archives, and of the symbols of cuDSS"
    # shellcheck disable=SC2086
    run update-nvcc-compat $wheels && run update-gpus $wheels &&
        run update-symbols $wheels --redist cudss || return
    step "Build the package set. Packages that were not inspected are in it without outputs"
    # shellcheck disable=SC2086
    build $wheels --allow-missing-features --no-shipped-data
}

echo "This downloads 154 MB from your package index to $PWD, and takes about a minute."
step "Download the manifests of a CUDA release and of a release of cuDSS"
# shellcheck disable=SC2086
if run download-manifests $wheels --redist cuda --redist cudss --version 13.0.3 --version 0.4.0 \
    --retries 0 2>error && inspect; then
    from=archives
else
    from="shipped data"
    sed -n 's/^error: //p' error
    echo "The package index does not answer. This continues with the data shipped with cudaredist."
    rm -rf data
    step "Build the package set"
    build || { cat error; exit 1; }
fi
rm -f error log
step "Show the package set"
run explain set $set_path | head -n 10
echo ...
step "Export it for Nix, with the address of your mirror of the wheels"
run export nix $set_path --output nix --wheel-base https://wheels.example.org

"$bin/python" - "$from" <<'END'
import json, pathlib, sys

def load(pattern):
    return [json.loads(path.read_bytes()) for path in pathlib.Path().glob(pattern)]

archives = [
    archive
    for features in load("data/features/wheels/*/*.json")
    for package in features["packages"].values()
    for archive in package["archives"]
    if archive["status"] == "examined"
]
libraries = sum(len(archive["libraries"]) for archive in archives)
symbols = sum(len(e["names"].split()) for table in load("data/symbols/*.json") for e in table["exports"])
code = {
    gpu
    for archive in archives
    for part in archive["device_code"].values()
    for gpu in part["declared"]["sass"] + part["embedded"]["sass"]
}
gpus = sum(len(table["capabilities"]) for table in load("data/gpus.json"))
folders = ("data", "build", "nix")
written = [p for name in folders for p in pathlib.Path(name).rglob("*") if p.is_file()]
print(f"\n# Summary of {pathlib.Path.cwd()}, from the {sys.argv[1]}")
if archives:
    print(f"read:    {len(archives)} archives of CUDA and 2 of cuDSS, 154 MB")
    print(f"found:   {libraries} libraries, {symbols:,} symbols of cuDSS, code for {len(code)} GPUs, {gpus} GPU capabilities")
print(f"written: {len(written)} files in {', '.join(name for name in folders if pathlib.Path(name).exists())}")
END
