"""The CUDA tables of nixpkgs: read from a checkout, compared with ours, and changed."""
