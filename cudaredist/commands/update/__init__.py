"""update-nvcc-compat, update-gpus and update-symbols: make tables from archives.

`table_run` updates a table of compilers or GPUs from the file that `table_file` finds in each
release. `collect_symbols` updates the tables of symbols. `table_command` has the common options.
"""
