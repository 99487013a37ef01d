# A CUDA package set as Nix attributes. Reads package-set.json, which is stored next to this file.
# Made by cudaredist. This file is the same for every set: all differences are in the JSON.
#
#   import ./. { }
#     Requires no nixpkgs. Every attribute is a package's archive, fetched and verified.
#
#   import ./. { inherit pkgs; }
#     Every attribute is a derivation of nixpkgs' stdenv with the set's outputs. See nixpkgs.nix.
#
# A package that is not available evaluates, including its meta. Building it fails with the reasons.
{
  # The set, as cudaredist build writes it.
  document ? builtins.fromJSON (builtins.readFile ./package-set.json),
  # nixpkgs, to build packages; null for the archives.
  pkgs ? null,
  # Makes a file of { name, url, hash }.
  fetch ? if pkgs == null then import <nix/fetchurl.nix> else pkgs.fetchurl,
}:

let
  inherit (builtins)
    attrNames
    baseNameOf
    concatStringsSep
    elemAt
    filter
    genList
    getAttr
    length
    listToAttrs
    mapAttrs
    removeAttrs
    replaceStrings
    ;

  systems = filter (system: system != null) [ document.platform.nix_system ];

  # The attributes that are known.
  known = attrs: removeAttrs attrs (filter (name: getAttr name attrs == null) (attrNames attrs));

  # Names of files in the store have fewer characters than those of archives.
  storeName = replaceStrings [ "~" "@" "," ] [ "-" "-" "-" ];

  refusal =
    name: entry:
    throw "${name} is ${entry.status}: ${
      concatStringsSep "; " (map (reason: reason.text) entry.reasons)
    }";

  makeSource =
    name: archive:
    if archive.url == null then
      throw "${name}: the address of ${archive.relative_path} is not known; name it with cudaredist export --wheel-base"
    else
      fetch {
        name = storeName (baseNameOf archive.relative_path);
        inherit (archive) url;
        hash = archive.sri;
      };

  # Problems as nixpkgs knows them. Of its kinds, only `broken` refuses a package by default.
  makeProblems =
    reasons:
    listToAttrs (
      genList (
        index:
        let
          reason = elemAt reasons index;
        in
        {
          name = "${reason.code}-${toString (index + 1)}";
          value = {
            kind = "broken";
            message = reason.text;
          };
        }
      ) (length reasons)
    );

  makeMeta =
    entry:
    let
      isServed = entry.status != "unsupported" && entry.status != "foreign";
    in
    known {
      inherit (entry) description;
      inherit (entry.meta) homepage changelog;
      mainProgram = entry.meta.main_program;
      license = known {
        inherit (entry.license) url free redistributable;
        shortName = entry.license.short_name;
        fullName = entry.license.short_name;
        spdxId = entry.license.spdx;
      };
      sourceProvenance = [
        {
          shortName = "binaryNativeCode";
          isSource = false;
        }
      ];
      platforms = if isServed then systems else [ ];
      badPlatforms = if isServed then [ ] else systems;
      available = entry.status == "available";
      broken = entry.status == "broken" || entry.status == "withheld";
      problems = makeProblems entry.reasons;
    };

  # A package without a builder: its archive, under the package's own name.
  archiveOf =
    package:
    let
      self = package // {
        type = "derivation";
        outputName = "out";
        out = self;
        inherit (package.src) drvPath outPath;
      };
    in
    self;

  build =
    if pkgs == null then archiveOf else import ./nixpkgs.nix { inherit pkgs document packages; };

  makePackage =
    entry:
    let
      suffix = if entry.version == null then "" else "-${entry.version}";
      name = "${document.cuda.name_prefix}-${entry.pname}${suffix}";
    in
    build {
      inherit name entry;
      inherit (entry) pname version outputs;
      src = if entry.status == "available" then makeSource name entry.archive else refusal name entry;
      meta = makeMeta entry;
    };

  packages = mapAttrs (
    _: entry: if entry.alias_of == null then makePackage entry else getAttr entry.alias_of packages
  ) document.packages;

  # The runfile installer of the CUDA release, if the data has a record of it.
  runfile = document.runfile or null;

  makeRunfile =
    if runfile.url == null then
      throw "cudatoolkit: the address of ${runfile.name} is not known; record it with cudaredist runfile add --url"
    else
      fetch {
        inherit (runfile) name url;
        hash = runfile.sri;
      };

  cudatoolkit = archiveOf {
    name = "${document.cuda.name_prefix}-cudatoolkit-${document.cuda.release}";
    pname = "cudatoolkit";
    version = document.cuda.release;
    src = makeRunfile;
  };
in
packages // (if runfile == null then { } else { inherit cudatoolkit; })
