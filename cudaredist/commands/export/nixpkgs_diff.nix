# The tables of a nixpkgs checkout. Each file is called with the same arguments as in nixpkgs. The
# releases of package sets depend on the platform, so they are evaluated once for each platform.
{
  checkout,
  tables,
}:
let
  bootstrap = "pkgs/development/cuda-modules/_cuda/db/bootstrap";
  versions = "pkgs/top-level/cuda-packages.nix";
  root = /. + tables;
  lib = import (/. + checkout + "/lib");
  read =
    path: arguments:
    let
      file = import (root + "/${path}");
    in
    if builtins.isFunction file then file arguments else file;
  releases =
    isJetson: isAarch64:
    read versions {
      inherit lib;
      _cuda.lib.selectManifests = releases: releases;
      _cuda.db.cudaCapabilityToInfo.jetson.isJetson = true;
      config.cudaCapabilities = if isJetson then [ "jetson" ] else [ ];
      callPackage =
        file: arguments:
        if builtins.isFunction file then
          file { stdenv.hostPlatform = { inherit isAarch64; isx86_64 = !isAarch64; }; }
        else
          arguments.manifests;
    };
in
{
  compilers = (read "${bootstrap}/nvcc.nix" { inherit lib; }).nvccCompatibilities;
  capabilities = (read "${bootstrap}/cuda.nix" { inherit lib; }).cudaCapabilityToInfo;
  releases =
    if builtins.pathExists (root + "/${versions}") then
      {
        linux-x86_64 = releases false false;
        linux-sbsa = releases false true;
        linux-aarch64 = releases true true;
      }
    else
      { };
}
