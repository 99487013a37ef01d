#!/bin/sh
# Toolkits from the package index, by the data that is shipped, and a program compiled with each:
# with nvcc itself and with CMake, linked against the static and the shared run-time library.
# Usage: toolkit.sh FOLDER [RELEASE...]; needs g++ and some 150 MB for a release, of which the
# default are 13.0.2 and the newest.
set -eu
bin="${BIN:-.venv/bin}"
data="${DATA:-data}"
source=tests/saxpy
case $(uname -m) in
    aarch64) platform=linux-sbsa ;;
    *) platform=linux-x86_64 ;;
esac
mkdir -p "$1"
folder=$(cd "$1" && pwd) # CMake wants whole paths
shift
if [ $# -eq 0 ]; then
    newest=$(ls "$data"/features/wheels/cuda | sed -n 's/^feature_\(.*\)\.json$/\1/p' |
        sort -t. -k1,1n -k2,2n -k3,3n | tail -n 1)
    set -- 13.0.2 "$newest"
fi

say() {
    printf '\n$ %s\n' "$*"
    "$@"
}

for release in "$@"; do
    place="$folder/$release"
    root="$place/cuda"
    mkdir -p "$place"
    say "$bin/cudaredist" build --channel wheels --data-dir "$data" --cuda "$release" \
        --platform "$platform" --output "$place/set.json"
    say "$bin/cudaredist" materialize "$place/set.json" --data-dir "$data" --root "$root" \
        --component compiler --component runtime
    say "$bin/cudaredist" materialize --root "$root" --verify
    for kind in static shared; do
        say "$root/bin/nvcc" -arch=sm_90 -cudart "$kind" "$source/saxpy.cu" \
            -o "$place/saxpy_$kind"
    done
    say "$bin/cmake" -S "$source" -B "$place/cmake" -DCMAKE_CUDA_COMPILER="$root/bin/nvcc" \
        -DCUDAToolkit_ROOT="$root" -DCMAKE_CUDA_ARCHITECTURES=90-real
    say "$bin/cmake" --build "$place/cmake"
done
