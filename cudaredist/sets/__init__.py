"""Package sets, each for one CUDA release and platform.

All functions here are pure: the same input gives the same result. `spec` resolves a request, and
`assemble` runs the stages `version_choice`, `entries`, `libraries` and `metadata`. Each stage
returns the input of the next one.
"""
