#!/usr/bin/env bash
# Install the programs of other projects that tests use, if this is Debian and the user is root.
#
# Tests evaluate and build the files of `export nix` with Nix, make runfiles with makeself, serve mirrors
# with nginx, open the web site in Chromium, check it with a Java program, and install fresh machines with
# debootstrap. They compile for ARM and run the programs with QEMU. They load OCI images with skopeo and
# umoci. Without these programs, the tests are skipped.
set -euo pipefail

for tool in nix-build patchelf readelf unzip makeself nginx chromium java debootstrap aarch64-linux-gnu-g++ \
    qemu-aarch64 skopeo umoci; do
    command -v "$tool" >/dev/null || missing=yes
done
if [ -n "${missing:-}" ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    packages="nix-bin patchelf binutils unzip makeself nginx-light chromium default-jre-headless debootstrap"
    packages="$packages g++-aarch64-linux-gnu qemu-user skopeo umoci"
    # shellcheck disable=SC2086 # a list of packages
    { apt-get update -q && apt-get install -qy --no-install-recommends $packages; } >/dev/null ||
        echo "cannot install $packages"
fi
