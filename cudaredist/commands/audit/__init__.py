"""audit: the CUDA libraries, releases and GPUs that a program needs.

`audit_program` runs the steps and makes the report. `read_program` reads the facts of each file
into the types of `program`, and `judge` compares them with the data. `needs` finds the provider of
each library, and `lowest_release` finds the releases that export all symbols. `cuda_majors`,
`run_paths` and `unlinked` compare the files with each other, and `alternatives` compares their
device code with GPUs. `installed` finds environments, `loader` the files that are loaded in them,
`environment` compares these with the needed symbols, and `wheel_fixes` and `repairs` have the
commands of pip, uv and conda. `error_message` reads the message of an error, and `answers`
answers it. `sizes` adds up the bytes of files. `declared` compares the requirements of wheels.
`program_findings` reports problems and missing requirements. Only `read_program`, `installed`,
`loader` and `audit_program` read files.
"""
