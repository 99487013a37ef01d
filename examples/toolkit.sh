#!/bin/sh
# Install toolkits from the package index, with the shipped data. Compile a program with each one,
# with nvcc and with CMake, and with the static and the shared run-time library.
# Usage: toolkit.sh FOLDER [RELEASE...]. Requires g++, and about 150 MB for each release. The default
# releases are 13.0.2 and the newest one.
set -eu
bin="${BIN:-.venv/bin}"
data="${DATA:-data}"
source=tests/saxpy
case $(uname -m) in
    aarch64) platform=linux-sbsa ;;
    *) platform=linux-x86_64 ;;
esac
mkdir -p "$1"
folder=$(cd "$1" && pwd) # CMake requires absolute paths
shift
if [ $# -eq 0 ]; then
    newest=$(ls "$data"/features/wheels/cuda | sed -n 's/^feature_\(.*\)\.json$/\1/p' |
        sort -t. -k1,1n -k2,2n -k3,3n | tail -n 1)
    set -- 13.0.2 "$newest"
fi

run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

for release in "$@"; do
    work="$folder/$release"
    root="$work/cuda"
    mkdir -p "$work"
    run "$bin/cudaredist" build --channel wheels --data-dir "$data" --cuda "$release" \
        --platform "$platform" --output "$work/set.json"
    run "$bin/cudaredist" materialize "$work/set.json" --data-dir "$data" --output "$root" \
        --component compiler --component runtime
    run "$bin/cudaredist" materialize --output "$root" --verify
    for kind in static shared; do
        run "$root/bin/nvcc" -arch=sm_90 -cudart "$kind" "$source/saxpy.cu" \
            -o "$work/saxpy_$kind"
    done
    run "$bin/cmake" -S "$source" -B "$work/cmake" -DCMAKE_CUDA_COMPILER="$root/bin/nvcc" \
        -DCUDAToolkit_ROOT="$root" -DCMAKE_CUDA_ARCHITECTURES=90-real
    run "$bin/cmake" --build "$work/cmake"
done
