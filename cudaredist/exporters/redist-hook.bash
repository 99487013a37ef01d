# shellcheck shell=bash
# Setup hook of nixpkgs.nix. Unpacks wheels, changes the tree of an archive, moves files to outputs,
# and propagates outputs from `out`. outputLib and outputInclude are variables of nixpkgs.
# shellcheck disable=SC2154

unpackCmdHooks+=(redistUnpackWheel)
postUnpackHooks+=(redistArrangeWheel)
prePatchHooks+=(redistMovePkgConfig)
postInstallHooks+=(redistPatchPkgConfig)
postFixupHooks+=(redistPropagateToOut)
if [[ -n ${redistCompatRunpath-} ]]; then
  postFixupHooks+=("autoFixElfFiles redistAddCompatRunpath")
fi

redistUnpackWheel() {
  [[ $1 == *.whl ]] && unzip -q "$1" -d wheel
}

# Change a wheel to the tree of NVIDIA's archive of the same package. Removes the prefix and the
# metadata, moves the license to the top, and adds the links that a wheel cannot contain.
redistArrangeWheel() {
  local folder file path
  [[ $sourceRoot == wheel ]] || return 0
  mkdir source
  for folder in wheel/nvidia/*/ wheel/*/; do
    case $folder in
      wheel/nvidia/ | *'*'/ | *.dist-info/ | *.data/) continue ;;
    esac
    cp -al --remove-destination "$folder." source/
  done
  while IFS= read -r -d '' file; do
    cp -al --remove-destination "$file" source/LICENSE
  done < <(find wheel -iregex 'wheel/[^/]*\.dist-info/\(licenses/\)?licen[cs]e\(\.txt\)?' -print0)
  while IFS= read -r -d '' file; do
    # Remove a file that only marks the folder as a Python package.
    path=$(find "${file%/*}" -maxdepth 1 -name '*.py' ! -name __init__.py -print -quit)
    [[ -n $path ]] || rm "$file"
  done < <(find source -name __init__.py -print0)
  while IFS= read -r -d '' file; do
    if [[ $file != *.* ]] || redistIsElf "$file"; then chmod +x "$file"; fi
  done < <(find source/bin -type f -print0 2>/dev/null)
  while IFS= read -r -d '' file; do
    path=${file%.so.*}.so
    # The files are sorted by version, so the last link is to the newest.
    if [[ -L $path || ! -e $path ]] && redistIsElf "$file"; then ln -sfn "${file##*/}" "$path"; fi
  done < <(find source -type f -regex '.*\.so\(\.[0-9]+\)+' -print0 | sort -zV)
  find source -type d -empty -delete
  rm -r wheel
  mv source wheel
}

redistIsElf() {
  local magic=
  IFS= read -r -n 4 -d '' magic <"$1" || true
  [[ $magic == $'\x7fELF' ]]
}

# Apply a change of the tree: operation, path or pattern, destination.
redistChange() {
  case $1 in
    lift | rename) redistMove "$2" "$3" ;;
    drop) redistDrop "$2" ;;
    symlink) mkdir -p "$(dirname "$3")" && ln -srfn "$2" "$3" ;;
  esac
}

