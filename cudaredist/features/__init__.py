"""From an archive's bytes to its features: facts are gathered once, features follow by rule.

`facts` contains what `gather` reads, `extracts` the files that tables are made from, `wheel` gives
the members of a wheel the layout of an archive, `archive_tree` and `links` make files and links of
members, `placement` assigns each file to an output, `derive` applies the rules, and `legacy` writes
the form that nixpkgs consumed. Nothing here knows where bytes come from or where results go.
"""
