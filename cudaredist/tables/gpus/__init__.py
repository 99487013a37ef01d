"""Compute capabilities: which CUDA releases know them, from `ptxas`, and what policy adds."""
