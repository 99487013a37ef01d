"""The CUDA libraries, releases and GPUs that files need, and the problems with them.

`program` has the facts of files, and `judge` compares them with the data. `needs` finds the
provider of each library, and `lowest_release` the releases that export all symbols. `cuda_majors`,
`run_paths` and `unlinked` compare the files with each other. `gpu_coverage` and `gpu_gaps` compare
their device code with GPUs, and `gpu_verdicts` has the answers for required GPUs. `declared`
compares the requirements of wheels, and `sizes` adds up bytes.
`program_findings` reports problems and missing requirements. A `finding` has its `repair` as data,
which becomes a command of pip, uv or conda in the `report`. Only `declared` reads files: the
metadata of wheels.
"""
