"""mirror: sync, verify and prune a mirror.

`mirror_folder` reads and writes the mirror, `mirror_paths` maps archives to paths, and
`mirror_pages` makes the index pages.
"""