# Move the contents of folders ($1, a pattern) to a folder ($2), and replace existing files.
redistMove() {
  local IFS= folder path
  local -r to=${2:-.}
  if [[ $1 == lib/* && $to == lib ]]; then
    # Remove libraries for other releases of CUDA.
    for path in lib/*; do
      # shellcheck disable=SC2053 # a pattern
      [[ $path == $1 ]] || rm -r "$path"
    done
  fi
  for folder in $1; do
    [[ -d $folder && ! -L $folder ]] || continue
    mv "$folder" .redist-moved
    while IFS= read -r -d '' path; do
      # A folder replaces a link.
      if [[ -L $to/$path ]]; then rm "$to/$path"; fi
    done < <(find .redist-moved -type d -printf '%P\0')
    mkdir -p "$to"
    cp -al --remove-destination .redist-moved/. "$to/"
    rm -r .redist-moved
    path=${folder%/*}
    if [[ $path != "$folder" ]]; then rmdir -p --ignore-fail-on-non-empty "$path"; fi
  done
}

# Remove all files and folders that match a pattern.
redistDrop() {
  local path
  while IFS= read -r -d '' path; do
    # shellcheck disable=SC2053 # a pattern
    if [[ $path == $1 ]]; then rm -r "$path"; fi
  done < <(find . -mindepth 1 -depth -printf '%P\0')
}

redistMovePkgConfig() {
  redistMove pkg-config share/pkgconfig
  redistMove pkgconfig share/pkgconfig
}

# Set REPLY to the output of a file. The first matching rule applies. If its output is not declared,
# the file is in `out`. Only files in lib/ then continue with the later rules.
redistOutputOf() {
  local output=out
  case $1 in
    include/*) output=include ;;
    lib/pkgconfig/* | share/pkgconfig/* | lib/cmake/* | share/aclocal/*) output=dev ;;
    share/doc/* | share/gtk-doc/* | share/devhelp/* | doc/* | docs/*) output=doc ;;
    share/man/* | share/info/*) output=bin ;;
    stubs/* | lib/stubs/* | lib/*/stubs/* | lib64/stubs/* | lib64/*/stubs/*) output=stubs ;;
    */*.[aA] | */*.[lL][iI][bB]) output=static ;;
    lib/* | lib64/*) output=lib ;;&
    *)
      if [[ $output == out || -z ${redistDeclared[$output]-} ]]; then
        case $1 in
          */*.pc | */*.cmake) output=dev ;;
          bin/*) output=bin ;;
          */*.whl) output=python ;;
          samples/*) output=samples ;;
        esac
      fi
      ;;
  esac
  if [[ -z ${redistDeclared[$output]-} ]]; then output=out; fi
  REPLY=$output
}

# Copy each file to its output, and each link to the output of its target.
redistInstall() {
  local output path target
  local -A redistDeclared=()
  local -r lists=$NIX_BUILD_TOP/redist-lists
  mkdir -p "$lists" "${out:?}"
  for output in $(getAllOutputNames); do redistDeclared[$output]=1; done
  while IFS= read -r -d '' path; do
    redistOutputOf "$path"
    printf '%s\0' "$path" >>"$lists/$REPLY"
  done < <(find . -type f -printf '%P\0')
  while IFS= read -r -d '' path; do
    target=$(realpath -m --relative-to=. -- "$path")
    if [[ -d $target ]]; then
      # A link to a folder belongs to the output of the folder's first file.
      target=$(find "$target" -type f | LC_ALL=C sort | sed -n 1p)
    fi
    # Skip a link without a target.
    [[ -f $target ]] || continue
    redistOutputOf "${target#./}"
    printf '%s\0' "$path" >>"$lists/$REPLY"
  done < <(find . -type l -printf '%P\0')
  for path in "$lists"/*; do
    [[ -e $path ]] || continue
    output=${path##*/}
    mkdir -p "${!output}"
    xargs -0 cp -a --parents -t "${!output}" -- <"$path"
  done
  rm -r "$lists"
}

# Set the paths of the outputs in pkg-config files, and add a link without the version.
redistPatchPkgConfig() {
  local output file link
  for output in $(getAllOutputNames); do
    while IFS= read -r -d '' file; do
      sed -i -E \
        -e "s,^((cudaroot|prefix|exec_prefix)[ \t]*=[ \t]*).*,\1${!output}," \
        -e "s,^(libdir[ \t]*=[ \t]*).*/lib(64)?(/[^ ]*)?$,\1${!outputLib}/lib\3," \
        -e "s,^(includedir[ \t]*=[ \t]*).*/include(/[^ ]*)?$,\1${!outputInclude}/include\2," \
        "$file"
      if [[ $file =~ ^(.*)-[0-9.]+\.pc$ ]]; then
        link=${BASH_REMATCH[1]}.pc
        if [[ -L $link || ! -e $link ]]; then ln -sfn "${file##*/}" "$link"; fi
      fi
    done < <(find "${!output}" -name '*.pc' -type f -print0 2>/dev/null | sort -zV)
  done
}

redistPropagateToOut() {
  local output
  for output in ${redistPropagatedToOut-}; do
    mkdir -p "$out/nix-support"
    printf ' %s' "${!output}" >>"$out/nix-support/propagated-build-inputs"
  done
}

# Set the host compiler ($1) and the packages with headers and libraries in nvcc.profile. In `out`, the
# files of nvcc are links. CMake requires the headers next to nvcc. Libraries stay in their packages, so
# programs do not refer to the compiler.
redistSetUpCompiler() {
  local libraries='' package nvcc
  local -r profile=$out/bin/nvcc.profile compiler=$1
  [[ -e $profile ]] || return 0
  for package in "${@:2}"; do
    if [[ -d $package/include ]]; then cp -rsf --no-preserve=mode "$package/include" "$out"; fi
    if [[ -d $package/lib/stubs ]]; then libraries+="\"-L$package/lib/stubs\" "; fi
    if [[ -d $package/lib ]]; then libraries+="\"-L$package/lib\" "; fi
  done
  cp --remove-destination "$(realpath "$profile")" "$profile"
  chmod u+w "$profile"
  sed -i -E '/^(SYSTEM_)?(INCLUDES|LIBRARIES)[ \t]/d' "$profile"
  printf '%s\n' "INCLUDES += \"-I$out/include\" \$(_SPACE_)" "LIBRARIES =+ \$(_SPACE_) $libraries" \
    "compiler-bindir = $compiler/bin" >>"$profile"
  # nvcc searches next to the path that it is called with.
  nvcc=$(realpath "$out/bin/nvcc")
  rm "$out/bin/nvcc"
  printf '#!%s\nexec -a %q %q "$@"\n' "$BASH" "$out/bin/nvcc" "$nvcc" >"$out/bin/nvcc"
  chmod +x "$out/bin/nvcc"
}

redistAddCompatRunpath() {
  local runpath
  runpath=$(patchelf --print-rpath "$1") || return 0
  patchelf --set-rpath "$redistCompatRunpath${runpath:+:$runpath}" "$1"
}
