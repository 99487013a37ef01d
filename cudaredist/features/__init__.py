"""Features of an archive, derived from facts about its bytes.

`gather` reads an archive into `facts`, with the input of the tables in `extracts`. `wheel` gives
the members of a wheel the layout of an archive, `archive_tree` and `links` turn members into files
and links, `placement` assigns each file to an output, and `derive` applies the rules. `legacy`
writes the form for nixpkgs. Nothing here depends on where archives come from or features go to.
"""
