"""check: verify that data files are current, complete, unchanged and valid.

`check_data` runs the checks. `inventory` compares manifests with the lock and with upstream.
`file_findings`, `archive_tables` and `runfile_findings` check the other files, `checked_files`
reads only those that changed, and `findings` makes the results.
"""
