# A small stand-in for nixpkgs: the functions, hooks and phases that an exported set uses, made of the
# host's bash, coreutils and patchelf. Meta attributes are checked as nixpkgs checks them.
{
  system ? "x86_64-linux",
  # Libraries of the host that packages are made of: { zlib = [ "/usr/lib/.../libz.so.1" ]; }
  libraries ? { },
  # Version of the glibc of each GCC.
  glibc ? "2.36-8",
}:

let
  inherit (builtins)
    all
    attrNames
    attrValues
    concatMap
    concatStringsSep
    elem
    filter
    foldl'
    genList
    isAttrs
    isBool
    isFunction
    isList
    isString
    listToAttrs
    mapAttrs
    removeAttrs
    replaceStrings
    split
    ;

  lib = {
    getOutput =
      output: package:
      if package.outputSpecified or false then
        package
      else
        package.${output} or package.out or package;
    getLib = lib.getOutput "lib";
    id = value: value;
    hasPrefix = prefix: text: builtins.substring 0 (builtins.stringLength prefix) text == prefix;
    optionalAttrs = condition: attrs: if condition then attrs else { };
    escapeShellArg = value: lib.escapeShellArgs [ value ];
    optionalString = condition: value: if condition then value else "";
    optional = condition: value: if condition then [ value ] else [ ];
    assertMsg = condition: message: condition || throw message;
    versionOlder = left: right: builtins.compareVersions left right < 0;
    versions.majorMinor =
      version:
      let
        parts = builtins.splitVersion version;
      in
      "${builtins.head parts}.${builtins.elemAt parts 1}";
    unique = foldl' (found: value: if elem value found then found else found ++ [ value ]) [ ];
    concatMapStringsSep =
      separator: text: values:
      concatStringsSep separator (map text values);
    escapeShellArgs = lib.concatMapStringsSep " " (
      value: "'${replaceStrings [ "'" ] [ "'\\''" ] value}'"
    );
    strings.sanitizeDerivationName =
      name:
      let
        parts = filter isString (split "[^[:alnum:]+._?=-]+" name);
        joined = concatStringsSep "-" parts;
        start = builtins.match "\\.*(.*)" joined;
      in
      if joined == "" then "unknown" else builtins.head start;
    licenses = {
      mit = {
        shortName = "mit";
        spdxId = "MIT";
        free = true;
        redistributable = true;
        nixpkgs = true;
      };
      nvidiaCuda = {
        shortName = "CUDA EULA";
        free = false;
        redistributable = false;
        nixpkgs = true;
      };
      nvidiaCudaRedist = lib.licenses.nvidiaCuda // {
        redistributable = true;
      };
      isFree = license: license.free;
    };
    sourceTypes.binaryNativeCode = {
      shortName = "binaryNativeCode";
      isSource = false;
    };
  };

  check = import ./check-meta.nix { inherit system; };

  mkDerivation =
    attrs:
    let
      drv = derivation (
        removeAttrs attrs [
          "meta"
          "passthru"
        ]
        // {
          inherit system;
          builder = "/bin/bash";
          args = [
            "-e"
            ./setup.sh
          ];
        }
      );
      meta = attrs.meta or { };
      common =
        { inherit meta; }
        // (attrs.passthru or { })
        // {
          inherit (attrs) name;
          pname = attrs.pname or null;
          version = attrs.version or null;
        };
      outputs = listToAttrs (
        map (output: {
          name = output;
          value =
            drv.${output}
            // common
            // {
              inherit (result) drvPath;
              outPath = assert check attrs; drv.${output}.outPath;
              outputSpecified = true;
            };
        }) (attrs.outputs or [ "out" ])
      );
      result =
        drv
        // common
        // outputs
        // {
          drvPath = assert check attrs; drv.drvPath;
          outPath = assert check attrs; drv.outPath;
        };
    in
    result;

  hostPackage =
    pname: files:
    mkDerivation {
      inherit pname files;
      name = pname;
      dontUnpack = true;
      installPhase = "mkdir -p $out/lib && ln -s $files $out/lib";
    };

  # The host's GCC. Fails to build if the host has another version.
  hostGcc =
    major:
    mkDerivation {
      name = "gcc-${major}";
      dontUnpack = true;
      passthru.libc = {
        pname = "glibc";
        version = glibc;
      };
      installPhase = ''
        [[ $(gcc -dumpversion) == ${major} ]] || { echo "the host has no GCC ${major}"; exit 1; }
        mkdir -p $out/bin && ln -s /usr/bin/{gcc,g++} $out/bin
      '';
    };

  runCommandCC =
    name: attrs: buildCommand: mkDerivation (attrs // { inherit name buildCommand; });

  symlinkJoin =
    attrs:
    mkDerivation {
      inherit (attrs) name meta passthru;
      dontUnpack = true;
      installPhase = ''
        mkdir -p $out
        for path in ${toString attrs.paths}; do cp -rsn --no-preserve=mode $path/. $out; done
        ${attrs.postBuild}
      '';
    };
in
{
  inherit lib runCommandCC symlinkJoin;
  addDriverRunpath.driverLink = "/run/opengl-driver";
  stdenv = {
    inherit mkDerivation;
    cc.cc = hostPackage "gcc" libraries.gcc or [ ];
  };
  fetchurl = import <nix/fetchurl.nix>;
  autoPatchelfHook = ./auto-patchelf.bash;
  autoAddDriverRunpath = ./auto-add-driver-runpath.bash;
  cmake = ./cmake.bash;
  ninja = ./no-hook.bash;
  unzip = ./no-hook.bash;
  _cuda.lib.licenses.cudnn = {
    shortName = "cuDNN EULA";
    free = false;
    redistributable = false;
    nixpkgs = true;
  };
}
// listToAttrs (
  genList (
    index:
    let
      major = toString (index + 4);
    in
    {
      name = "gcc${major}";
      value = hostGcc major;
    }
  ) 16
)
// mapAttrs hostPackage (removeAttrs libraries [ "gcc" ])
