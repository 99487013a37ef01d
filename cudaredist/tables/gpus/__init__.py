"""Compute capabilities of CUDA releases, from `ptxas` and policy."""
