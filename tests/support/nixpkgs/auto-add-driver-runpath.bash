# shellcheck shell=bash
postFixupHooks+=("autoFixElfFiles addDriverRunpath")

addDriverRunpath() {
  local runpath
  runpath=$(patchelf --print-rpath "$1")
  patchelf --set-rpath "/run/opengl-driver/lib${runpath:+:$runpath}" "$1"
}
