# shellcheck shell=bash disable=SC2034
# Configures, builds and installs, as the hooks of CMake and Ninja do.
installPhase='
  # shellcheck disable=SC2086 # several flags
  cmake -S . -B build -G Ninja -DCMAKE_INSTALL_PREFIX="$out" ${cmakeFlags-}
  cmake --build build
  cmake --install build
'
