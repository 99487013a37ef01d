# The tables of a nixpkgs checkout, without its packages. Releases can depend on the machine, so they
# are evaluated once for each machine.
{
  checkout,
  tables,
}:
let
  inherit (builtins)
    attrNames
    compareVersions
    concatMap
    filter
    functionArgs
    hasAttr
    intersectAttrs
    isAttrs
    isFunction
    isList
    listToAttrs
    mapAttrs
    match
    pathExists
    readDir
    readFile
    sort
    split
    stringLength
    substring
    ;
  modules = "pkgs/development/cuda-modules/_cuda";
  root = /. + tables;

  # A sparse checkout or an earlier export has no library. The tables use only a few functions.
  lib = if pathExists (/. + checkout + "/lib/default.nix") then import (/. + checkout + "/lib") else ownLib;
  ownLib = builtins // {
    id = value: value;
    const = value: _: value;
    flip = function: a: b: function b a;
    versionOlder = a: b: compareVersions b a == 1;
    versionAtLeast = a: b: compareVersions b a != 1;
    hasPrefix = start: text: substring 0 (stringLength start) text == start;
    hasSuffix =
      end: text:
      let
        length = stringLength text - stringLength end;
      in
      length >= 0 && substring length (stringLength end) text == end;
    optional = condition: value: if condition then [ value ] else [ ];
    optionals = condition: values: if condition then values else [ ];
    optionalAttrs = condition: values: if condition then values else { };
    genAttrs = names: function: listToAttrs (map (name: { inherit name; value = function name; }) names);
    filterAttrs =
      condition: values:
      listToAttrs (
        concatMap (
          name: if condition name values.${name} then [ { inherit name; value = values.${name}; } ] else [ ]
        ) (attrNames values)
      );
    intersectLists = values: filter (value: ownLib.elem value values);
    subtractLists = values: filter (value: !ownLib.elem value values);
    recurseIntoAttrs = values: values;
    attrsets = ownLib;
    lists = ownLib;
    strings = ownLib;
    trivial = ownLib;
    versions = ownLib;
  };

  # The arguments that a file or function requires, from those that nixpkgs would pass.
  callWith =
    path: arguments: function:
    if isFunction function then
      let
        names = functionArgs function;
        required = filter (name: !names.${name} && !hasAttr name arguments) (attrNames names);
        unknown = name: {
          inherit name;
          value = throw "${path} uses the argument ${name}, which is unknown without nixpkgs";
        };
      in
      function (
        if names == { } then arguments else listToAttrs (map unknown required) // intersectAttrs names arguments
      )
    else
      function;
  read = path: arguments: callWith path arguments (import (root + "/${path}"));
  readIfPresent = path: arguments: if pathExists (root + "/${path}") then read path arguments else { };

  compilers = (readIfPresent "${modules}/db/bootstrap/nvcc.nix" { inherit lib; }).nvccCompatibilities or null;
  capabilities =
    (readIfPresent "${modules}/db/bootstrap/cuda.nix" { inherit lib; }).cudaCapabilityToInfo or null;

  # Labels by redistributable, from the texts and names in the table of releases, and from the names of
  # the manifests in the folder. The manifests of a changed table are not there yet.
  manifests = mapAttrs (name: labels: labels // localManifests.${name} or { }) (
    ownLib.genAttrs (textsOf "([A-Za-z][A-Za-z0-9_-]*)[[:space:]]*=") (
      _: ownLib.genAttrs (textsOf "\"([^\"]*)\"") (label: { release_label = label; })
    )
  );
  textsOf =
    expression:
    concatMap (part: if isList part then part else [ ]) (
      split expression (if pathExists (root + "/${versions}") then readFile (root + "/${versions}") else "")
    );
  localManifests =
    let
      folder = root + "/${modules}/manifests";
      labelsOf = redist: concatMap labelOf (attrNames (readDir (folder + "/${redist}")));
      labelOf =
        name:
        let
          label = match "redistrib_(.*)[.]json" name;
        in
        if label == null then [ ] else label;
      folders = if pathExists folder then readDir folder else { };
      redists = filter (name: folders.${name} == "directory") (attrNames folders);
    in
    ownLib.genAttrs redists (redist: ownLib.genAttrs (labelsOf redist) (label: { release_label = label; }));

  versions = "pkgs/top-level/cuda-packages.nix";
  releases =
    { isAarch64, jetson ? null }:
    let
      hostPlatform = {
        inherit isAarch64;
        isx86_64 = !isAarch64;
        isLinux = true;
        isDarwin = false;
        system = if isAarch64 then "aarch64-linux" else "x86_64-linux";
      };
      cudaCapabilities = if jetson == null then [ ] else [ jetson ];
      stdenv = {
        inherit hostPlatform;
        buildPlatform = hostPlatform;
        targetPlatform = hostPlatform;
      };
      backendStdenv = stdenv // {
        inherit cudaCapabilities;
        hasJetsonCudaCapability = jetson != null;
        requestedCudaCapabilities = cudaCapabilities;
        requestedJetsonCudaCapabilities = cudaCapabilities;
      };
      config = {
        inherit cudaCapabilities;
        cudaSupport = true;
        allowAliases = true;
      };
      _cuda = {
        inherit manifests;
        lib.selectManifests = selected: selected;
        db = rec {
          cudaCapabilityToInfo =
            (if isAttrs capabilities then capabilities else { })
            // listToAttrs (map (name: { inherit name; value.isJetson = true; }) cudaCapabilities);
          allSortedCudaCapabilities = sort (a: b: compareVersions a b < 0) (attrNames cudaCapabilityToInfo);
        };
      };
      arguments = {
        inherit
          _cuda
          callPackage
          config
          hostPlatform
          lib
          stdenv
          ;
        callPackages = callPackage;
        newScope = _: callPackage;
        pkgs = arguments;
      };
      callPackage =
        file: given:
        if isFunction file then
          callWith versions (arguments // given) file
        else
          { inherit backendStdenv; } // given;
      sets = read versions arguments;
      isSet = name: isAttrs sets.${name} && sets.${name} ? manifests;
      labelOf = manifest: if isAttrs manifest then manifest.release_label else manifest;
    in
    ownLib.genAttrs (filter isSet (attrNames sets)) (name: mapAttrs (_: labelOf) sets.${name}.manifests);
in
{
  inherit compilers capabilities;
  releases =
    if pathExists (root + "/${versions}") then
      {
        linux-x86_64 = releases { isAarch64 = false; };
        linux-sbsa = releases { isAarch64 = true; };
        jetson-orin = releases {
          isAarch64 = true;
          jetson = "8.7";
        };
        jetson-thor = releases {
          isAarch64 = true;
          jetson = "11.0";
        };
      }
    else
      null;
}
