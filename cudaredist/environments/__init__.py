"""The packages and loaded libraries of an environment, and the commands that repair it.

`audit_program` runs the steps and makes the report. `read_program` reads the facts of each file
into the types of `programs`. `installed` finds environments and reads their packages, and
`requirements_in_use` decides which of their requirements count. `load_all` loads the libraries of
all files: `loader` finds the file for each one, `preloads` those that packages load first, and
`opened` those that files open when they run. `environment` reports what is wrong with the loaded
files, and `metadata_findings` what is wrong with METADATA and RECORD. `wheel_fixes` and `repairs`
choose the packages that resolve a finding. `error_message` reads the message of an error, and
`answers` answers it. Only `read_program`, `installed`, `file_owners`, `loader`, `preloads`,
`metadata_findings` and `audit_program` read files.
"""
