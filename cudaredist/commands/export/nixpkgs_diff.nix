# The tables of a nixpkgs checkout. Each file is called with the same arguments as in nixpkgs. The
# releases of package sets depend on the platform, so they are evaluated once for each platform.
{
  checkout,
  tables,
  versions,
  nvcc,
  capabilities,
  x86,
  serverArm,
  jetson,
}:
let
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
  compilers = (read nvcc { inherit lib; }).nvccCompatibilities;
  capabilities = (read capabilities { inherit lib; }).cudaCapabilityToInfo;
  releases =
    if builtins.pathExists (root + "/${versions}") then
      {
        ${x86} = releases false false;
        ${serverArm} = releases false true;
        ${jetson} = releases true true;
      }
    else
      { };
}
