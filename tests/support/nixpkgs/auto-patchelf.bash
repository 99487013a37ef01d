# shellcheck shell=bash disable=SC2154
# Gives every ELF file a run path to the libraries it needs, as nixpkgs' hook of that name does.
postFixupHooks+=(autoPatchelf)

autoPatchelf() {
  declare -gA foundLibraries=()
  local folder output path
  for folder in "${autoPatchelfLibs[@]-}"; do
    for path in "$folder"/*.so*; do
      if [[ -e $path ]]; then foundLibraries[${path##*/}]=$folder; fi
    done
  done
  for output in $(getAllOutputNames); do
    while IFS= read -r -d '' path; do
      foundLibraries[${path##*/}]=${path%/*}
    done < <(find "${!output}" -name '*.so*' -print0)
  done
  autoFixElfFiles autoPatchelfFile
}

autoPatchelfFile() {
  local soname folder
  local -A folders=()
  local -a runpath=()
  for soname in $(patchelf --print-needed "$1"); do
    case $soname in
      ld-linux* | libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | libutil.so.1 | libresolv.so.2) continue ;;
    esac
    folder=${foundLibraries[$soname]-}
    if [[ -n $folder ]]; then
      if [[ -z ${folders[$folder]-} ]]; then runpath+=("$folder"); fi
      folders[$folder]=1
    elif [[ " ${autoPatchelfIgnoreMissingDeps-} " != *" $soname "* ]]; then
      echo "auto-patchelf could not satisfy dependency $soname wanted by $1"
      exit 1
    fi
  done
  for folder in ${appendRunpaths-}; do runpath+=("$folder"); done
  chmod u+w "$1"
  patchelf --set-rpath "$(IFS=: && echo "${runpath[*]}")" "$1"
}
