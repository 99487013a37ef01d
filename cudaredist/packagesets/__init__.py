"""Package sets: one CUDA release on one platform, computed from the data files and explained.

Everything here is pure: values in, values out, the same for the same. `spec` resolves a request,
and `assemble` runs the stages: `version_choice`, `entries`, `libraries` and `metadata`, each of
which returns the next value.
"""
