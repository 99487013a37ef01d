# Builds the packages of a set with nixpkgs. default.nix calls the result for each package, with
# { name, pname, version, outputs, src, meta, entry }. `entry` is the package in the document.
#
# redist-hook.bash moves a package's files to outputs. Libraries get a run path with the packages that
# they require, and with the driver of the machine that runs them. nvcc uses the
# headers, libraries and host compiler of the set.
{
  pkgs,
  document,
  packages,
}:

let
  inherit (builtins)
    attrNames
    attrValues
    concatMap
    elem
    filter
    genericClosure
    getAttr
    head
    isAttrs
    length
    mapAttrs
    match
    ;
  inherit (pkgs) lib stdenv;

  # Owners of libraries that exist only on the machine that runs a program. Programs for another
  # version of Python than that machine's are not used.
  onlyAtRunTime = [
    "driver"
    "jetson"
    "python"
  ];

  # Packages with different names in nixpkgs and in the document.
  otherNames = {
    gstreamer = [ pkgs.gst_all_1.gstreamer ];
    nccl = [ pkgs.cudaPackages.nccl ];
    qt6 = [ pkgs.qt6.qtbase ];
    xorg = [
      pkgs.xorg.libICE
      pkgs.xorg.libSM
      pkgs.xorg.libX11
      pkgs.xorg.libXext
      pkgs.xorg.libxcb
    ];
  };

  providerOf =
    soname:
    let
      provider = document.external.${soname}.provider or null;
    in
    if provider == null then
      throw "unknown nixpkgs package for ${soname}"
    else
      otherNames.${provider} or [ (getAttr provider pkgs) ];

  headersOf =
    attr: map (other: other.attr) (filter (other: other.kind == "header") document.packages.${attr}.depends);
  headerClosure =
    attrs:
    map (item: item.key) (genericClosure {
      startSet = map (key: { inherit key; }) attrs;
      operator = item: map (key: { inherit key; }) (headersOf item.key);
    });
  includes = from: to: elem to (headerClosure [ from ]);
  users = mapAttrs (
    attr: _: length (filter (other: elem attr (headersOf other)) (attrNames document.packages))
  ) document.packages;
  # Some packages include each other's headers, such as cuda_cudart and cuda_cccl, but derivations
  # cannot depend on each other. The package with more users propagates the other one.
  propagates =
    from: to:
    !includes to from
    || users.${from} > users.${to}
    || users.${from} == users.${to} && from < to;

  # The compatibility driver: cuda_compat, or cuda_compat_orin for Orin from CUDA 13 on.
  isAvailable = attr: (document.packages.${attr}.status or null) == "available";
  isCompat = attr: match "cuda_compat.*" attr != null && isAvailable attr;
  compat = head (filter isCompat (attrNames document.packages));

  # The same license in nixpkgs, if it has one.
  licenseOf =
    license:
    let
      isSame =
        own:
        isAttrs own
        && (
          if license ? spdxId then
            own.spdxId or null == license.spdxId
          else
            own.shortName or null == license.shortName
            && own.redistributable or false == license.redistributable or false
        );
      known = attrValues lib.licenses ++ attrValues (pkgs._cuda.lib.licenses or { });
      same = filter isSame known;
    in
    if same == [ ] then license else head same;

  # Packages depend on the archive of nvcc, not on the compiler with its parts.
  packageOf = attr: packages.${attr}.unwrapped or packages.${attr};

  hostCompiler =
    let
      major = document.host_compiler.gcc.selected or null;
      name = "gcc${toString major}";
    in
    if major == null then
      stdenv.cc
    else
      pkgs.${name} or (throw "nixpkgs has no ${name}. Run `cudaredist build --default-gcc MAJOR`.");

  # CUDA's math headers declare functions of newer glibc otherwise, so that nothing compiles.
  compilerWithGlibc =
    let
      glibc = document.host_compiler.glibc or { };
      own = hostCompiler.libc or { };
      version = lib.versions.majorMinor (own.version or "0.0");
      isTooNew =
        own.pname or "" == "glibc"
        && glibc.clashes or [ ] != [ ]
        && lib.versionOlder glibc.newest version;
    in
    assert lib.assertMsg (!isTooNew)
      "nvcc of CUDA ${document.cuda.release} compiles with glibc up to ${glibc.newest}, not with ${version}. Use a nixpkgs with an older glibc, or a newer CUDA release.";
    hostCompiler;

  # nvcc finds its programs relative to itself, and headers and libraries by nvcc.profile.
  compilerOf =
    unwrapped:
    let
      parts = concatMap (attr: map (output: (packageOf attr).${output}) (packageOf attr).outputs) (
        filter isAvailable (headerClosure [
          "cuda_nvcc"
          "cuda_cudart"
        ])
      );
    in
    pkgs.symlinkJoin {
      inherit (unwrapped) name meta;
      paths = map (output: unwrapped.${output}) unwrapped.outputs;
      postBuild = ''
        rm -rf $out/nix-support
        source ${./redist-hook.bash}
        redistSetUpCompiler ${compilerWithGlibc} ${toString parts}
      ''
      # From CUDA 13.0 on, the optimizer is another package.
      + lib.optionalString (isAvailable "libnvvm") ''
        if [[ ! -e $out/nvvm ]]; then
          mkdir $out/nvvm
          ln -s ${packages.libnvvm}/* $out/nvvm
        fi
      ''
      # nvlink loads libnvvm from this folder.
      + ''
        if [[ -d $out/nvvm/lib && ! -e $out/nvvm/lib64 ]]; then ln -s lib $out/nvvm/lib64; fi
      '';
      passthru = {
        inherit unwrapped hostCompiler;
        inherit (unwrapped)
          cuda
          entry
          outputs
          pname
          src
          tests
          version
          ;
      };
    };

  testsOf = import ./tests.nix {
    inherit
      pkgs
      document
      packages
      isAvailable
      headerClosure
      ;
    atRunTime = filter (soname: elem document.external.${soname}.owner onlyAtRunTime) (
      attrNames document.external
    );
  };

  # A valid name of a derivation.
  sanitized = lib.strings.sanitizeDerivationName;

  build =
    package:
    let
      inherit (package) entry;
      needsOf = owners: filter (need: elem (need.satisfied_by.external or null) owners) linked;
      linked = filter (need: need.kind == "needed") entry.needs;
      sonamesOf = needs: lib.unique (map (need: need.soname) needs);
      dependenciesOf = kind: map outputOf (dependsOf kind);
      dependsOf = kind: filter (other: other.kind == kind) entry.depends;
      outputOf = other: lib.getOutput other.output (packageOf other.attr);

      isWheel = entry.status == "available" && entry.archive.format == "whl";
      hasOutput = output: elem output entry.outputs;
      propagatedTo = output: entry.propagates.${output} or [ ];
    in
    stdenv.mkDerivation {
      name = sanitized package.name;
      pname = sanitized package.pname;
      version = if package.version == null then "0-unsupported" else sanitized package.version;
      inherit (package) src;
      outputs = if entry.outputs == [ ] then [ "out" ] else entry.outputs;

      strictDeps = true;

      nativeBuildInputs = [
        pkgs.autoPatchelfHook
      ]
      ++ lib.optional entry.driver_runpath pkgs.autoAddDriverRunpath
      ++ lib.optional isWheel pkgs.unzip
      # This hook is last, because the compatibility driver must precede the driver in run paths.
      ++ [ ./redist-hook.bash ];

      buildInputs =
        lib.optional (needsOf [ "gcc" ] != [ ]) (lib.getLib stdenv.cc.cc)
        ++ map lib.getLib (
          lib.unique (concatMap providerOf (sonamesOf (needsOf [ "distribution" ])))
        )
        # Some libraries are listed by one file and opened by another.
        ++ map outputOf (
          lib.unique (
            map (other: { inherit (other) attr output; }) (dependsOf "runtime" ++ dependsOf "dlopen")
          )
        );

      # Headers that this package's headers include.
      propagatedBuildInputs = map outputOf (
        filter (other: propagates entry.attr other.attr) (dependsOf "header")
      );

      # Changes of the archive's tree.
      prePatch = lib.concatMapStringsSep "\n" (
        change:
        "redistChange ${
          lib.escapeShellArgs [
            change.op
            change.from
            (if change.to == null then "" else change.to)
          ]
        }"
      ) entry.normalise;

      dontConfigure = true;
      dontBuild = true;
      # Binaries are not changed, except for their run paths.
      dontStrip = true;
      dontPatchELF = true;

      installPhase = ''
        runHook preInstall
        redistInstall
        runHook postInstall
      '';

      # redistInstall has moved headers and documentation already.
      moveToDev = false;
      outputInclude = if hasOutput "include" then "include" else "out";
      outputDevdoc = if hasOutput "doc" then "doc" else "out";

      # The multiple-outputs hook propagates from `dev`, redist-hook.bash from `out`.
      propagatedBuildOutputs = propagatedTo (if hasOutput "dev" then "dev" else "out");
      redistPropagatedToOut = if hasOutput "dev" then propagatedTo "out" else [ ];

      autoPatchelfIgnoreMissingDeps = sonamesOf (needsOf onlyAtRunTime);
      # Libraries that programs load at run time, from this package and from others.
      appendRunpaths = [
        "$ORIGIN"
      ]
      ++ map (output: "${output}/lib") (dependenciesOf "dlopen");
      redistCompatRunpath =
        if entry.compat_runpath then "${packages.${compat}}/compat" else null;

      passthru = {
        inherit entry;
        cuda = document.cuda;
        tests = testsOf package;
      };

      meta = package.meta // {
        license = licenseOf package.meta.license;
        sourceProvenance = [ lib.sourceTypes.binaryNativeCode ];
      };
    };
in
package:
(if package.entry.attr == "cuda_nvcc" && isAvailable "cuda_nvcc" then compilerOf else lib.id) (
  build package
)
