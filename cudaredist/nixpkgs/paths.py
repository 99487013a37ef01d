"""The tables of nixpkgs that the command updates, and the paths of their files."""

from typing import Literal, TypeAlias, get_args

CUDA_FOLDER = "pkgs/development/cuda-modules/_cuda"
NVCC_PATH = f"{CUDA_FOLDER}/db/bootstrap/nvcc.nix"
CAPABILITY_PATH = f"{CUDA_FOLDER}/db/bootstrap/cuda.nix"
MANIFEST_FOLDER = f"{CUDA_FOLDER}/manifests"
VERSIONS_PATH = "pkgs/top-level/cuda-packages.nix"
ALL_PACKAGES_PATH = "pkgs/top-level/all-packages.nix"
RUNFILES_PATH = "pkgs/development/cuda-modules/cudatoolkit/releases.nix"

TableName: TypeAlias = Literal["compilers", "capabilities", "releases"]
TABLES: tuple[TableName, ...] = get_args(TableName)
