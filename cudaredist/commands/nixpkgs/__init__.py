"""Update the CUDA tables of nixpkgs."""
