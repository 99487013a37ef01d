# Tests of the built packages of a set, as `passthru.tests`. nixpkgs.nix calls the result for each
# package. A package without libraries, programs or headers has no such tests.
{
  pkgs,
  document,
  packages,
  # Names of libraries that exist only on the machine that runs a program.
  atRunTime,
  # Checks if a package is available.
  isAvailable,
  # The packages with headers that a package's headers include.
  headerClosure,
}:

package:
let
  inherit (builtins)
    any
    baseNameOf
    concatMap
    elem
    filter
    head
    ;
  inherit (pkgs) lib;
  inherit (package) entry;

  built = packages.${entry.attr};
  outputsOf = attr: map (output: packages.${attr}.${output}) packages.${attr}.outputs;
  test = name: pkgs.runCommandCC "${package.name}-${name}" { };

  # compute-sanitizer injects this library into programs. It ends any other process.
  isInjected = library: library.soname == "libsanitizer-collection.so";
  libraries = filter (library: !library.stub && !isInjected library) entry.provides;
  isProgram = need: lib.hasPrefix "bin/" need.by_path;
  nvcc = packages.cuda_nvcc;
  # The wheels of CUDA 12 contain no nvcc.
  hasNvcc =
    isAvailable "cuda_nvcc" && any (need: need.by_path == "bin/nvcc") nvcc.entry.needs;
  includes = lib.concatMapStringsSep " " (output: "-I${output}/include") (
    concatMap outputsOf (headerClosure [ entry.attr ])
  );

  saxpy = builtins.toFile "saxpy.cu" ''
    #include <cstdio>
    #include <cuda_runtime.h>

    __global__ void saxpy(int n, float a, const float *x, float *y) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] += a * x[i];
    }

    int main() {
        const int n = 1024;
        const size_t size = n * sizeof(float);
        float values[n], *x = nullptr, *y = nullptr, result = 0;
        for (int i = 0; i < n; ++i) values[i] = float(i);
        cudaError_t error = cudaMalloc(&x, size);
        if (!error) error = cudaMalloc(&y, size);
        if (!error) error = cudaMemcpy(x, values, size, cudaMemcpyHostToDevice);
        if (!error) error = cudaMemcpy(y, values, size, cudaMemcpyHostToDevice);
        if (!error) {
            saxpy<<<n / 256, 256>>>(n, 2, x, y);
            error = cudaGetLastError();
        }
        if (!error) error = cudaMemcpy(values, y, size, cudaMemcpyDeviceToHost);
        if (!error) result = values[n - 1];
        std::printf("error %d (%s), result %g\n", int(error), cudaGetErrorString(error), result);
        if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) return 0;
        return error || result != 3 * (n - 1);
    }
  '';

  program = test "saxpy" ''
    mkdir -p $out/bin
    ${nvcc}/bin/nvcc ${document.capabilities.gencode_string} \
      -Xlinker -rpath=${pkgs.addDriverRunpath.driverLink}/lib ${saxpy} -o $out/bin/saxpy
    $out/bin/saxpy
  '';

  # A file that requires the driver or Jetson's libraries is skipped, with a message.
  check = ''
    check() {
      local message
      if message=$("''${@:2}" 2>&1 </dev/null); then return; fi
      case $message in
        *libcuda.so.1:*${lib.concatMapStringsSep "" (soname: " | *${lib.escapeShellArg soname}:*") atRunTime})
          echo "skipped $1: $message" ;;
        *) echo "$1: $message"; exit 1 ;;
      esac
    }
  '';
in
lib.optionalAttrs (libraries != [ ] && isAvailable entry.attr) {
  # Each library loads, with the libraries that it requires.
  libraries = test "libraries" (
    check
    + ''
      cat >load.c <<'EOF'
      #include <dlfcn.h>
      #include <stdio.h>
      int main(int argc, char **argv) {
          if (dlopen(argv[1], RTLD_LAZY)) return 0;
          puts(dlerror());
          return 1;
      }
      EOF
      cc load.c -o load -ldl
    ''
    + lib.concatMapStringsSep "\n" (
      library:
      let
        name = lib.escapeShellArg (baseNameOf library.path);
      in
      # The changes of the tree may have moved the library.
      ''
        path=$(find ${built.${library.output}} -name ${name} -print -quit)
        check ${name} ./load "''${path:-missing}"
      ''
    ) libraries
    + "\ntouch $out"
  );
}
// lib.optionalAttrs (isAvailable entry.attr && (entry.meta.main_program != null || any isProgram entry.needs)) {
  # Each program prints its version.
  programs = test "programs" (
    check
    + ''
      version() { "$1" --version 2>&1 | tee log && grep -q '[0-9]\.[0-9]' log; }
      for program in ${lib.getOutput "bin" built}/bin/*; do
        # This program has no options. It lists the GPUs.
        if [[ -f $program && -x $program && $program != *_device_query && $program != *.so ]]; then
          check "$program" version "$program"
        fi
      done
      touch $out
    ''
  );
}
// lib.optionalAttrs (hasNvcc && elem "include" entry.outputs) {
  # Each header compiles alone, except for parts of other headers of the package.
  headers = test "headers" (
    ''
      cd ${built.include}/include
      for header in *.h; do
        case $header in
          # These follow the headers of CUDA that they describe, or require VDPAU.
          '*.h' | generated_*_meta.h | *VDPAU* | *vdpau*) continue ;;
        esac
        if ! grep -qsE "^ *# *include *[<\"]$header[>\"]" *.h *.hpp; then
          ${nvcc}/bin/nvcc ${includes} -x cu -w -Xcompiler -w -arch=${head document.capabilities.real_arches} -cubin -o /dev/null $header
        fi
      done
      touch $out
    ''
  );
}
// lib.optionalAttrs (hasNvcc && entry.attr == "cuda_nvcc") {
  # A program with code for the GPUs of the set runs, until it requires the driver.
  saxpy = program;
  # The program runs on a GPU. Only machines with the system feature `cuda` build this test.
  gpu = pkgs.runCommand "${package.name}-gpu" { requiredSystemFeatures = [ "cuda" ]; } ''
    ${program}/bin/saxpy | tee $out
    grep -q '^error 0 ' $out
  '';
}
