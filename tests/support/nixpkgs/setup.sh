# The phases of the stand-in's stdenv, in the order of nixpkgs, with their hooks.
# shellcheck shell=bash disable=SC2154
set -eu -o pipefail
shopt -s inherit_errexit
PATH=/usr/local/bin:/usr/bin:/bin
export HOME=/nowhere LC_ALL=C.UTF-8
# Nix names the folder of a build in different variables with a sandbox and without one.
NIX_BUILD_TOP=$(mktemp -d "${NIX_BUILD_TOP:-/tmp}/build.XXXXXX")
cd "$NIX_BUILD_TOP"

# Nix sets no `outputs` for a derivation that has one.
export outputs=${outputs-out}

# shellcheck disable=SC2034
unpackCmdHooks=() postUnpackHooks=() prePatchHooks=() postInstallHooks=() preFixupHooks=() postFixupHooks=()

getAllOutputNames() { echo "$outputs"; }

isElf() {
  local magic=
  IFS= read -r -n 4 -d '' magic <"$1" || true
  [[ $magic == $'\x7fELF' ]]
}

# Call a function for each ELF file of the outputs that is linked dynamically.
autoFixElfFiles() {
  local output file
  for output in $(getAllOutputNames); do
    while IFS= read -r -d '' file; do
      if isElf "$file" && readelf -S "$file" 2>/dev/null | grep '\.dynamic' >/dev/null; then
        "$1" "$file"
      fi
    done < <(find "${!output}" -type f -print0)
  done
}

runHook() {
  local hook name=$1
  local -n hooks=${name}Hooks 2>/dev/null
  if [[ -n ${!name-} ]]; then eval "${!name}"; fi
  for hook in "${hooks[@]-}"; do
    if [[ -n $hook ]]; then eval "$hook"; fi
  done
}

for name in Bin Dev Doc Include Lib; do
  lower=${name,,}
  variable=output$name
  if [[ -z ${!variable-} ]]; then
    if [[ -n ${!lower-} ]]; then declare "$variable=$lower"; else declare "$variable=out"; fi
  fi
done

autoPatchelfLibs=()
for input in ${buildInputs-} ${propagatedBuildInputs-}; do autoPatchelfLibs+=("$input/lib"); done
for input in ${nativeBuildInputs-}; do
  # shellcheck disable=SC1090
  if [[ -d $input ]]; then PATH=$input/bin:$PATH; else source "$input"; fi
done

if [[ -n ${buildCommand-} ]]; then
  eval "$buildCommand"
  exit
fi

if [[ -z ${dontUnpack-} ]]; then
  mkdir unpacked && cd unpacked
  NIX_BUILD_TOP=$PWD
  done=
  for hook in "${unpackCmdHooks[@]}"; do
    if "$hook" "$src"; then done=1 && break; fi
  done
  if [[ -d $src ]]; then cp -r "$src" source && done=1; fi
  if [[ -z $done ]]; then tar -xf "$src" --mode=u+w; fi
  for sourceRoot in *; do :; done
  chmod -R u+w "$sourceRoot"
  runHook postUnpack
  cd "$sourceRoot"
fi
runHook prePatch
eval "$installPhase"
runHook preFixup

# As the multiple-outputs hook does, except that a package with one output propagates nothing.
propagater=${outputDev}
mkdir -p "${!propagater}/nix-support"
for path in ${propagatedBuildInputs-}; do
  printf ' %s' "$path" >>"${!propagater}/nix-support/propagated-build-inputs"
done
if [[ $outputs != out ]]; then
  for output in ${propagatedBuildOutputs-}; do
    printf ' %s' "${!output}" >>"${!propagater}/nix-support/propagated-build-inputs"
  done
fi
rmdir --ignore-fail-on-non-empty "${!propagater}/nix-support"
for output in $outputs; do mkdir -p "${!output}"; done
runHook postFixup
# Empty outputs are an error, except for `out`.
for output in $outputs; do
  if [[ $output != out && -z $(ls -A "${!output}") ]]; then
    echo "output $output is empty" && exit 1
  fi
done
