# A CUDA package set as Nix attributes: reads package-set.json, which lies beside this file.
# Made by cudaredist. This file is the same for every set; all that differs is in the JSON.
#
#   import ./default.nix { }
#     needs no nixpkgs: every attribute is a package's archive, fetched and proved
#
#   import ./default.nix {
#     fetch = pkgs.fetchurl;
#     build = package: pkgs.stdenv.mkDerivation {
#       inherit (package) pname version src meta;
#       installPhase = "cp -r . $out";
#     };
#   }
#     every attribute is what `build` makes of the package
#
# A package that cannot be had evaluates, meta and all, and says why once it is built.
{
  # The set, as cudaredist build writes it.
  document ? builtins.fromJSON (builtins.readFile ./package-set.json),
  # Makes a file of { name, url, hash }.
  fetch ? import <nix/fetchurl.nix>,
  # Makes a derivation of { name, pname, version, src, outputs, meta, entry }.
  build ? null,
}:

let
  inherit (builtins)
    attrNames
    baseNameOf
    concatStringsSep
    filter
    getAttr
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

  # What a package without a builder is: its archive, under the package's own name.
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
      broken = entry.status == "broken";
      unsupported = !isServed;
      inherit (entry) status;
      problems = entry.reasons;
    };

  makePackage =
    entry:
    let
      suffix = if entry.version == null then "" else "-${entry.version}";
      name = "${document.cuda.name_prefix}-${entry.pname}${suffix}";
      isAvailable = entry.status == "available";
      refused = refusal name entry;
      package = {
        inherit name entry;
        inherit (entry) pname version outputs;
        src = if isAvailable then makeSource name entry.archive else refused;
        meta = makeMeta entry;
      };
    in
    if isAvailable && build != null then build package else archiveOf package;

  packages = mapAttrs (
    _: entry: if entry.alias_of == null then makePackage entry else getAttr entry.alias_of packages
  ) document.packages;
in
packages
