"""The packages and loaded libraries of an environment, and the commands that repair it.

`audit_program` runs the steps and makes the report. `read_program` reads the facts of each file
into the types of `programs`. `installed` finds environments and reads their packages, and
`requirements_in_use` decides which of their requirements count. `loader` finds the file that is
loaded for each library, and `environment` compares these files with the needed symbols.
`wheel_fixes` and `repairs` have the commands of pip, uv and conda. `error_message` reads the
message of an error, and `answers` answers it. Only `read_program`, `installed`, `file_owners`,
`loader` and `audit_program` read files.
"""
